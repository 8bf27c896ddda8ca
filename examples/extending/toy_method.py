"""A method in one file: a young negative counts less, because it may still turn positive.

A negative of age e counts min(e / window, 1); positives count in full. That is crude (the true correction depends on when
positives arrive), but it is a whole method: it says what it needs and returns a risk.
"""

from __future__ import annotations

import numpy as np

from belated.data.labels import Labels
from belated.methods.base import Learner, Method
from belated.risks.weighted import WeightedRisk


class Ramp(Method):
    """a = y/N, b = (1 - y) min(e / window, 1)/N."""

    needs_window = True

    def risk(self, labels: Labels, learner: Learner) -> WeightedRisk:
        assert labels.elapsed is not None and labels.window is not None  # a method that needs a window is given both
        share = labels.weight / labels.total
        trust = np.minimum(labels.elapsed / labels.window, 1.0)
        return WeightedRisk(share * labels.y, share * ~labels.y * trust)
