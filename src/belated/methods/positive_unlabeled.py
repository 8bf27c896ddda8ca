"""Positive-unlabeled learning: known positives on one side, everything unlabeled on the other."""

from __future__ import annotations

from belated.data.labels import Labels
from belated.methods.base import Learner, Method, require_mature_positives
from belated.risks.base import Risk
from belated.risks.losses import Loss, resolve_loss
from belated.risks.weighted import WeightedRisk


class PNUTW(Method):
    """PUTW and TW mixed: omega PUTW + (1 - omega) TW.

    a = mature y/M, b = omega (1/N - mature y/M) + (1-omega) mature (1-y)/M.

    Examples
    --------
    >>> from belated import PNUTW, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(PNUTW(omega=0.3), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.142
    """

    needs_window = True

    def __init__(self, omega: float = 0.5, loss: str | Loss = "logistic") -> None:
        self.omega = omega
        self.loss = loss

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        if not 0 <= self.omega <= 1:
            raise ValueError(f"omega={self.omega!r} must be between 0 (TW) and 1 (PUTW).")
        loss = resolve_loss(self.loss, self.omega > 0, type(self).__name__)
        require_mature_positives(labels, type(self).__name__)
        mature = labels.weight * labels.mature / labels.mature_total
        a = mature * labels.y
        b = self.omega * (labels.weight / labels.total - a) + (1 - self.omega) * mature * ~labels.y
        return WeightedRisk(a, b, loss)


class PUTW(PNUTW):
    """Mature positives against all rows as unlabeled.

    a = mature y/M, b = 1/N - mature y/M.

    Examples
    --------
    >>> from belated import PUTW, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(PUTW(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.145
    """

    omega = 1.0

    def __init__(self, loss: str | Loss = "logistic") -> None:
        self.loss = loss


class PU(Method):
    """Positive-unlabeled learning of Ktena et al. (2019), with a class prior.

    a = prior y/sum(y), b = 1/N - prior y/sum(y). It estimates a multiple of the biased probability: positives that are
    still to come count as unlabeled, as in BL. ``prior=None`` takes the rate of the mature rows.

    Examples
    --------
    >>> from belated import PU, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(PU(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.145
    """

    def __init__(self, prior: float | None = None, loss: str | Loss = "logistic") -> None:
        self.prior = prior
        self.loss = loss

    @property
    def needs_window(self) -> bool:  # type: ignore[override]
        return self.prior is None

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        if self.prior is not None and not 0 < self.prior < 1:
            raise ValueError(f"prior={self.prior!r} must be between 0 and 1.")
        if self.prior is None:
            require_mature_positives(labels, "PU")
        positives = labels.weight * labels.y
        prior = self.prior if self.prior is not None else positives[labels.mature].sum() / labels.mature_total
        a = prior * positives / positives.sum()
        return WeightedRisk(a, labels.weight / labels.total - a, resolve_loss(self.loss, True, "PU"))
