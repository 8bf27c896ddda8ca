"""Age: the age of a row as one more feature, what practitioners try first."""

from __future__ import annotations

import numpy as np

from belated.cluster.sharded import row_numbers
from belated.data.labels import Labels
from belated.features.quantiles import weighted_quantiles
from belated.methods.base import Learner, Method
from belated.risks.base import Risk
from belated.risks.links import Link
from belated.risks.occurring import LastGroup, OccurringRisk, levels_of
from belated.typing import Floats


class Age(Method):
    """BL with age as a feature, monotone in it where the model can be; predictions are those of the oldest age.

    Age enters as ``bins`` groups of about as many rows each; the last ends where the horizon does. A model that is linear in
    the features has one level a group, so that age shifts all rows alike, and the levels are not held to an order.

    Parameters
    ----------
    bins : int

    Examples
    --------
    >>> from belated import Age, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(Age()).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.147
    """

    needs_delay = True
    has_groups = True

    def __init__(self, bins: int = 10) -> None:
        self.bins = bins

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        if self.bins < 2:
            raise ValueError(f"bins={self.bins!r} must be at least 2.")
        ages = _ages(labels)
        edges = weighted_quantiles(ages, labels.weight, self.bins) + labels.tie_width
        edges = edges[edges < ages.max()]
        levels = levels_of(np.searchsorted(edges, ages), labels.weight, labels.y, len(edges) + 1)
        return _risk(labels, LastGroup(edges, levels))

    def risk_of_others(self, labels: Labels, link: Link, learner: Learner) -> Risk:
        if not isinstance(link, LastGroup):  # fitted without times
            return super().risk_of_others(labels, link, learner)
        return _risk(labels, link)


def _ages(labels: Labels) -> Floats:
    assert labels.elapsed is not None
    return labels.elapsed if labels.horizon is None else np.minimum(labels.elapsed, labels.horizon)


def _risk(labels: Labels, link: LastGroup) -> Risk:
    group, share = np.searchsorted(link.edges, _ages(labels)), labels.weight / labels.total
    return OccurringRisk(row_numbers(group), group, share, labels.y, True, link)
