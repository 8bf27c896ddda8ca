"""Coordinates in which a function curves alike in all directions, so that L-BFGS needs few steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, solve_triangular

from belated.typing import Floats, Ints

Index = Ints


@dataclass(frozen=True)
class Preconditioner:
    """theta = P u, where P is diagonal but for dense blocks.

    ``unit`` is the diagonal; each block is an index and the Cholesky factor C of the curvature there, P = C^-T.
    """

    unit: Floats
    blocks: list[tuple[Index, Floats]]

    @classmethod
    def of(cls, diagonal: Floats, blocks: list[tuple[Index, Floats]]) -> Preconditioner:
        """From an estimate of the Hessian's diagonal, and of some whole blocks of it."""
        floor = 1e-8 * float(diagonal.max(initial=0.0)) or 1.0
        factors = []
        for index, hessian in blocks:
            jitter = np.eye(len(index)) * (1e-10 * float(np.diag(hessian).max(initial=0.0)) or 1.0)
            factors.append((index, np.tril(cho_factor(hessian + jitter, lower=True)[0])))
        return cls(1.0 / np.sqrt(np.maximum(diagonal, floor)), factors)

    def theta(self, u: Floats) -> Floats:
        theta = u * self.unit
        for index, factor in self.blocks:
            theta[index] = solve_triangular(factor, u[index], lower=True, trans="T", check_finite=False)
        return theta

    def gradient(self, gradient: Floats) -> Floats:
        """The gradient in u, given that in theta."""
        scaled = gradient * self.unit
        for index, factor in self.blocks:
            scaled[index] = solve_triangular(factor, gradient[index], lower=True, check_finite=False)
        return scaled

    def inverse(self, theta: Floats) -> Floats:
        u = theta / self.unit
        for index, factor in self.blocks:
            u[index] = factor.T @ theta[index]
        return u
