"""OnlineLinearModel: margins linear in hashed fields or numbers, learned one record after another."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from belated.data.durations import is_number
from belated.features.field_matrix import FieldMatrix
from belated.streaming.methods.base import Costs
from belated.streaming.online_kernels import (
    ADAGRAD,
    FTRL,
    learn_fields,
    learn_numbers,
    margins_of_fields,
    weights_of,
)
from belated.typing import Floats, Ints


class OnlineLinearModel(BaseEstimator):
    """A linear model that learns each record once, in order: FTRL-proximal (McMahan et al. 2013) or AdaGrad, compiled.

    Parameters
    ----------
    rule : {"ftrl", "adagrad"}
    learning_rate : float
        Of each column, divided by the square root of the sum of its squared gradients so far.
    beta : float
        Added to that square root, so that first steps are not too long.
    l1, l2 : float
        Penalties; with l1, FTRL keeps columns that say little at exactly 0.
    columns : int
        Of hashed fields, at most so many; more are folded into these. A column takes sixteen bytes for each margin.
        (Half of that would not do: after millions of records the gradient of one is lost in the sum.)

    shared : bool
        Where there are several margins, whether a column has beside its weight for each of them one for all.

    Attributes
    ----------
    state_ : array of shape (columns + 1, heads, 2)
        What :mod:`belated.streaming.online_kernels` keeps of each column, the intercept last.

    Examples
    --------
    >>> from belated import OnlineClassifier, OnlineLinearModel
    >>> OnlineClassifier("hazard-heads", OnlineLinearModel(rule="adagrad"), horizon="14d")
    OnlineClassifier(horizon='14d', model=OnlineLinearModel(rule='adagrad'))
    """

    passes = 1  # over a snapshot that it starts from

    def __init__(
        self,
        rule: str = "ftrl",
        learning_rate: float = 0.1,
        beta: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        columns: int = 2**22,
        shared: bool = True,
    ) -> None:
        self.rule = rule
        self.learning_rate = learning_rate
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self.columns = columns
        self.shared = shared

    def open(self, X: Any, heads: int, levels: Floats | None = None) -> None:
        """Begin with weights of 0, for rows like X; ``levels`` are the intercepts to begin with."""
        self._check()
        self.fields_ = isinstance(X, FieldMatrix)
        width = min(X.n_columns, self.columns) if isinstance(X, FieldMatrix) else X.shape[1]
        self.state_ = np.zeros((width + 1, heads + (self.shared and heads > 1), 2), dtype=np.float64)
        if levels is not None:
            # The z that stands for a weight before any gradient has been seen.
            scale = 1.0 if self.rule == "adagrad" else -(self.beta / self.learning_rate + self.l2)
            away = 0.0 if self.rule == "adagrad" else self.l1 * np.sign(levels)
            self.state_[-1, : len(levels), 0] = levels * scale - away

    def learn(self, X: Any, head: Ints, costs: Costs) -> None:
        """One pass over records of shape (n,), each of one margin."""
        self._require_like(X)
        heads = self.state_.shape[1] - (self._shared >= 0)
        if len(head) and not 0 <= head.min() <= head.max() < heads:
            raise ValueError(
                f"records of margin {int(head.max())}, and the model has {heads}: they are of another method."
            )
        a, b = (np.ascontiguousarray(part, dtype=np.float64) for part in (costs.a, costs.b))
        c = np.ones(len(a)) if costs.c is None else np.ascontiguousarray(costs.c, dtype=np.float64)
        if isinstance(X, FieldMatrix):
            learn_fields(X.indices, head, a, b, c, self.state_, self._shared, self._how)
        else:
            learn_numbers(self._numbers(X), head, a, b, c, self.state_, self._shared, self._how)

    def margins(self, X: Any) -> Floats:
        """Margins of shape (n, heads)."""
        self._require_like(X)
        if isinstance(X, FieldMatrix):
            return margins_of_fields(X.indices, self.state_, self._shared, self._how)
        weights = self._weights(self.state_)
        return self._numbers(X) @ weights[:-1] + weights[-1]

    @property
    def coef_(self) -> Floats:
        """Weights of shape (heads, columns)."""
        return np.ascontiguousarray(self._weights(self.state_)[:-1].T)

    @property
    def intercept_(self) -> Floats:
        return self._weights(self.state_[-1:])[0]

    def _weights(self, state: Any) -> Floats:
        return weights_of(state, state.shape[1] - (self._shared >= 0), self._shared, self._how)

    @property
    def _shared(self) -> int:
        """The place of what all margins share, -1 where there is one margin, or nothing is shared."""
        count = self.state_.shape[1]
        return count - 1 if self.shared and count > 1 else -1

    def _require_like(self, X: Any) -> None:
        """Refuse rows that are not like those it was opened with: compiled passes do not look."""
        fields, width = isinstance(X, FieldMatrix), self.state_.shape[0] - 1
        found = min(X.n_columns, self.columns) if fields else X.shape[1]
        if fields != self.fields_ or found != width:
            kind, now = (("a FieldMatrix" if one else "numbers") for one in (self.fields_, fields))
            raise ValueError(f"X is {now} of {found} columns, and the model was opened with {kind} of {width}.")

    def _numbers(self, X: Any) -> Floats:
        return np.ascontiguousarray(X, dtype=np.float64)

    @property
    def _how(self) -> tuple[Any, ...]:
        rule = FTRL if self.rule == "ftrl" else ADAGRAD
        return rule, float(self.learning_rate), float(self.beta), float(self.l1), float(self.l2)

    def _check(self) -> None:
        if self.rule not in ("ftrl", "adagrad"):
            raise ValueError(f"rule={self.rule!r} is not known; choose 'ftrl' or 'adagrad'.")
        for name, least in (("learning_rate", 1e-12), ("beta", 1e-12), ("l1", 0.0), ("l2", 0.0), ("columns", 1)):
            value: Any = getattr(self, name)
            if not (is_number(value) and least <= value < np.inf):
                raise ValueError(f"{name}={value!r} must be a finite number {'above 0' if least else 'of at least 0'}.")
        if self.rule == "adagrad" and self.l1:
            raise ValueError("l1 belongs to rule='ftrl'; AdaGrad has none.")

    # What a checkpoint keeps.

    def state(self) -> dict[str, Any]:
        # Most columns of hashed fields have never been seen.
        seen = np.flatnonzero(self.state_.any(axis=(1, 2)))
        return {
            "seen": seen,
            "state": self.state_[seen],
            "shape": np.array(self.state_.shape),
            "fields": np.array(self.fields_),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.state_, self.fields_ = np.zeros(state["shape"]), bool(state["fields"])
        self.state_[state["seen"]] = state["state"]
