"""Intervals from how cut-offs differ.

Rows of one cut-off share its weather: what was booked that month, which campaigns ran. Intervals that took rows for
independent would be far too narrow. So each cut-off counts as one observation, and intervals are Student's t of those
few numbers. Fewer than three carry none.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from belated.typing import Floats

_FEWEST = 3
_LEVEL = 0.975


def mean_interval(values: Floats) -> list[float] | None:
    """The 95% interval of a mean over cut-offs; None where there are too few of them.

    >>> mean_interval(np.array([1.0, 2.0, 3.0]))
    [-0.484..., 4.484...]
    """
    count = len(values)
    if count < _FEWEST or not np.isfinite(values).all():
        return None
    half = float(stats.t.ppf(_LEVEL, count - 1) * values.std(ddof=1) / np.sqrt(count))
    return [float(values.mean()) - half, float(values.mean()) + half]


def ratio_interval(top: Floats, bottom: Floats, inflation: float = 1.0) -> list[float] | None:
    """The 95% interval of mean(top) / mean(bottom), by Fieller's theorem: all ratios r for which top - r bottom may have mean 0.

    Standard errors are multiplied by ``inflation``. None where the mean of ``bottom`` may itself be 0, so that the ratio may be
    anything.
    """
    count = len(top)
    if count < _FEWEST or not (np.isfinite(top).all() and np.isfinite(bottom).all()):
        return None
    spread = np.cov(top, bottom) * (inflation * stats.t.ppf(_LEVEL, count - 1)) ** 2 / count
    a = bottom.mean() ** 2 - spread[1, 1]
    b = top.mean() * bottom.mean() - spread[0, 1]
    c = top.mean() ** 2 - spread[0, 0]
    if not a > 0:
        return None
    half = np.sqrt(max(b * b - a * c, 0.0))
    return [float((b - half) / a), float((b + half) / a)]


def inflation(values: Floats, without: Floats) -> float:
    """By how much the standard error of a cross-fitted mean exceeds that of independent values.

    What was chosen by the other cut-offs makes the values of all of them depend on each other. With ``values`` scored on each
    cut-off, and ``without`` the same mean had there been no such cut-off, the squared differences of the two exceed the
    variance of a value by the mean square error sought: nested cross-validation (Bates, Hastie and Tibshirani, 2023).
    """
    count, variance = len(values), float(values.var(ddof=1)) if len(values) > 1 else 0.0
    if count < _FEWEST or not variance > 0:
        return 1.0
    # The mean without a cut-off is over one value less, so this errs on the wide side, by a tenth with six cut-offs.
    error = float(np.mean((without - values) ** 2)) - variance
    return float(np.sqrt(np.clip(error / (variance / count), 1.0, count)))


def confidence_above_zero(values: Floats, inflation: float = 1.0) -> float | None:
    """How sure it is that a mean over cut-offs is above 0: one minus the p-value of the one-sided t test."""
    count = len(values)
    if count < _FEWEST:
        return None
    spread = inflation * values.std(ddof=1) / np.sqrt(count)
    if not spread > 0:
        return float(values.mean() > 0)
    return float(stats.t.cdf(values.mean() / spread, count - 1))
