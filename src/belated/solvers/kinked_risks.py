"""Risks with kinks, as sequences of smooth ones.

Both functions here call ``solve(risk, start)``, which a model supplies, for risks that are smooth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from belated.notices import logger
from belated.risks.base import Risk
from belated.solvers.stopping import Solution
from belated.typing import Floats

Solve = Callable[[Risk, Floats | None], Solution]


_WIDTHS = (4.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)


def minimise_rounded(risk: Risk, solve: Solve, start: Floats | None = None) -> Solution:
    """Minimise a risk whose loss has kinks by rounding them ever less; smooth risks are solved at once."""
    if risk.smooth:
        return solve(risk, start)
    n_iter = 0
    for width in _WIDTHS:
        solution = solve(risk.smoothed(width), start)
        start, n_iter = solution.theta, n_iter + solution.n_iter
    return replace(solution, n_iter=n_iter)


def minimise_non_negative(
    risk: Risk, solve: Solve, margins: Callable[[Floats], Floats], tol: float, start: Floats | None = None
) -> Solution:
    """Minimise max(J, J+) + penalty exactly, as the saddle point max over t of min J+ + t J- + penalty.

    The minimum in theta is concave in t with slope J-(theta_t). If that is not negative at t = 1 the correction does
    nothing and J itself is minimal; otherwise J- = 0 at the answer, found by a root search in t, up to well
    below ``tol``.
    """
    current = minimise_rounded(risk.relaxed(1.0), solve, start)
    negative = risk.negative_part(margins(current.theta))
    if negative >= -1e-12:
        return current
    logger.warning(
        "the negative part of the risk is kept at 0; it would have gone to %.3g. Raise l2 if predictions look too high.",
        negative,
    )
    n_iter, best, closest = current.n_iter, current, np.inf

    def slope(share: float) -> float:
        nonlocal current, n_iter, best, closest
        current = minimise_rounded(risk.relaxed(share), solve, current.theta)
        n_iter += current.n_iter
        negative = risk.negative_part(margins(current.theta))
        if abs(negative) < closest:
            best, closest = current, abs(negative)
        return negative

    high, below, low = 1.0, negative, 0.5
    # With an intercept, J- grows without bound as t goes to 0, since a larger intercept then always pays.
    while (above := slope(low)) < 0:
        high, below, low = low, above, low / 2
        if low < 1e-9:  # without an intercept J- may stay below 0 for every t, and J+ alone is minimal
            return minimise_rounded(risk.relaxed(0.0), solve, current.theta)
    # False position in the Illinois variant: the value at an end that is kept twice in a row is halved.
    kept = 0
    for _ in range(60):
        middle = (low * below - high * above) / (below - above)
        found = slope(middle)
        if abs(found) <= 1e-11 + 1e-2 * tol or high - low <= 1e-14:
            break
        if found > 0:
            low, above = middle, found
            below, kept = (below / 2 if kept == 1 else below), 1
        else:
            high, below = middle, found
            above, kept = (above / 2 if kept == -1 else above), -1
    return replace(best, n_iter=n_iter)
