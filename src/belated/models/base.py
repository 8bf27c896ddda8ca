"""What a model is: an engine that learns the margins of a risk."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, clone

from belated.risks.base import Risk
from belated.typing import Bools, Floats, Ints


class Model(BaseEstimator):
    """An engine. ``encode`` comes first, so that several risks can be fitted on the same encoded rows.

    A subclass writes :meth:`encode`, :meth:`fit`, :meth:`transform` and :meth:`margins`.

    Attributes
    ----------
    shared_ : array of shape (s,)
        The risk's shared parameters, after :meth:`fit`.
    """

    shared_: Floats

    def encode(self, X: Any, weight: Floats) -> Any:
        """Learn how to encode X (an array, CSR matrix, FieldMatrix or table) and return it encoded."""
        raise NotImplementedError

    def fit(self, encoded: Any, risk: Risk) -> Model:
        """Minimise the risk plus this model's regulariser."""
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """New rows encoded as in training, which :meth:`margins` takes too; rows encoded already stay as they are."""
        raise NotImplementedError

    def margins(self, X: Any) -> Floats:
        """Margins of shape (n, m) of new rows."""
        raise NotImplementedError

    def check_fitted(self) -> None:
        """Refuse what a file may have brought that this engine's :meth:`margins` could not bear."""

    def for_trials(self) -> Model:
        """A fresh copy for fits that are only compared with each other, and may be less precise."""
        copy: Model = clone(self)
        return copy

    def auxiliary_margin(self, encoded: Any, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints) -> Floats:
        """Fit a one-margin risk on some rows and an ordered group beside their features.

        Returns the margin (n,) of all rows as if their groups were ``new_groups``.
        """
        raise ValueError(f"{type(self).__name__} cannot fit the auxiliary models that this method learns first.")

    # An engine with a strength of regularisation called `l2` may offer path(encoded, risk, l2), which yields a fitted copy for
    # each value, from the largest down, as LinearModel's does. Settings are then chosen among several values.
    path: Any = None


def require_risk(model: Model, risk: Any) -> None:
    """Explain what an engine is to whoever calls ``fit(X, y)`` on one."""
    if not isinstance(risk, Risk):
        name = type(model).__name__
        raise TypeError(
            f"{name} is an engine: it minimises the risk that a method makes of labels, and does not take labels itself. Use "
            f"DelayedFeedbackClassifier(model={name}(...)).fit(X, y); without elapsed and delay that is plain regularised "
            f"logistic regression."
        )
