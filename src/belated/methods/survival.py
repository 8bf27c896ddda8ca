"""Hazard: the survival analyst's answer, proportional hazards with a piecewise-constant baseline."""

from __future__ import annotations

from belated.data.labels import Labels
from belated.methods.base import Learner, Method
from belated.methods.delay_model import check_delays, event_times, piecewise_law
from belated.risks.base import Risk
from belated.risks.hazard import HazardLink, HazardRisk
from belated.risks.links import Link


class Hazard(Method):
    """Hazard exp(eta_k + g(x)) on the k-th interval of ages, without a share that never turns positive.

    Predictions are p = 1 - exp(-Lambda(H) exp(g)), with H the horizon, or the oldest age where there is none. Convex;
    uses every row; needs no window. ``intervals``, ``smoothing`` and delays on a grid are as in DFM.

    Examples
    --------
    >>> from belated import Hazard, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(Hazard()).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.149
    """

    needs_delay = True
    has_delay_law = True

    def __init__(self, intervals: int = 8, smoothing: float = 0.1) -> None:
        self.intervals = intervals
        self.smoothing = smoothing

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        assert labels.elapsed is not None
        check_delays(labels, "Hazard")
        events, ahead = event_times(labels)
        law = piecewise_law(events, labels.effective_rows, self.intervals, self.smoothing)
        horizon = float(labels.elapsed.max()) if labels.horizon is None else labels.horizon
        return HazardRisk(events, law, horizon + ahead)

    def risk_of_others(self, labels: Labels, link: Link, learner: Learner) -> Risk:
        if not isinstance(link, HazardLink):  # fitted without times
            return super().risk_of_others(labels, link, learner)
        return HazardRisk(event_times(labels)[0], link.law, link.horizon)
