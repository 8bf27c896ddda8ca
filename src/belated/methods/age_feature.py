"""Age: the age of a row as one more feature, what practitioners try first."""

from __future__ import annotations

import numpy as np

from belated.data.labels import Labels
from belated.features.quantiles import weighted_quantiles
from belated.methods.base import Learner, Method
from belated.risks.base import Risk
from belated.risks.occurring import LastGroup, OccurringRisk, weighted_occurrences


class Age(Method):
    """BL with age as a feature, monotone in it where the model can be; predictions are those of the oldest age.

    Age enters as ``bins`` groups of about as many rows each; the last ends where the horizon does. A model that is linear in
    the features has one level a group, so that age shifts all rows alike, and the levels are not held to an order.

    Parameters
    ----------
    bins : int
    """

    needs_delay = True
    has_groups = True

    def __init__(self, bins: int = 10) -> None:
        self.bins = bins

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        assert labels.elapsed is not None
        if self.bins < 2:
            raise ValueError(f"bins={self.bins!r} must be at least 2.")
        ages = labels.elapsed if labels.horizon is None else np.minimum(labels.elapsed, labels.horizon)
        edges = weighted_quantiles(ages, labels.weight, self.bins) + labels.tie_width
        group = np.searchsorted(edges, ages)
        rows, share = np.arange(len(ages)), labels.weight / labels.total
        found, levels = weighted_occurrences(rows, group, share, labels.y, increasing=True)
        return OccurringRisk(found, LastGroup(float(levels[-1])))
