"""Dual learning (Saito, Morishita and Yasui, SIGIR 2020): how many are positive, and how many of these are seen yet."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from belated.arrays import look_up
from belated.data.labels import Labels
from belated.features.quantiles import weighted_quantiles
from belated.methods.base import Learner, Method
from belated.risks.base import Risk
from belated.risks.weighted import WeightedRisk
from belated.typing import Floats, Ints


class Dual(Method):
    """a = y/(theta N), b = (1 - y/theta)/N with theta = P(seen by its age | positive, x).

    Theta depends on gamma = P(positive | x) and gamma on theta, and they are learned in turn. Age enters theta and not gamma, or the two could
    not be told apart. It begins with one theta for each group of ages. The paper learns theta as it does gamma, from labels y/gamma; where rates
    are low such labels are far above 1, and the fit has no minimum. Here an open row counts by how likely it is to be a positive that
    is not seen, gamma (1 - theta) / (1 - gamma theta), which has the same fixed point.

    Parameters
    ----------
    rounds : int
        How often gamma and theta are learned in turn.
    bins : int
        Groups of age, at quantiles.
    least : float
        Theta is kept from falling below this.

    Examples
    --------
    >>> from belated import Dual, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(Dual(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.146
    """

    needs_delay = True
    has_auxiliary_fits = True

    def __init__(self, rounds: int = 3, bins: int = 10, least: float = 0.05) -> None:
        self.rounds = rounds
        self.bins = bins
        self.least = least

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        if self.rounds < 0 or self.bins < 1 or not 0 < self.least < 1:
            raise ValueError(
                f"rounds={self.rounds!r} must be at least 0, bins={self.bins!r} at least 1 and least={self.least!r} between 0 and 1."
            )
        return _risk(labels, self.seen(labels, learner))

    def seen(self, labels: Labels, learner: Learner) -> Floats:
        """Theta of each row at its age; 1 from the horizon on."""
        assert labels.elapsed is not None
        ages = labels.elapsed if labels.horizon is None else np.minimum(labels.elapsed, labels.horizon)
        edges = weighted_quantiles(ages, labels.weight, self.bins) + labels.tie_width
        group = np.searchsorted(edges[edges < ages.max()], ages)
        over = np.zeros_like(labels.y) if labels.horizon is None else labels.elapsed >= labels.horizon
        share = labels.weight / labels.total
        rows, alone = np.ones_like(labels.y), np.zeros_like(group)

        def clipped(theta: Floats) -> Floats:
            return np.where(over, 1.0, np.clip(theta, self.least, 1.0))

        theta = clipped(_rates(labels, group))
        for _ in range(self.rounds):
            gamma = expit(learner(_risk(labels, theta), rows, alone, alone))
            hidden = gamma * (1.0 - theta) / np.maximum(1.0 - gamma * theta, 1e-12)
            positives = WeightedRisk(share * labels.y, share * np.where(labels.y, 0.0, hidden))
            theta = clipped(expit(learner(positives, rows, group, group)))
        return theta


def _risk(labels: Labels, seen: Floats) -> WeightedRisk:
    share = labels.weight / labels.total
    a = share * labels.y / seen
    return WeightedRisk(a, share - a)


def _rates(labels: Labels, group: Ints) -> Floats:
    """The rate of positives in each group of ages, over that in the group with the most."""
    total = np.bincount(group, labels.weight)
    rate = np.maximum.accumulate(np.bincount(group, labels.weight * labels.y) / np.maximum(total, 1e-300))
    found: Floats = look_up(rate / max(rate.max(), 1e-300), group)
    return found
