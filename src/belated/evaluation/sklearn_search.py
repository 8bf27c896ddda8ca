"""Cross-validation over blocks of arrival time for scikit-learn's searches: a splitter, and a scorer on the method's own risk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator
from sklearn.pipeline import Pipeline

from belated.data.stretches import stretch_of_rows
from belated.typing import Bools


class TimeBlocks(BaseCrossValidator):
    """Folds of whole stretches of arrival time, for ``GridSearchCV(cv=TimeBlocks())``; pass ``groups=elapsed`` to fit.

    Rows left out at random are predicted too well by their neighbours in time, and settings chosen that way fit noise.

    Parameters
    ----------
    n_splits : int
    stretches : int
        How many stretches of equally many rows the history is cut into; they are dealt to the folds in turn.

    Examples
    --------
    >>> age = np.arange(12.0)
    >>> [test.tolist() for _, test in TimeBlocks(n_splits=3, stretches=6).split(age, groups=age)]
    [[4, 5, 10, 11], [2, 3, 8, 9], [0, 1, 6, 7]]
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(self, n_splits: int = 3, stretches: int = 6) -> None:
        self.n_splits = n_splits
        self.stretches = stretches

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return self.n_splits

    def _iter_test_masks(self, X: Any = None, y: Any = None, groups: Any = None) -> Iterator[Bools]:
        if groups is None:
            raise ValueError(
                "TimeBlocks needs to know when rows arrived: pass groups=elapsed (or times of arrival) to fit."
            )
        if not 2 <= self.n_splits <= self.stretches:
            raise ValueError(
                f"n_splits={self.n_splits!r} must be at least 2, and stretches={self.stretches!r} at least as many."
            )
        fold = stretch_of_rows(np.asarray(groups, dtype=np.float64), self.stretches) % self.n_splits
        for k in range(self.n_splits):
            yield fold == k


class RiskScorer(BaseEstimator):
    """Minus the method's own risk of rows left out, for ``GridSearchCV(scoring=RiskScorer())``.

    No labels need be final for it. It compares settings of one method: do not search over methods with it, for their risks are different
    things and the lowest says nothing. The classifier may be the last step of a pipeline. With scikit-learn's metadata routing it asks for ``elapsed`` and ``delay``:

    >>> from sklearn import config_context
    >>> from sklearn.model_selection import GridSearchCV
    >>> from belated import DelayedFeedbackClassifier, EventLog, LinearModel
    >>> from belated.datasets import simulate_clicks
    >>> clicks = simulate_clicks(days=20, clicks_per_day=200)
    >>> log = EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time")
    >>> snap = log.snapshot(as_of="2024-01-20", horizon="14d")
    >>> with config_context(enable_metadata_routing=True):
    ...     clf = DelayedFeedbackClassifier(horizon=14.0, model=LinearModel())
    ...     clf = clf.set_fit_request(elapsed=True, delay=True)
    ...     search = GridSearchCV(clf, {"model__l2": [1e-5, 1e-3]}, cv=TimeBlocks(), scoring=RiskScorer())
    ...     search = search.fit(snap.X, snap.y, elapsed=snap.elapsed, delay=snap.delay, groups=snap.elapsed)
    >>> search.best_params_
    {'model__l2': 0.001}
    """

    __metadata_request__score: ClassVar[dict[str, bool]] = {"elapsed": True, "delay": True}

    def score(self, estimator: Any, X: Any, y: Any, *, elapsed: Any = None, delay: Any = None) -> float:
        """Minus the risk, so that higher is better."""
        if isinstance(estimator, Pipeline):
            X = estimator[:-1].transform(X) if len(estimator) > 1 else X
            estimator = estimator[-1]
        return -float(estimator.risk(X, y, elapsed=elapsed, delay=delay))

    def __call__(self, *arguments: Any, **more: Any) -> float:
        return self.score(*arguments, **more)
