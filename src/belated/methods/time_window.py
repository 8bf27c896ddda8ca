"""TW: only rows older than the window."""

from __future__ import annotations

from belated.data.labels import Labels
from belated.methods.base import Learner, Method, require_mature_positives
from belated.risks.base import Risk
from belated.risks.losses import Loss, resolve_loss
from belated.risks.weighted import WeightedRisk


class TW(Method):
    """Time window: train on mature rows alone.

    a = mature y/M, b = mature (1-y)/M.

    Examples
    --------
    >>> from belated import TW, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(TW(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.143
    """

    needs_window = True

    def __init__(self, loss: str | Loss = "logistic") -> None:
        self.loss = loss

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        require_mature_positives(labels, "TW")
        share = labels.weight * labels.mature / labels.mature_total
        return WeightedRisk(share * labels.y, share * ~labels.y, resolve_loss(self.loss, False, "TW"))
