"""Rows that have waited: what a fitted classifier says of rows that are still negative at their age, and when positives come.

With p(x) the probability of turning positive within the horizon and F(a | x) the share of positives that have been seen by age a, a row that is
negative at age e turns positive with probability p (1 - F(e)) / (1 - p F(e)). DFM and Hazard know F from their own law of delays; for every other
method it is learned in fit from the positives (:mod:`belated.evaluation.delays_given_features`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from belated.cluster.columns import engine_of, with_column
from belated.data.durations import is_number
from belated.data.labels import check_labels, read_ages, read_positives
from belated.data.snapshot import Snapshot
from belated.evaluation.delays_given_features import DelaysGivenFeatures, between_edges, learn_delays
from belated.methods.delay_model import event_times
from belated.risks.links import Link
from belated.tables.frames import open_table, require
from belated.typing import Floats

_HALVINGS = 60
_DOUBLINGS = 60


class WaitingRows:
    """The part of :class:`belated.DelayedFeedbackClassifier` that knows of delays."""

    link_: Link
    horizon_: float | None
    classes_: Any
    _delays_: DelaysGivenFeatures | None
    _ahead_: float  # of the clock of delays, where these are recorded on a grid
    _margins: Callable[[Any], tuple[Floats, Floats]]
    _features: Callable[..., Any]

    @property
    def delays_from(self) -> str:
        """Where its law of delays comes from: ``"method"``, ``"features"`` (learned from the positives), ``"all rows"`` (one curve, since there were too few), or ``"nothing"``."""
        check_is_fitted(self, "model_")
        delays = getattr(self, "_delays_", None)
        if delays is None and hasattr(self.link_, "law"):
            return "method"
        return "nothing" if delays is None else "features" if delays.models else "all rows"

    def learn_delays(self, snapshot: Snapshot) -> Self:
        """Learn when positives come from the positives of a snapshot alone, in place of the law of delays that the method has.

        A law is fitted together with the rate, so an error in one moves the other; this does not, and sums over many rows are closer to what comes. Forecasts do so.
        """
        check_is_fitted(self, "model_")
        labels = check_labels(snapshot.y == 1, snapshot.elapsed, snapshot.delay, None, None, self.horizon_)
        self._ahead_ = event_times(labels)[1]
        self._delays_ = learn_delays(self._features(snapshot.X, reset=False), labels)
        return self

    def predict_incidence(self, X: Any, ages: Any) -> Any:
        """P(positive by each age), of shape (n, ages), for rows that have just arrived.

        Of a Dask or Spark frame, the same frame with a column ``positive_by_AGE`` more for each.

        Parameters
        ----------
        X : as in ``fit``
        ages : sequence of numbers
            In the unit of ``elapsed``: days, for a snapshot.

        >>> from belated import DelayedFeedbackClassifier, EventLog
        >>> from belated.datasets import simulate_clicks
        >>> log = EventLog.from_frame(simulate_clicks(days=20), arrival="click_time", outcome="conversion_time")
        >>> snap = log.snapshot(as_of="2024-01-20", horizon="14d")
        >>> clf = DelayedFeedbackClassifier().fit_snapshot(snap)
        >>> clf.predict_incidence(snap.X, [1, 7, 14]).mean(axis=0).round(2).tolist()
        [0.06, 0.1, 0.12]
        """
        wanted = _ages(ages)
        if engine_of(X) is not None:
            return self._with_columns(X, {f"positive_by_{age:g}": partial(_incidence, age=age) for age in wanted})
        _, by = self.curve(X)
        return np.column_stack([by(np.full(1, age)) for age in wanted])

    def predict_delay(self, X: Any, quantiles: Sequence[float] = (0.5,)) -> Any:
        """By which age these shares of the positives are seen, of shape (n, quantiles), given that a row turns positive within the horizon.

        In the unit of ``elapsed``, days for a snapshot. Of a Dask or Spark frame, the same frame with a column ``delay_QUANTILE`` more for each.
        """
        asked: list[Any] = [quantiles] if isinstance(quantiles, str) or np.ndim(quantiles) == 0 else list(quantiles)
        shares = [float(share) for share in asked if is_number(share) and 0 < share < 1]
        if not shares or len(shares) < len(asked):
            raise ValueError(f"quantiles={quantiles!r} must be numbers between 0 and 1.")
        if engine_of(X) is not None:
            return self._with_columns(X, {f"delay_{share:g}": partial(_delay, share=share) for share in shares})
        p, by = self.curve(X)
        return np.column_stack([self._age_of(share * p, by) for share in shares])

    def expected_label(self, X: Any, y: Any, elapsed: Any) -> Any:
        """1 where a row is positive already, else the probability that it will still turn positive, given its age: of shape (n,).

        Their sum is the expected number of positives in the end. Of a Dask or Spark frame, with ``y`` and ``elapsed`` the names of its columns, the same frame with a
        column ``expected_label`` more.
        """
        if engine_of(X) is not None:
            return self._with_columns(X, {"expected_label": partial(_expected, y=y, elapsed=elapsed)})
        check_is_fitted(self, "model_")
        positive = read_positives(y, self.classes_)
        open_rows = self._still_to_come(X, elapsed)
        if len(positive) != len(open_rows):
            raise ValueError(f"y has {len(positive)} labels, but there are {len(open_rows)} rows.")
        return np.where(positive, 1.0, open_rows)

    def _still_to_come(self, X: Any, elapsed: Any) -> Floats:
        """Of rows that are negative at their age, the probability that they turn positive."""
        p, by = self.curve(X)
        already = by(read_ages(elapsed, len(p)))
        found: Floats = np.clip((p - already) / np.maximum(1.0 - already, 1e-300), 0.0, 1.0)
        return found

    def curve(self, X: Any) -> tuple[Floats, Callable[[Floats], Floats]]:
        """The probability of each row, and a function of ages (one, or one a row) to that of having turned positive by then."""
        check_is_fitted(self, "model_")
        if not self.link_.has_probability:
            raise ValueError("the double hinge loss gives no probabilities, so none for rows that have waited either.")
        margins, shared = self._margins(X)
        p, link = self.link_.probability(margins, shared), self.link_
        ahead, delays = getattr(self, "_ahead_", 0.0), getattr(self, "_delays_", None)
        if delays is None and hasattr(link, "law"):
            end: float | None = getattr(link, "horizon", None)

            def by_law(ages: Floats) -> Floats:
                ages = np.broadcast_to(ages, p.shape) + ahead
                found = np.minimum(link.positive_by(margins, shared, ages), p)
                return found if end is None else np.where(ages >= end, p, found)

            return p, by_law
        if delays is None:
            raise ValueError(
                "this classifier has learned nothing about delays: fit it with elapsed= and delay=, or fit_snapshot."
            )
        at_edges = delays.at_edges(self._features(X, reset=False), len(p))
        return p, lambda ages: p * between_edges(delays.edges, at_edges, np.broadcast_to(ages, p.shape) + ahead)

    def _age_of(self, level: Floats, by: Callable[[Floats], Floats]) -> Floats:
        """The least age of each row by which it has turned positive with a probability of ``level``."""
        high = np.ones_like(level)
        for _ in range(_DOUBLINGS):
            short = by(high) < level
            if not short.any():
                break
            high = np.where(short, 2.0 * high, high)
        low = np.zeros_like(level)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            reached = by(middle) >= level
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high

    def _with_columns(self, frame: Any, works: dict[str, Callable[..., Floats]]) -> Any:
        check_is_fitted(self, "model_")
        if not hasattr(self, "feature_names_in_") and getattr(self, "_field_encoder_", None) is None:
            raise ValueError(
                "the classifier was fitted on an array, whose columns have no names to find them by in a table."
            )
        for name, work in works.items():
            frame = with_column(frame, name, partial(work, self))
        return frame


def _ages(ages: Any) -> list[float]:
    values = [ages] if isinstance(ages, str) or np.ndim(ages) == 0 else list(ages)
    if not values or not all(is_number(age) and 0 <= age < np.inf for age in values):
        raise ValueError(f"ages={ages!r} must be numbers of at least 0, in the unit of elapsed (days, for a snapshot).")
    return [float(age) for age in values]


# On a worker: of a table in memory, which may have columns that are no features.


def features_of(classifier: Any, X: Any) -> Any:
    encoder = getattr(classifier, "_field_encoder_", None)
    names = list(classifier.feature_names_in_) if encoder is None else encoder.columns
    table = open_table(X, "the table")
    require(table, names, "the table")
    return table.select(names).to_native()


def column_of(X: Any, name: Any, what: str) -> Any:
    if not isinstance(name, str):
        raise ValueError(f"{what} of a frame on a cluster must be the name of one of its columns.")
    table = open_table(X, "the table")
    require(table, [name], "the table")
    return table[name].to_numpy()


def _incidence(classifier: Any, X: Any, age: float) -> Floats:
    found: Floats = classifier.predict_incidence(features_of(classifier, X), [age])[:, 0]
    return found


def _delay(classifier: Any, X: Any, share: float) -> Floats:
    found: Floats = classifier.predict_delay(features_of(classifier, X), [share])[:, 0]
    return found


def _expected(classifier: Any, X: Any, y: Any, elapsed: Any) -> Floats:
    known, age = column_of(X, y, "y"), column_of(X, elapsed, "elapsed")
    found: Floats = classifier.expected_label(features_of(classifier, X), known, age)
    return found
