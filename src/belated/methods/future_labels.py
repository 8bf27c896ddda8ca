"""ULC (Wang et al., KDD 2023): labels corrected by how likely each open row is to turn positive later."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from belated.arrays import look_up
from belated.data.labels import Labels
from belated.features.quantiles import weighted_quantiles
from belated.methods.base import Learner, Method, warn_if_nothing_late
from belated.risks.base import Risk
from belated.risks.occurring import OffsetRisk, levels_of
from belated.risks.weighted import WeightedRisk
from belated.typing import Floats


class ULC(Method):
    """Unbiased label correction: a = (y + (1-y) u)/N, b = (1-y)(1-u)/N with u = P(turns positive later | x, age, not yet).

    The clock is set back by one window. Rows that were not positive then teach u: did they turn positive in the window? What they
    do later still is missing from that, so u is learned again, with u itself as the label of rows that have not turned
    positive by now: P(later) = P(in the window) + P(not in the window) P(after it).

    Parameters
    ----------
    rounds : int
        How often u is learned; 1 leaves out what comes later than a window.
    bins : int
        Age enters as about twice as many groups, at quantiles of age and of delay.

    Examples
    --------
    >>> from belated import ULC, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(ULC(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.146
    """

    needs_window = True
    needs_delay = True
    rewinds = True
    has_auxiliary_fits = True

    def __init__(self, rounds: int = 3, bins: int = 10) -> None:
        self.rounds = rounds
        self.bins = bins

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        if self.rounds < 1 or self.bins < 1:
            raise ValueError(f"rounds={self.rounds!r} and bins={self.bins!r} must be at least 1.")
        warn_if_nothing_late(labels, "ULC")
        share = labels.weight / labels.total
        soft = np.where(labels.y, 1.0, self.later(labels, learner))
        return WeightedRisk(share * soft, share * (1.0 - soft))

    def later(self, labels: Labels, learner: Learner) -> Floats:
        """u of each row at its age now; 0 from the horizon on."""
        assert labels.elapsed is not None
        if not labels.late.any():
            return np.zeros_like(labels.weight)
        rows = labels.mature & ~labels.early
        ages = labels.elapsed if labels.horizon is None else np.minimum(labels.elapsed, labels.horizon)
        by_age, by_delay = (
            weighted_quantiles(values, labels.weight[some], self.bins)
            for values, some in ((labels.rewound_age[rows], rows), (_delays(labels), labels.y))
        )
        edges = np.unique(np.concatenate([by_age, by_delay])) + labels.tie_width
        then, now = np.searchsorted(edges, labels.rewound_age)[rows], np.searchsorted(edges, ages)
        share = labels.weight[rows] / labels.weight[rows].sum()
        over = np.zeros_like(rows) if labels.horizon is None else labels.elapsed >= labels.horizon
        u = np.zeros_like(labels.weight)
        for _ in range(self.rounds):
            target = np.where(labels.late[rows], 1.0, u[rows])
            # Features add to the level of each age, so that a penalty does not draw ages together.
            levels = levels_of(then, share, target, len(edges) + 1)
            risk = OffsetRisk(share * target, share * (1.0 - target), look_up(levels, then))
            u = np.where(over, 0.0, expit(look_up(levels, now) + learner(risk, rows, then, now)))
        return u


def _delays(labels: Labels) -> Floats:
    assert labels.delay is not None
    return labels.delay[labels.y]
