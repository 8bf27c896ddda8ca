"""L-BFGS for long vectors: two fused passes over its memory a step, in coordinates scaled by a diagonal.

With millions of variables the vector work of the usual two-loop recursion costs more than a pass over the data. Here the
recursion runs on inner products alone: one pass computes those of the newest vectors with all in memory, the recursion
finds the weights of the direction in that basis, and one pass adds it up. No long product goes to BLAS, whose threads go
on waiting busily and hold up the compiled passes.
"""

from __future__ import annotations

from collections.abc import Callable

import numba as nb
import numpy as np
from numpy.typing import NDArray

from belated.solvers import kernels
from belated.solvers.lbfgs import Objective, Solution

Floats = NDArray[np.float64]

_MEMORY = 8
_ENOUGH = 3  # pairs in memory, before a promise counts
CAUTION = 0.25  # an approximate Newton step promises too little, a few times so where convergence is slow


def minimise_wide(
    objective: Objective, diagonal: Callable[[Floats], Floats], start: Floats, tol: float, max_iter: int
) -> Solution:
    """Minimise until a Newton step promises to lower the value by well less than ``tol`` of it.

    ``diagonal(theta)`` estimates the diagonal of the Hessian. The gradient norm returned is the promised decrease,
    relative to the value.
    """
    curvature = diagonal(start)
    unit = 1.0 / np.sqrt(np.maximum(curvature, 1e-12 * curvature.max(initial=1e-300)))
    # Rows: the gradient, then pairs of a step and the change of gradient along it.
    basis = np.empty((1 + 2 * _MEMORY, len(start)))
    gram = np.zeros((len(basis), len(basis)))
    parts = np.empty((nb.get_num_threads(), 3, len(basis)))
    theta, trial, direction = start.copy(), np.empty_like(start), np.empty_like(start)
    value, gradient = objective(theta)
    np.multiply(gradient, unit, out=basis[0])
    gram[0, 0] = np.einsum("i,i->", basis[0], basis[0])
    pairs: list[int] = []  # first rows of pairs, oldest first
    promised = np.inf
    for n_iter in range(1, max_iter + 1):
        weights = _recursion(gram, pairs)
        slope = float(weights @ gram[: len(weights), 0])
        if not slope < 0:
            pairs, weights, slope = [], np.array([-1.0]), -float(gram[0, 0])
        promised = -slope / 2.0 / max(abs(value), 1e-300)
        if promised <= CAUTION * tol and (len(pairs) >= _ENOUGH or promised == 0.0):
            return Solution(theta, n_iter - 1, promised, value)
        kernels.combine(basis, weights, direction)

        def along(length: float) -> tuple[float, Floats]:
            kernels.move(theta, length, direction, unit, trial)  # noqa: B023 (called before the next turn)
            return objective(trial)  # noqa: B023

        length, trial_value, gradient = _line_search(along, value, slope, first=not pairs)
        if length == 0.0:  # rounding leaves nothing to gain
            return Solution(theta, n_iter - 1, promised, value)
        theta, trial, value = trial, theta, trial_value
        slot = 1 + 2 * len(pairs) if len(pairs) < _MEMORY else pairs.pop(0)
        kernels.remember(direction, length, gradient, unit, basis, slot)
        used = 3 + 2 * len(pairs)
        kernels.dots(basis, used, slot, parts)
        products = parts.sum(axis=0)
        for row, line in zip((0, slot, slot + 1), products, strict=True):
            gram[row, :used] = line[:used]
            gram[:used, row] = line[:used]
        if gram[slot, slot + 1] > 1e-12 * np.sqrt(gram[slot, slot] * gram[slot + 1, slot + 1]):
            pairs.append(slot)
        else:  # no curvature to learn from, as may happen in a risk that is not convex: begin anew from here
            pairs = []
    return Solution(theta, max_iter, promised, value)


def _recursion(gram: Floats, pairs: list[int]) -> Floats:
    """Weights of the direction -H g in the basis, by the two loops of L-BFGS on inner products."""
    weights = np.zeros(1 + 2 * len(pairs))
    gram = gram[: len(weights), : len(weights)]
    weights[0] = 1.0
    alphas = {}
    for s in reversed(pairs):
        alphas[s] = (gram[s] @ weights) / gram[s, s + 1]
        weights[s + 1] -= alphas[s]
    if pairs:
        s = pairs[-1]
        weights *= gram[s, s + 1] / gram[s + 1, s + 1]
    for s in pairs:
        weights[s] += alphas[s] - (gram[s + 1] @ weights) / gram[s, s + 1]
    return -weights


def _line_search(
    along: Callable[[float], tuple[float, Floats]], value: float, slope: float, first: bool
) -> tuple[float, float, Floats]:
    """Backtrack, by quadratic interpolation, to a step that lowers the value enough; 0 where there is none."""
    # Before there is any memory the diagonal ignores how columns act together, and a full step is too long.
    length = 0.1 if first else 1.0
    for _ in range(30):
        trial_value, gradient = along(length)
        if trial_value <= value + 1e-4 * length * slope:
            return length, trial_value, gradient
        bend = trial_value - value - length * slope
        if np.isfinite(bend):
            length = float(np.clip(-slope * length**2 / (2.0 * bend), 0.1 * length, 0.5 * length))
        else:
            length *= 0.1
    return 0.0, value, gradient
