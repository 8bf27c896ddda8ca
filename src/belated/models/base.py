"""What a model is: something that learns the margins of a risk."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from belated.risks.base import Risk
from belated.typing import Bools, Floats, Ints


class Model(BaseEstimator):
    """An engine. ``encode`` comes first, so that several risks can be fitted on the same encoded rows.

    Attributes
    ----------
    shared_ : array of shape (s,)
        The risk's shared parameters, after :meth:`fit`.
    """

    shared_: Floats

    def encode(self, X: Any, weight: Floats) -> Any:
        """Learn how to encode X (an array, CSR matrix or table) and return it encoded."""
        raise NotImplementedError

    def fit(self, encoded: Any, risk: Risk) -> Model:
        """Minimise the risk plus this model's regulariser."""
        raise NotImplementedError

    def side_margin(self, encoded: Any, risk: Risk, rows: Bools, groups: Ints, at: Ints) -> Floats:
        """Fit a one-margin risk on some rows and an ordered group beside their features; the margin of all rows at ``at``."""
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """New rows encoded as in training, which :meth:`margins` takes too; rows encoded already stay as they are."""
        raise NotImplementedError

    def margins(self, X: Any) -> Floats:
        """Margins of shape (n, m) of new rows."""
        raise NotImplementedError
