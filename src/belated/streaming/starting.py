"""How a stream begins: with what a classifier learned from a snapshot believes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from belated.data.durations import DAY
from belated.data.snapshot import Snapshot
from belated.evaluation.delay_curve import delay_curve
from belated.streaming.methods.base import PositiveBy
from belated.typing import Floats

if TYPE_CHECKING:
    from belated.classifier import DelayedFeedbackClassifier


def positive_by(classifier: DelayedFeedbackClassifier, snapshot: Snapshot, X: Any) -> PositiveBy:
    """P(positive by an age | x) of rows X, for ages in microseconds.

    From the classifier's own law of delays where it has one; else from its probabilities, and the delays of the snapshot as one
    curve for all rows.
    """
    assert snapshot.horizon is not None
    end = round(snapshot.horizon * DAY)
    p = classifier.predict_proba(X)[:, 1]
    if classifier.method_.has_delay_law and hasattr(classifier.link_, "law"):
        margins, shared = classifier.model_.margins(X), classifier.model_.shared_
        link: Any = classifier.link_
        ahead = (link.horizon - snapshot.horizon) if link.horizon is not None else 0.0  # of delays on a grid

        def by_law(age: int) -> Floats:
            return p if age >= end else link.positive_by(margins, shared, age / DAY + ahead)

        return by_law
    curve = delay_curve(snapshot.elapsed, snapshot.delay, snapshot.horizon)

    def by_curve(age: int) -> Floats:
        return p * float(curve.seen(np.array(age / DAY))) if age < end else p

    return by_curve
