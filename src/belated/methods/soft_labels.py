"""SoftLabels: a simple teacher says what open rows will become, and any model learns from that. Our own."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from belated.cluster.sharded import by_rows
from belated.data.durations import is_number
from belated.data.labels import Labels
from belated.data.stretches import STRETCHES, stretch_of_rows
from belated.methods import METHODS, resolve_method
from belated.methods.base import Learner, Method
from belated.methods.delay_model import event_times
from belated.risks.base import Risk
from belated.risks.weighted import WeightedRisk
from belated.typing import Bools, Floats


class SoftLabels(Method):
    """Labels of 1 for positives, and for open rows the probability that they turn positive within the horizon yet.

    That probability comes from a teacher: a linear model of a method with a law of delays, whose l2 is chosen by
    cross-validation. With g, S and H the teacher's margin, survival and horizon, an open row of age e has the label
    w = sigmoid(g) (S(e) - S(H)) / (1 - sigmoid(g) (1 - S(e))),
    which is 0 from the horizon on; a = w/N, b = (1-w)/N. So the correction is that of a simple model, which cannot take young
    rows for a kind of rows, and the features are those of a strong one. It repeats what the teacher believes: compare both.

    Parameters
    ----------
    teacher : str or Method
        DFM or Hazard.
    cross_fit : int, optional
        Label each of so many parts of the history, made of stretches of time, by a teacher of the others. By default one teacher
        labels all rows, which predicted better wherever it was measured (docs/models.md).
    l2 : float, optional
        Of the teacher; by default chosen by cross-validation.

    Examples
    --------
    >>> from belated import SoftLabels, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(SoftLabels(l2=1e-4)).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.149
    """

    needs_delay = True
    has_teacher = True

    def __init__(
        self, teacher: str | Method = "dfm-piecewise", cross_fit: int | None = None, l2: float | None = None
    ) -> None:
        self.teacher = teacher
        self.cross_fit = cross_fit
        self.l2 = l2

    def check(self, labels: Labels) -> None:
        super().check(labels)
        teacher = self._teacher()
        if not teacher.has_delay_law:
            raise ValueError(
                f"teacher={self.teacher!r} says nothing about delays; take DFM, Hazard, or a method with a delay law of your own."
            )
        parts = self.cross_fit
        whole = isinstance(parts, Integral) and not isinstance(parts, bool)
        if parts is not None and not (whole and 2 <= parts <= STRETCHES):
            raise ValueError(f"cross_fit={parts!r} must be a whole number between 2 and {STRETCHES}, or None.")
        if self.l2 is not None and not (is_number(self.l2) and 0 <= self.l2 < np.inf):
            raise ValueError(f"l2={self.l2!r} must be a finite number of at least 0, or None to choose it.")
        if labels.elapsed is not None:
            teacher.check(labels)
            if parts is not None and not stretch_of_rows(labels.elapsed).any():
                raise ValueError("cross_fit parts the history, and all rows have the same age: use cross_fit=None.")

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        soft, share = self.labels(labels, learner), labels.weight / labels.total
        return WeightedRisk(share * soft, share * (1.0 - soft))

    def labels(self, labels: Labels, learner: Learner) -> Floats:
        """The label w of each row."""
        if self.cross_fit is None:
            return np.where(labels.y, 1.0, self._still_to_come(labels, learner, None))
        assert labels.elapsed is not None
        fold = stretch_of_rows(labels.elapsed) % self.cross_fit
        found = np.where(labels.y, 1.0, 0.0)
        for k in range(fold.max() + 1):
            mine = (fold == k) & ~labels.y
            found = np.where(mine, self._still_to_come(labels, learner, fold != k), found)
        return found

    def _teacher(self) -> Method:
        if isinstance(self.teacher, str) and self.teacher not in METHODS:
            raise ValueError(
                f"teacher={self.teacher!r} is not known; choose a DFM, or hazard, by name or as an object."
            )
        return resolve_method(self.teacher)

    def _still_to_come(self, labels: Labels, learner: Learner, known: Bools | None) -> Floats:
        taught = learner.teach(self._teacher(), labels, known, self.l2)
        return by_rows(taught.link.still_to_come, taught.margins, taught.shared, event_times(labels)[0].ages)
