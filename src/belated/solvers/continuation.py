"""Risks with kinks, as sequences of smooth ones.

Both functions here call ``solve(risk, start)``, which a model supplies, for risks that are smooth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from belated.risk import NonNegativeRisk, Risk
from belated.solvers.lbfgs import Solution

Floats = NDArray[np.float64]
Solve = Callable[[Risk, Floats | None], Solution]

_WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4)


def minimise_rounded(risk: Risk, solve: Solve, start: Floats | None = None) -> Solution:
    """Minimise a risk whose loss has kinks by rounding them ever less; smooth risks are solved at once."""
    if risk.smooth:
        return solve(risk, start)
    for width in _WIDTHS:
        solution = solve(risk.smoothed(width), start)
        start = solution.theta
    return solution


def minimise_corrected(risk: NonNegativeRisk, solve: Solve, margins: Callable[[Floats], Floats]) -> Solution:
    """Minimise max(J, J+) + penalty exactly, as the saddle point max over t of min J+ + t J- + penalty.

    The minimum in theta is concave in t with slope J-(theta_t). If that is not negative at t = 1 the correction does
    nothing and J itself is minimal; otherwise J- = 0 at the answer, found by a root search in t.
    """
    current = minimise_rounded(risk.relaxed(1.0), solve)
    if risk.negative_part(margins(current.theta)) >= 0:
        return current
    n_iter, best, closest = current.n_iter, current, np.inf

    def slope(share: float) -> float:
        nonlocal current, n_iter, best, closest
        current = minimise_rounded(risk.relaxed(share), solve, current.theta)
        n_iter += current.n_iter
        negative = risk.negative_part(margins(current.theta))
        if abs(negative) < closest:
            best, closest = current, abs(negative)
        return negative

    low = 0.5
    # With an intercept J- grows without bound as t goes to 0, where only a larger intercept is rewarded.
    while slope(low) < 0:
        low /= 2
        if low < 1e-9:  # without one J- may stay below 0, and then J+ alone counts
            return minimise_rounded(risk.relaxed(0.0), solve, current.theta)
    brentq(slope, low, min(2 * low, 1.0), xtol=1e-14, rtol=1e-14, maxiter=60, disp=False)
    return Solution(best.theta, n_iter, best.gradient_norm)
