"""The vector work of L-BFGS, for NumPy (compiled) and for torch: a few fused passes over a basis of long vectors.

Row 0 of the basis is the gradient in scaled coordinates; after it come pairs of a step and the change of gradient along it.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from belated.arrays import is_numpy_array, namespace
from belated.solvers.row_kernels import FREE
from belated.threads import compiled
from belated.typing import Floats

_PARTS = 16  # of which sums are made up


class CompiledVectors:
    """Long vectors of NumPy. No product goes to BLAS, whose threads go on waiting busily and hold up the next pass."""

    def __init__(self, like: Floats, rows: int) -> None:
        self.basis = np.empty((rows, len(like)))
        self.parts = np.empty((_PARTS, 3, rows))
        self.direction, self.trial = np.empty_like(like), np.empty_like(like)

    def restart(self, scaled_gradient: Floats) -> float:
        """Begin with this gradient; its squared length."""
        self.basis[0] = scaled_gradient
        return float(np.einsum("i,i->", self.basis[0], self.basis[0]))

    def begin_with(self, step: Floats, change: Floats) -> Floats:
        """Put a first pair into rows 1 and 2; the products (3, 3) of all rows so far."""
        self.basis[1], self.basis[2] = step, change
        return np.einsum("id,jd->ij", self.basis[:3], self.basis[:3])

    def combine(self, weights: Floats) -> Floats:
        """The sum of weights times the first rows of the basis."""
        _combine(self.basis, weights, self.direction)
        return self.direction

    def move(self, theta: Floats, length: float, unit: Floats) -> Floats:
        """The point ``length`` along the direction, in an array that the next call writes over unless it was kept."""
        _move(theta, length, self.direction, unit, self.trial)
        return self.trial

    def keep(self, theta: Floats) -> Floats:
        """Keep the last point; the array of the former one is free for the next."""
        kept, self.trial = self.trial, theta
        return kept

    def remember(self, length: float, gradient: Floats, unit: Floats, slot: int, used: int) -> Floats:
        """Put the step, the change of gradient and the gradient into rows slot, slot + 1 and 0.

        Returns the products (3, used) of rows 0, slot and slot + 1 with the first ``used`` rows.
        """
        _remember(self.direction, length, gradient, unit, self.basis, slot)
        _dots(self.basis, used, slot, self.parts)
        return self.parts.sum(axis=0)[:, :used]

    def farthest(self, unit: Floats) -> float:
        """The largest entry of the direction, in unscaled coordinates."""
        return float(np.abs(self.direction * unit).max(initial=0.0))


class TensorVectors:
    """The same of torch, on whatever device its tensors are."""

    def __init__(self, like: Any, rows: int) -> None:
        self.basis = like.new_empty((rows, len(like)))
        self.direction = self.trial = like

    def restart(self, scaled_gradient: Any) -> float:
        self.basis[0] = scaled_gradient
        return float(scaled_gradient @ scaled_gradient)

    def begin_with(self, step: Any, change: Any) -> Floats:
        self.basis[1], self.basis[2] = step, change
        return (self.basis[:3] @ self.basis[:3].T).cpu().numpy()

    def combine(self, weights: Floats) -> Any:
        weights_there = namespace(self.basis).asarray(weights, dtype=self.basis.dtype, device=self.basis.device)
        self.direction = weights_there @ self.basis[: len(weights)]
        return self.direction

    def move(self, theta: Any, length: float, unit: Any) -> Any:
        self.trial = theta + length * self.direction * unit
        return self.trial

    def keep(self, theta: Any) -> Any:
        return self.trial

    def remember(self, length: float, gradient: Any, unit: Any, slot: int, used: int) -> Floats:
        now = gradient * unit
        self.basis[slot], self.basis[slot + 1] = length * self.direction, now - self.basis[0]
        self.basis[0] = now
        return (self.basis[[0, slot, slot + 1]] @ self.basis[:used].T).cpu().numpy()

    def farthest(self, unit: Any) -> float:
        return float(abs(self.direction * unit).max())


def vectors_like(theta: Any, rows: int) -> CompiledVectors | TensorVectors:
    """Room for a basis of so many vectors like this one."""
    return CompiledVectors(theta, rows) if is_numpy_array(theta) else TensorVectors(theta, rows)


@compiled(fastmath=FREE)
def _dots(basis: Floats, used: int, slot: int, parts: Floats) -> None:
    """parts[t] adds up to the products of rows 0, slot and slot + 1 of ``basis`` with its first ``used`` rows."""
    chunks, d, block = parts.shape[0], basis.shape[1], 2048
    for t in nb.prange(chunks):
        parts[t] = 0.0
        end = d * (t + 1) // chunks
        for left in range(d * t // chunks, end, block):
            right = min(left + block, end)
            for r in range(used):
                first, second, third = 0.0, 0.0, 0.0
                for j in range(left, right):
                    x = basis[r, j]
                    first += x * basis[0, j]
                    second += x * basis[slot, j]
                    third += x * basis[slot + 1, j]
                parts[t, 0, r] += first
                parts[t, 1, r] += second
                parts[t, 2, r] += third


@compiled()
def _combine(basis: Floats, weights: Floats, out: Floats) -> None:
    """out = sum of weights times the first rows of ``basis``."""
    block = 2048
    for part in nb.prange((out.size + block - 1) // block):
        left, right = part * block, min((part + 1) * block, out.size)
        for j in range(left, right):
            out[j] = 0.0
        for r in range(weights.size):
            weight = weights[r]
            for j in range(left, right):
                out[j] += weight * basis[r, j]


@compiled()
def _move(theta: Floats, length: float, direction: Floats, unit: Floats, trial: Floats) -> None:
    """trial = theta + length * direction, which is in scaled coordinates."""
    for j in nb.prange(theta.size):
        trial[j] = theta[j] + length * direction[j] * unit[j]


@compiled()
def _remember(direction: Floats, length: float, gradient: Floats, unit: Floats, basis: Floats, slot: int) -> None:
    """The step, the change of the scaled gradient, and the new scaled gradient, in rows slot, slot + 1 and 0."""
    for j in nb.prange(unit.size):
        now = gradient[j] * unit[j]
        basis[slot, j], basis[slot + 1, j] = length * direction[j], now - basis[0, j]
        basis[0, j] = now
