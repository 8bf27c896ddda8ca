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

from belated.solvers import kernels
from belated.solvers.preconditioned_lbfgs import Objective, Solution
from belated.typing import Floats

_MEMORY = 8
_ENOUGH = 3  # pairs in memory, before a promise counts
# The next two were chosen among a dozen pairs on DFM and Hazard, on one week of simulated clicks in Criteo's format.
REFRESH = 15  # steps of a stiff objective, after which its curvature is another
FARTHEST = 2.0  # that a variable moves in such a step; hazards are exponentials of sums of variables
CAUTION = 0.25  # an approximate Newton step promises too little, a few times so where convergence is slow


def minimise_wide(
    objective: Objective,
    diagonal: Callable[[Floats], Floats],
    start: Floats,
    tol: float,
    max_iter: int,
    scale: float | None = None,
    stiff: bool = False,
) -> Solution:
    """Minimise until a Newton step promises to lower the value by well less than ``tol`` of it, or of ``scale``.

    A value near 0 counts as a tenth of the first.

    ``diagonal(theta)`` estimates the diagonal of the Hessian. Of a ``stiff`` objective it is taken anew every few steps, and
    no variable moves far in one. The gradient norm returned is the promised decrease, relative to the value or scale.
    """

    def units(theta: Floats) -> Floats:
        curvature = diagonal(theta)
        return 1.0 / np.sqrt(np.maximum(curvature, 1e-12 * curvature.max(initial=1e-300)))

    unit = units(start)
    # Rows: the gradient, then pairs of a step and the change of gradient along it.
    basis = np.empty((1 + 2 * _MEMORY, len(start)))
    gram = np.zeros((len(basis), len(basis)))
    parts = np.empty((nb.get_num_threads(), 3, len(basis)))
    theta, trial, direction = start.copy(), np.empty_like(start), np.empty_like(start)
    value, gradient = objective(theta)
    np.multiply(gradient, unit, out=basis[0])
    gram[0, 0] = np.einsum("i,i->", basis[0], basis[0])
    pairs: list[int] = []  # first rows of pairs, oldest first
    promised, floor = np.inf, max(abs(value) / 10.0, 1e-300)
    for n_iter in range(1, max_iter + 1):
        if stiff and n_iter % REFRESH == 0:
            fresh = units(theta)
            basis[0] *= fresh / unit
            unit, pairs, gram[0, 0] = fresh, [], np.einsum("i,i->", basis[0], basis[0])
        weights = _recursion(gram, pairs)
        slope = float(weights @ gram[: len(weights), 0])
        if not slope < 0:
            pairs, weights, slope = [], np.array([-1.0]), -float(gram[0, 0])
        promised = -slope / 2.0 / (scale or max(abs(value), floor))
        if promised <= CAUTION * tol and (len(pairs) >= _ENOUGH or promised == 0.0):
            return Solution(theta, n_iter - 1, promised, value)
        kernels.combine(basis, weights, direction)

        def along(length: float) -> tuple[float, Floats]:
            kernels.move(theta, length, direction, unit, trial)  # noqa: B023 (called before the next turn)
            return objective(trial)  # noqa: B023

        # Before there is any memory the diagonal ignores how columns act together, and a full step is too long.
        longest = 1.0 if pairs else 0.1
        if stiff:
            longest = min(longest, FARTHEST / float(np.abs(direction * unit).max(initial=1e-300)))
        length, trial_value, gradient = _line_search(along, value, slope, longest)
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
    along: Callable[[float], tuple[float, Floats]], value: float, slope: float, length: float
) -> tuple[float, float, Floats]:
    """Backtrack, by quadratic interpolation, to a step that lowers the value enough; 0 where there is none."""
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
