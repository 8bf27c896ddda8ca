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
        alone = np.ones(len(diagonal), dtype=bool)
        for index, _ in blocks:
            alone[index] = False
        floor = 1e-8 * float(diagonal[alone].max(initial=0.0)) or 1.0
        factors = [(index, _factor(hessian)) for index, hessian in blocks]
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


def _factor(hessian: Floats) -> Floats:
    """The lower Cholesky factor, with as little added to the diagonal as makes it one.

    In units in which the diagonal is 1: what is added hides weak directions, and must not hide those that are weak only
    because of a column's unit.
    """
    size = np.sqrt(np.diag(hessian))
    size = np.where(size > 0, size, 1.0)
    scaled = hessian / np.outer(size, size)
    for extra in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6):
        try:
            factor = cho_factor(scaled + extra * np.eye(len(size)), lower=True)[0]
        except np.linalg.LinAlgError:
            continue
        return np.tril(factor) * size[:, None]
    return np.diag(size)
