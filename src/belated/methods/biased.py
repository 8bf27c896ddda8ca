"""BL: labels as they stand."""

from __future__ import annotations

from belated.data.labels import Labels
from belated.methods.base import Learner, Method, final_label_risk
from belated.risks.base import Risk
from belated.risks.losses import Loss, resolve_loss


class BL(Method):
    """Biased learning: every label not yet positive counts as negative ("naive").

    a = y/N, b = (1-y)/N.

    Examples
    --------
    >>> from belated import BL, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(BL(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.139
    >>> round(float(snap.y.mean()), 3)  # what is known so far is all that it can learn
    0.139
    """

    def __init__(self, loss: str | Loss = "logistic") -> None:
        self.loss = loss

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        return final_label_risk(labels, resolve_loss(self.loss, False, "BL"))
