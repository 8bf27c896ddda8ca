"""ConvDF and NnDF (Yasui and Kato, KDD 2022): what was late one window ago stands in for what is late now."""

from __future__ import annotations

import numpy as np

from belated.arrays import look_up
from belated.data.labels import Labels
from belated.features.quantiles import weighted_quantiles
from belated.methods.base import Learner, Method, warn_if_nothing_late
from belated.risks.base import Risk
from belated.risks.losses import Loss, resolve_loss
from belated.risks.non_negative import NonNegativeRisk
from belated.risks.weighted import WeightedRisk
from belated.typing import Floats

_BINS = 20


def late_weights(labels: Labels, normalizer: str) -> Floats:
    """The weight k of each late row (0 elsewhere), times its sample weight.

    ``"paper"``: k = 1/M. Rows younger than the window are a share window/T of all rows but window/(T - window) of the
    mature rows set back by one window, so this over-corrects by T/(T - window).

    ``"matched"``: k = rho/N, with rho the number of all rows of about this age over the number of mature rows that had
    this age one window ago. It is unbiased, and about 1/N where arrivals are steady.
    """
    if normalizer not in ("matched", "paper"):
        raise ValueError(f"normalizer={normalizer!r} is not known; choose 'matched' or 'paper'.")
    late = labels.late
    if not late.any():
        return np.zeros_like(labels.weight)
    if normalizer == "paper":
        return labels.weight * late / labels.mature_total
    assert labels.elapsed is not None
    then, mature_weight = labels.rewound_age[labels.mature], labels.weight[labels.mature]
    # A bin includes its upper edge. The slack keeps equal ages in one bin, whatever the unit of time.
    edges = weighted_quantiles(then, mature_weight, _BINS) + labels.tie_width
    reached = labels.elapsed <= then.max() + labels.tie_width
    size = len(edges) + 1
    now_count = np.bincount(np.searchsorted(edges, labels.elapsed[reached]), labels.weight[reached], size)
    bin_then = np.searchsorted(edges, labels.rewound_age)
    then_count = np.bincount(bin_then[labels.mature], mature_weight, size)
    ratio = now_count / np.where(then_count > 0, then_count, 1.0)
    return labels.weight * late * look_up(ratio, bin_then) / labels.total


class ConvDF(Method):
    """Convex delayed feedback: BL, plus each late row moved from the negative to the positive side once more.

    a = y/N + late k, b = (1-y)/N - late k. With a linear model the risk is convex although b may be negative.

    Parameters
    ----------
    normalizer : {"matched", "paper"}
        The factor k, see :func:`late_weights`.
    loss : str or Loss
        Must satisfy l(z) - l(-z) = -z.

    Examples
    --------
    >>> from belated import ConvDF, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(ConvDF(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.147
    """

    needs_window = True
    needs_delay = True
    rewinds = True

    def __init__(self, normalizer: str = "matched", loss: str | Loss = "logistic") -> None:
        self.normalizer = normalizer
        self.loss = loss

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        return WeightedRisk(*self._weights(labels), resolve_loss(self.loss, True, type(self).__name__))

    def _weights(self, labels: Labels) -> tuple[Floats, Floats]:
        warn_if_nothing_late(labels, type(self).__name__)
        share = labels.weight / labels.total
        late = late_weights(labels, self.normalizer)
        a, b = share * labels.y + late, share * ~labels.y - late
        if not b.sum() > 0:
            raise ValueError(
                f"{type(self).__name__} with normalizer={self.normalizer!r} and window={labels.window:g} estimates a positive rate of "
                f"{a.sum():.3g}, which is not below 1: late positives of the last window outweigh the rows that are still negative. "
                f"Use another window, or a method that needs none (DFM, Hazard)."
            )
        return a, b


def correction_bound(negative_part: float, largest_loss: float, rows: float, mature: float) -> float:
    """The largest probability with which NnDF's correction biases a fit: Lemma 1 of the paper, as its proof has it.

    exp(-2 (alpha / C)^2 / (3/N + 1/M)) with alpha the negative part of the risk and C the largest loss of a negative; 1 where alpha is not above 0.

    >>> correction_bound(0.02, 1.0, 1000, 500) > 0.8 > 1e-6 > correction_bound(0.2, 1.0, 1000, 500)
    True
    """
    if not negative_part > 0:
        return 1.0
    return float(np.exp(-2.0 * (negative_part / largest_loss) ** 2 / (3.0 / rows + 1.0 / mature)))


def correction_matters_below(rows: float, mature: float, probability: float = 0.05) -> float:
    """The other way round: alpha / C at which the bound is this probability."""
    return float(np.sqrt(-np.log(probability) * (3.0 / rows + 1.0 / mature) / 2.0))


class NnDF(ConvDF):
    """ConvDF with its negative part kept from going below 0: sum a l(g) + max(sum b l(-g), 0).

    Under a model that learns from mini-batches (NetworkModel) the negative part is that of each batch.

    Parameters
    ----------
    normalizer : {"matched", "paper"}
    ascent : bool
        For mini-batches only: climb out of a batch whose negative part is below 0, instead of following the positive part alone.
        This is the paper's algorithm, after Kiryo et al. (2017).
    threshold, step : float
        With ``ascent``: how far below 0 the negative part of a batch may go before that, and the length of the step up.
    loss : str or Loss

    Examples
    --------
    >>> from belated import NnDF, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(NnDF(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.147
    """

    def __init__(
        self,
        normalizer: str = "matched",
        ascent: bool = False,
        loss: str | Loss = "logistic",
        threshold: float = 0.0,
        step: float = 1.0,
    ) -> None:
        self.normalizer = normalizer
        self.ascent = ascent
        self.loss = loss
        self.threshold = threshold
        self.step = step

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        a, b = self._weights(labels)
        if not (self.threshold >= 0 and self.step > 0):
            raise ValueError(f"threshold={self.threshold!r} must be at least 0, and step={self.step!r} above 0.")
        if not self.ascent and (self.threshold, self.step) != (0.0, 1.0):
            raise ValueError("threshold and step belong to ascent=True; without it the negative part is cut at 0.")
        loss = resolve_loss(self.loss, True, "NnDF")
        return NonNegativeRisk(a, b, loss, None, self.ascent, self.threshold, self.step)
