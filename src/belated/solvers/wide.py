"""L-BFGS for long vectors: two fused passes over its memory a step, in coordinates scaled by a diagonal.

With millions of variables the vector work of the usual two-loop recursion costs more than a pass over the data. Here the
recursion runs on inner products alone: one pass computes those of the newest vectors with all in memory, the recursion
finds the weights of the direction in that basis, and one pass adds it up.
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


def minimise_wide(
    objective: Objective, diagonal: Callable[[Floats], Floats], start: Floats, tol: float, max_iter: int
) -> Solution:
    """Minimise until a Newton step promises to lower the value by less than ``tol`` of it.

    ``diagonal(theta)`` estimates the diagonal of the Hessian. The gradient norm returned is the promised decrease,
    relative to the value.
    """
    curvature = diagonal(start)
    unit = 1.0 / np.sqrt(np.maximum(curvature, 1e-12 * curvature.max(initial=1e-300)))
    d = len(start)
    # Rows: steps, then changes of gradient (each a ring of _MEMORY), then the gradient itself.
    basis = np.zeros((2 * _MEMORY + 1, d))
    gram = np.zeros((2 * _MEMORY + 1, 2 * _MEMORY + 1))
    parts = np.empty((nb.get_num_threads(), 3, 2 * _MEMORY + 1))
    direction, latest = np.empty(d), np.empty((3, d))
    u = start / unit
    value, gradient = objective(start)
    basis[-1] = gradient * unit
    gram[-1, -1] = basis[-1] @ basis[-1]
    ages: list[int] = []  # slots of the ring, oldest first
    promised = np.inf
    for n_iter in range(1, max_iter + 1):
        weights = _recursion(gram, ages)
        kernels.combine(basis, len(basis), weights, direction)
        slope = float(weights @ gram[-1])
        if not slope < 0:
            ages = []
            direction[:], slope = -basis[-1], -float(gram[-1, -1])
        promised = -slope / 2.0 / max(abs(value), 1e-300)
        if promised <= tol and (len(ages) >= min(_MEMORY, 3) or promised == 0.0):
            return Solution(u * unit, n_iter - 1, promised)
        step, trial, trial_value, trial_gradient = _line_search(
            objective, unit, u, value, slope, direction, first=not ages
        )
        if step == 0.0:  # rounding leaves nothing to gain
            return Solution(u * unit, n_iter - 1, promised)
        latest[0] = trial - u
        latest[2] = trial_gradient * unit
        latest[1] = latest[2] - basis[-1]
        u, value = trial, trial_value
        basis[-1] = latest[2]
        if latest[0] @ latest[1] > 1e-12 * np.sqrt((latest[0] @ latest[0]) * (latest[1] @ latest[1])):
            slot = len(ages) if len(ages) < _MEMORY else ages.pop(0)
            ages.append(slot)
            basis[slot], basis[_MEMORY + slot] = latest[0], latest[1]
            changed = [slot, _MEMORY + slot, 2 * _MEMORY]
        else:
            changed = [2 * _MEMORY]
        kernels.dots(basis, len(basis), latest, parts)
        products = parts.sum(axis=0)
        for row in changed:
            line = products[0 if row < _MEMORY else 1 if row < 2 * _MEMORY else 2]
            gram[row, :] = line
            gram[:, row] = line
    return Solution(u * unit, max_iter, promised)


def _recursion(gram: Floats, ages: list[int]) -> Floats:
    """Weights of the direction -H g in the basis, by the two loops of L-BFGS on inner products."""
    weights = np.zeros(len(gram))
    weights[-1] = 1.0
    alphas = {}
    for slot in reversed(ages):
        s, y = slot, _MEMORY + slot
        alphas[slot] = (gram[s] @ weights) / gram[s, y]
        weights[y] -= alphas[slot]
    if ages:
        s, y = ages[-1], _MEMORY + ages[-1]
        weights *= gram[s, y] / gram[y, y]
    for slot in ages:
        s, y = slot, _MEMORY + slot
        weights[s] += alphas[slot] - (gram[y] @ weights) / gram[s, y]
    return -weights


def _line_search(
    objective: Objective, unit: Floats, u: Floats, value: float, slope: float, direction: Floats, first: bool
) -> tuple[float, Floats, float, Floats]:
    """Backtrack, by quadratic interpolation, to a step that lowers the value enough."""
    # Before there is any memory the diagonal ignores how columns act together, and a full step is too long.
    step = 0.1 if first else 1.0
    for _ in range(30):
        trial = u + step * direction
        trial_value, gradient = objective(trial * unit)
        if trial_value <= value + 1e-4 * step * slope:
            return step, trial, trial_value, gradient
        bend = trial_value - value - step * slope
        step = (
            float(np.clip(-slope * step**2 / (2.0 * bend), 0.1 * step, 0.5 * step)) if np.isfinite(bend) else 0.1 * step
        )
    return 0.0, u, value, gradient
