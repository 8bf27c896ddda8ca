"""BL: labels as they stand."""

from __future__ import annotations

from belated.data.labels import Labels
from belated.methods.base import Learner, Method, final_label_risk
from belated.risks.base import Risk
from belated.risks.losses import Loss, resolve_loss


class BL(Method):
    """Biased learning: every label not yet positive counts as negative ("naive").

    a = y/N, b = (1-y)/N.
    """

    def __init__(self, loss: str | Loss = "logistic") -> None:
        self.loss = loss

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        return final_label_risk(labels, resolve_loss(self.loss, False, "BL"))
