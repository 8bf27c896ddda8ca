"""TW: only rows older than the window."""

from __future__ import annotations

from belated.data.labels import Observed
from belated.methods.base import Learner, Method, require_mature_positives
from belated.risks.base import Risk, WeightedRisk
from belated.risks.losses import Loss, resolve_loss


class TW(Method):
    """Time window: train on mature rows alone.

    a = mature y/M, b = mature (1-y)/M.
    """

    needs_window = True

    def __init__(self, loss: str | Loss = "logistic") -> None:
        self.loss = loss

    def risk(self, observed: Observed, learner: Learner) -> Risk:
        require_mature_positives(observed, "TW")
        share = observed.weight * observed.mature / observed.mature_total
        return WeightedRisk(share * observed.y, share * ~observed.y, resolve_loss(self.loss, False, "TW"))
