"""BL: labels as they stand."""

from __future__ import annotations

from belated.data.labels import Observed
from belated.methods.base import Learner, Method
from belated.risks.base import Risk, WeightedRisk
from belated.risks.losses import Loss, resolve_loss


class BL(Method):
    """Biased learning: every label not yet positive counts as negative ("naive").

    a = y/N, b = (1-y)/N.
    """

    def __init__(self, loss: str | Loss = "logistic") -> None:
        self.loss = loss

    def risk(self, observed: Observed, learner: Learner) -> Risk:
        share = observed.weight / observed.total
        return WeightedRisk(share * observed.y, share * ~observed.y, resolve_loss(self.loss, False, "BL"))
