"""Hazard: the survival analyst's answer, proportional hazards with a piecewise-constant baseline."""

from __future__ import annotations

from belated.data.labels import Observed
from belated.methods.base import Learner, Method
from belated.methods.delay_model import check_delays, event_times, piecewise_law
from belated.risks.base import Risk
from belated.risks.delays import HazardRisk


class Hazard(Method):
    """Hazard exp(eta_k + g(x)) on the k-th interval of ages, without a share that never turns positive.

    Predictions are p = 1 - exp(-Lambda(H) exp(g)), with H the horizon, or the oldest age where there is none. Convex;
    uses every row; needs no window. ``intervals``, ``smoothing`` and delays on a grid are as in DFM.
    """

    needs_delay = True
    means_nothing_without_times = True

    def __init__(self, intervals: int = 8, smoothing: float = 0.1) -> None:
        self.intervals = intervals
        self.smoothing = smoothing

    def risk(self, observed: Observed, learner: Learner) -> Risk:
        assert observed.elapsed is not None
        check_delays(observed, "Hazard")
        events, ahead = event_times(observed)
        law = piecewise_law(events, observed.total, self.intervals, self.smoothing)
        horizon = float(observed.elapsed.max()) if observed.horizon is None else observed.horizon
        return HazardRisk(events, law, horizon + ahead)
