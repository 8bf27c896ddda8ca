"""L-BFGS for long vectors: two fused passes over its memory a step, in coordinates scaled by a diagonal.

With millions of variables the vector work of the usual two-loop recursion costs more than a pass over the data. Here the
recursion runs on inner products alone: one pass computes those of the newest vectors with all in memory, the recursion
finds the weights of the direction in that basis, and one pass adds it up. :mod:`belated.solvers.vectors` does these passes,
for NumPy and for torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from belated.arrays import namespace
from belated.solvers.stopping import Solution, promise, promise_is_small
from belated.solvers.vectors import vectors_like
from belated.typing import Floats

LongObjective = Callable[[Any], tuple[float, Any]]

_MEMORY = 8
_CAREFUL = 0.5  # of a Newton step by the diagonal, first where the steepest direction is known
# The next two were chosen among a dozen pairs on DFM and Hazard, on one week of simulated clicks in Criteo's format.
_REFRESH = 15  # steps after which the curvature of a stiff objective is estimated again
_FARTHEST = 2.0  # the farthest that a variable may move in one step; hazards are exponentials of sums of variables


def minimise_long(
    objective: LongObjective,
    diagonal: Callable[[Any], Any],
    start: Any,
    tol: float,
    max_iter: int,
    scale: float | None = None,
    stiff: bool = False,
    of_ones: Callable[[Any], Any] | None = None,
) -> Solution:
    """Minimise until a Newton step promises to lower the value by well less than ``tol`` of it, or of ``scale``.

    ``start`` is a NumPy array or a tensor, and so are the arguments of the two functions. ``diagonal(theta)`` estimates the
    diagonal of the Hessian. Of a ``stiff`` objective it is taken anew every few steps, and no variable moves far in one.
    ``of_ones`` gives the Hessian's product with a vector of ones from its diagonal, where that is known. All weights moving
    together is by far the steepest direction in rows of many 0/1 columns, and the first step need not discover it.
    """
    curvature = diagonal(start)
    unit = _units(curvature)
    vectors = vectors_like(start, 1 + 2 * _MEMORY)
    gram = np.zeros((1 + 2 * _MEMORY, 1 + 2 * _MEMORY))
    theta = start * 1.0
    value, gradient = objective(theta)
    gram[0, 0] = vectors.restart(gradient * unit)
    pairs: list[int] = []  # the row of the basis at which each pair begins, oldest first
    if of_ones is not None:
        gram[:3, :3] = vectors.begin_with(1.0 / unit, of_ones(curvature) * unit)
        pairs = [1]
    promised, first_value = np.inf, value
    for n_iter in range(1, max_iter + 1):
        if stiff and n_iter % _REFRESH == 0:
            unit, pairs = _units(diagonal(theta)), []
            gram[0, 0] = vectors.restart(gradient * unit)
        weights = _recursion(gram, pairs, _CAREFUL if n_iter == 1 else None)
        slope = float(weights @ gram[: len(weights), 0])
        if not slope < 0:
            pairs, weights, slope = [], np.array([-1.0]), -float(gram[0, 0])
        promised = promise(slope, value, first_value, scale)
        if promise_is_small(promised, tol, len(pairs)):
            return Solution(theta, n_iter - 1, promised, value)
        vectors.combine(weights)

        def along(length: float) -> tuple[float, Any]:
            return objective(vectors.move(theta, length, unit))  # noqa: B023 (called before the next turn)

        # Without memory only the diagonal is known, which ignores how columns act together: a full step would be too long.
        longest = 1.0 if pairs else 0.1
        if stiff:
            longest = min(longest, _FARTHEST / max(vectors.farthest(unit), 1e-300))
        length, new_value, gradient = _line_search(along, value, slope, longest)
        if length == 0.0:  # rounding leaves nothing to gain
            return Solution(theta, n_iter - 1, promised, value)
        theta, value = vectors.keep(theta), new_value
        slot = 1 + 2 * len(pairs) if len(pairs) < _MEMORY else pairs.pop(0)
        used = 3 + 2 * len(pairs)
        products = vectors.remember(length, gradient, unit, slot, used)
        for row, line in zip((0, slot, slot + 1), products, strict=True):
            gram[row, :used] = line
            gram[:used, row] = line
        if gram[slot, slot + 1] > 1e-12 * np.sqrt(gram[slot, slot] * gram[slot + 1, slot + 1]):
            pairs.append(slot)
        else:  # negative curvature, as a risk that is not convex may have: forget the pairs and go on from here
            pairs = []
    return Solution(theta, max_iter, promised, value)


def _units(curvature: Any) -> Any:
    """One over the root of the curvature: in coordinates scaled by it, the curvature is about 1 in every variable."""
    xp = namespace(curvature)
    largest = float(xp.max(curvature)) if len(curvature) else 0.0
    least = 1e-12 * max(largest, 1e-300)
    return 1.0 / xp.sqrt(xp.where(curvature > least, curvature, least))


def _recursion(gram: Floats, pairs: list[int], scale: float | None) -> Floats:
    """Weights of the direction -H g in the basis, by the two loops of L-BFGS on inner products.

    Directions of which no pair tells have curvature 1 / ``scale``, by default that along the last pair.
    """
    weights = np.zeros(1 + 2 * len(pairs))
    gram = gram[: len(weights), : len(weights)]
    weights[0] = 1.0
    alphas = {}
    for s in reversed(pairs):
        alphas[s] = (gram[s] @ weights) / gram[s, s + 1]
        weights[s + 1] -= alphas[s]
    if pairs:
        s = pairs[-1]
        weights *= gram[s, s + 1] / gram[s + 1, s + 1] if scale is None else scale
    for s in pairs:
        weights[s] += alphas[s] - (gram[s + 1] @ weights) / gram[s, s + 1]
    return -weights


def _line_search(
    along: Callable[[float], tuple[float, Any]], value: float, slope: float, length: float
) -> tuple[float, float, Any]:
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
