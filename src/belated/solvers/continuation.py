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
    solution = minimise_rounded(risk.relaxed(1.0), solve)
    if risk.negative_part(margins(solution.theta)) >= 0:
        return solution
    n_iter = solution.n_iter

    def slope(share: float) -> float:
        nonlocal solution, n_iter
        solution = minimise_rounded(risk.relaxed(share), solve, solution.theta)
        n_iter += solution.n_iter
        return risk.negative_part(margins(solution.theta))

    low = 0.5
    # J- grows without bound as t goes to 0, where only an ever larger intercept is rewarded.
    while slope(low) < 0 and low > 1e-12:
        low /= 2
    brentq(slope, low, min(2 * low, 1.0), xtol=1e-12, rtol=1e-10)
    return Solution(solution.theta, n_iter, solution.gradient_norm)
