"""FSIW (Yasui et al., WWW 2020): importance weights for the shift between labels now and labels in the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from belated.data.labels import Labels
from belated.features.quantiles import weighted_quantiles
from belated.methods.base import Learner, Method, warn_if_nothing_late
from belated.risks.base import Risk
from belated.risks.losses import Loss, resolve_loss
from belated.risks.weighted import WeightedRisk
from belated.typing import Bools, Floats, Ints


class FSIW(Method):
    """Feedback shift importance weighting.

    a = y r1/N, b = (1-y) r0/N with

    - r1 = 1 / p(positive already | positive in the end, x, e), learned on mature positives,
    - r0 = p(negative in the end | not positive yet, x, e), learned on mature rows that were negative a window ago.

    Both auxiliary models see the features and the age one window ago, and are applied to the age now. Age enters as
    about ``2 * bins`` groups at quantiles of age and of delay; more of them, or a larger ``max_weight``, trade bias for
    variance, and 1 / p makes a bias of variance too.

    The auxiliary models are regularised as the main one is, age included.

    Parameters
    ----------
    bins : int
    max_weight : float
        Where r1 is cut.

    Examples
    --------
    >>> from belated import FSIW, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(FSIW(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.147
    """

    needs_window = True
    needs_delay = True
    rewinds = True
    has_auxiliary_fits = True

    def __init__(self, bins: int = 5, max_weight: float = 20.0, loss: str | Loss = "logistic") -> None:
        self.bins = bins
        self.max_weight = max_weight
        self.loss = loss

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        loss = resolve_loss(self.loss, False, "FSIW")
        if not self.max_weight >= 1 or self.bins < 1:
            raise ValueError(f"max_weight={self.max_weight!r} and bins={self.bins!r} must be at least 1.")
        warn_if_nothing_late(labels, "FSIW")
        r1, r0 = self._ratios(labels, learner)
        share = labels.weight / labels.total
        return WeightedRisk(share * labels.y * r1, share * ~labels.y * r0, loss)

    def _ratios(self, labels: Labels, learner: Learner) -> tuple[Floats, Floats]:
        if not labels.late.any():
            ones = np.ones_like(labels.weight)
            return ones, ones
        seen, final = (question.answer(learner) for question in _questions(labels, self.bins))
        return 1.0 / np.maximum(seen, 1.0 / self.max_weight), final


@dataclass(frozen=True)
class _Question:
    """A probability to learn: on which rows and their age groups back then, and the age groups now to which it is applied."""

    rows: Bools
    risk: WeightedRisk
    then: Ints
    now: Ints
    known: float | None  # where all of the rows agree

    def answer(self, learner: Learner) -> Floats:
        if self.known is not None:
            return np.full_like(self.now, self.known, dtype=np.float64)
        return expit(learner(self.risk, self.rows, self.then, self.now))


def _questions(labels: Labels, bins: int) -> tuple[_Question, _Question]:
    """p(positive already | positive in the end) and p(negative in the end | not positive yet). Kept, as l2 does not matter."""
    kept: dict[int, tuple[_Question, _Question]] = vars(labels).setdefault("_fsiw_questions", {})
    if bins not in kept:
        assert labels.elapsed is not None and labels.delay is not None
        converted = labels.mature & labels.y
        waiting = labels.mature & ~labels.early
        ages = weighted_quantiles(labels.rewound_age[labels.mature], labels.weight[labels.mature], bins)
        delays = weighted_quantiles(labels.delay[converted], labels.weight[converted], bins)
        edges = np.unique(np.concatenate([ages, delays])) + labels.tie_width
        then, now = np.searchsorted(edges, labels.rewound_age), np.searchsorted(edges, labels.elapsed)

        def question(target: Bools, rows: Bools) -> _Question:
            share, inside = labels.weight[rows] / labels.weight[rows].sum(), target[rows]
            known = float(inside[0]) if inside.all() or not inside.any() else None
            return _Question(rows, WeightedRisk(share * inside, share * ~inside), then[rows], now, known)

        kept[bins] = question(labels.early, converted), question(~labels.y, waiting)
    return kept[bins]
