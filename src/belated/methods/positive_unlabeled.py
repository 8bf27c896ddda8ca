"""Positive-unlabeled learning: known positives on one side, everything unlabeled on the other."""

from __future__ import annotations

from belated.data.labels import Observed
from belated.methods.base import Learner, Method, require_mature_positives
from belated.risks.base import Risk, WeightedRisk
from belated.risks.losses import Loss, resolve_loss


class PNUTW(Method):
    """PUTW and TW mixed: omega PUTW + (1 - omega) TW.

    a = mature y/M, b = omega (1/N - mature y/M) + (1-omega) mature (1-y)/M.
    """

    needs_window = True

    def __init__(self, omega: float = 0.5, loss: str | Loss = "logistic") -> None:
        self.omega = omega
        self.loss = loss

    def risk(self, observed: Observed, learner: Learner) -> Risk:
        if not 0 <= self.omega <= 1:
            raise ValueError(f"omega={self.omega!r} must be between 0 (TW) and 1 (PUTW).")
        loss = resolve_loss(self.loss, self.omega > 0, type(self).__name__)
        require_mature_positives(observed, type(self).__name__)
        mature = observed.weight * observed.mature / observed.mature_total
        a = mature * observed.y
        b = self.omega * (observed.weight / observed.total - a) + (1 - self.omega) * mature * ~observed.y
        return WeightedRisk(a, b, loss)


class PUTW(PNUTW):
    """Mature positives against all rows as unlabeled.

    a = mature y/M, b = 1/N - mature y/M.
    """

    omega = 1.0

    def __init__(self, loss: str | Loss = "logistic") -> None:
        self.loss = loss


class PU(Method):
    """Positive-unlabeled learning of Ktena et al. (2019), with a class prior.

    a = prior y/sum(y), b = 1/N - prior y/sum(y). It estimates a multiple of the biased probability: positives that are
    still to come count as unlabeled, as in BL. ``prior=None`` takes the rate of the mature rows.
    """

    def __init__(self, prior: float | None = None, loss: str | Loss = "logistic") -> None:
        self.prior = prior
        self.loss = loss

    @property
    def needs_window(self) -> bool:  # type: ignore[override]
        return self.prior is None

    def risk(self, observed: Observed, learner: Learner) -> Risk:
        if self.prior is not None and not 0 < self.prior < 1:
            raise ValueError(f"prior={self.prior!r} must be between 0 and 1.")
        if self.prior is None:
            require_mature_positives(observed, "PU")
        positives = observed.weight * observed.y
        prior = self.prior if self.prior is not None else positives[observed.mature].sum() / observed.mature_total
        a = prior * positives / positives.sum()
        return WeightedRisk(a, observed.weight / observed.total - a, resolve_loss(self.loss, True, "PU"))
