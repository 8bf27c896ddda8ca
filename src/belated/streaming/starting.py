"""How a stream begins: with what a classifier learned from a snapshot believes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from belated.data.durations import DAY
from belated.streaming.methods.base import PositiveBy

if TYPE_CHECKING:
    from belated.classifier import DelayedFeedbackClassifier


def positive_by(classifier: DelayedFeedbackClassifier, X: Any) -> PositiveBy:
    """P(positive by an age | x) of rows X, for ages in microseconds."""
    _, by = classifier.curve(X)
    return lambda age: by(np.full(1, age / DAY))
