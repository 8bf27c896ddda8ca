"""Bands around a forecast: what is drawn, what was fitted on too few rows, and how wrong the same forecast was in the past.

Variances of the three add up. The second and the third are estimates from a handful of refits and of past dates, so quantiles are those of Student's t with as
many degrees of freedom as the sum has (Satterthwaite), and are laid on a gamma distribution, which knows that nothing comes below 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from belated.typing import Floats

_MANY = 1e6


@dataclass(frozen=True)
class Spread:
    """Variances of sums, arrays of one shape, and the degrees of freedom of those that are estimates."""

    drawn: Floats
    fitted: Floats
    drift: Floats
    fits: float
    dates: float

    @property
    def variance(self) -> Floats:
        return self.drawn + self.fitted + self.drift

    @property
    def freedom(self) -> Floats:
        unsure = self.fitted**2 / max(self.fits, 1.0) + self.drift**2 / max(self.dates, 1.0)
        variance = np.maximum(self.variance, 1e-12)
        return np.clip(variance**2 / np.maximum(unsure, variance**2 / _MANY), 1.0, _MANY)


def band(mean: Floats, spread: Spread, level: float, whole: bool) -> tuple[Floats, Floats]:
    """Between which numbers a sum lies with probability ``level``; ``whole`` for counts."""
    tail = (1.0 - level) / 2.0
    wider = (stats.t.ppf(1.0 - tail, spread.freedom) / stats.norm.ppf(1.0 - tail)) ** 2
    mean, variance = np.maximum(mean, 1e-12), np.maximum(spread.variance * wider, 1e-12)
    low, high = (stats.gamma.ppf(q, mean**2 / variance, scale=variance / mean) for q in (tail, 1.0 - tail))
    low, high = np.minimum(np.nan_to_num(low), mean), np.maximum(np.nan_to_num(high), mean)
    return (np.floor(low), np.ceil(high)) if whole else (low, high)


def jackknife(replicates: Floats) -> Floats:
    """The variance of sums (k,) from those with one group of days left out after another (groups, k)."""
    count = len(replicates)
    return (count - 1) / count * ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0)


def overdispersion(happened: Floats, expected: Floats, variance: Floats) -> float:
    """By how much sums over days vary more than independent rows would; at least 1."""
    known = variance > 0
    if known.sum() < 5:
        return 1.0
    return max(1.0, float(((happened - expected)[known] ** 2 / variance[known]).sum() / (known.sum() - 1)))


def drift(means: Floats, came: Floats, variances: Floats) -> float:
    """The squared relative error of past forecasts, as differences of logarithms, beyond what ``variances`` explain."""
    if not len(means):
        return 0.0
    means, came = np.maximum(means, 0.5), np.maximum(came, 0.5)
    return max(0.0, float((np.log(came / means) ** 2 - variances / means**2).mean()))
