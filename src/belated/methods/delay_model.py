"""DFM (Chapelle, KDD 2014): the rate and the delay learned together, under one of three delay laws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from belated.laws import DelayLaw, Exponential, Piecewise, Weibull
from belated.likelihoods import CureRisk
from belated.methods.base import Learner, Method
from belated.observed import Observed, quantiles
from belated.risk import Risk

Floats = NDArray[np.float64]


def event_times(observed: Observed) -> Floats:
    """The delay of each positive, and the age of each other row, cut at the horizon."""
    assert observed.elapsed is not None and observed.delay is not None
    ages = observed.elapsed if observed.horizon is None else np.minimum(observed.elapsed, observed.horizon)
    return np.where(observed.y, observed.delay, ages)


def piecewise_law(observed: Observed, intervals: int, smoothing: float) -> Piecewise:
    """A piecewise law whose knots are the quantiles of the observed delays above 0."""
    if intervals < 1 or smoothing < 0:
        raise ValueError(f"intervals={intervals!r} must be at least 1 and smoothing={smoothing!r} at least 0.")
    assert observed.delay is not None
    delays, weight = observed.delay[observed.y], observed.weight[observed.y]
    knots = quantiles(delays, weight, intervals)
    knots = knots[(knots > 0) & (knots < delays.max())]
    return Piecewise(knots, smoothing / observed.total)


class DFM(Method):
    """Delayed feedback model: a share sigmoid(g) turns positive, after a delay whose hazard is scaled by exp(h).

    It needs no window. Predictions are p(positive within the horizon | x), or sigmoid(g) where there is no horizon.

    Parameters
    ----------
    delay : {"exponential", "weibull", "piecewise"}
        The law of the delay. A Weibull delay of exactly 0 is read as half the smallest one above 0.
    intervals : int
        Of the piecewise law; the knots are quantiles of the observed delays.
    smoothing : float
        Of the piecewise law: (smoothing / N) times the squared differences of neighbouring log hazards.
    """

    needs_delay = True
    means_nothing_without_times = True

    def __init__(self, delay: str = "exponential", intervals: int = 8, smoothing: float = 1.0) -> None:
        self.delay = delay
        self.intervals = intervals
        self.smoothing = smoothing

    def risk(self, observed: Observed, learner: Learner) -> Risk:
        return CureRisk(
            observed.y, event_times(observed), observed.weight / observed.total, self._law(observed), observed.horizon
        )

    def _law(self, observed: Observed) -> DelayLaw:
        if self.delay == "exponential":
            return Exponential()
        if self.delay == "weibull":
            times = event_times(observed)
            return Weibull(resolution=float(times[times > 0].min()) / 2)
        if self.delay == "piecewise":
            return piecewise_law(observed, self.intervals, self.smoothing)
        raise ValueError(f"delay={self.delay!r} is not a delay law; choose 'exponential', 'weibull' or 'piecewise'.")
