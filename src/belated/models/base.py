"""What a model is: an engine that learns the margins of a risk."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from belated.risks.base import Risk
from belated.typing import Bools, Floats, Ints

_UNATTENDED = {"progress": False, "checkpoint": None}


class Model(BaseEstimator):
    """An engine. ``encode`` comes first, so that several risks can be fitted on the same encoded rows.

    A subclass writes :meth:`encode`, :meth:`fit`, :meth:`transform` and :meth:`margins`.

    Attributes
    ----------
    shared_ : array of shape (s,)
        The risk's shared parameters, after :meth:`fit`.
    """

    shared_: Floats

    # An engine with one setting that says how closely it follows the rows (l2, rounds) names it here, with values to choose
    # from, and offers path(encoded, risk, values): a fitted copy for each value, from the simplest model on. Settings are then
    # chosen by cross-validation; a setting of None asks the classifier to do so.
    setting: ClassVar[str | None] = None
    grid: ClassVar[tuple[float, ...]] = ()
    path: Any = None
    minibatches: ClassVar[bool] = False  # whether it learns from a few rows at a time
    takes_groups: ClassVar[bool] = False  # whether it fits risks with occurrences
    takes_kinks: ClassVar[bool] = False  # whether it fits losses without a curvature
    takes_missing: ClassVar[bool] = False  # whether arrays may have missing values
    takes_simplest: ClassVar[bool] = True  # whether the simplest model within one standard error of the best is taken
    auxiliary_follows_setting: ClassVar[bool] = True  # whether auxiliary fits depend on the setting

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

    @property
    def encoders(self) -> list[Any]:
        """Of a fitted model, what encodes its tables; none for other inputs."""
        encoder = getattr(self, "encoder_", None)
        return [] if encoder is None else [encoder]

    def unattended(self) -> Model:
        """A fresh copy that shows and keeps nothing while it is fitted: one of many fits, maybe at the same time."""
        copy: Model = clone(self)
        asked = copy.get_params(deep=False)
        return copy.set_params(**{name: value for name, value in _UNATTENDED.items() if name in asked})

    def for_trials(self) -> Model:
        """The same for fits that are only compared with each other, and may be less precise."""
        return self.unattended()

    def auxiliary_margin(self, encoded: Any, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints) -> Floats:
        """Fit a one-margin risk on some rows and an ordered group beside their features.

        Returns the margin (n,) of all rows as if their groups were ``new_groups``.
        """
        raise ValueError(f"{type(self).__name__} cannot fit the auxiliary models that this method learns first.")

    def for_more_rows(self, value: float, factor: float) -> float:
        """What becomes of a value that was best on some rows when there are ``factor`` times as many."""
        return value

    def simplest_first(self, values: Sequence[float]) -> list[float]:
        """Values of the setting in the order of :attr:`path`."""
        return sorted(values)


def require_setting(model: Model) -> float:
    """The value of the setting; refuses to go on before it has one."""
    assert model.setting is not None
    value: float | None = getattr(model, model.setting)
    if value is None:
        raise ValueError(
            f"{model.setting}=None asks for a choice by cross-validation, which DelayedFeedbackClassifier makes in fit; an engine by "
            f"itself needs a number."
        )
    return value


def require_whole(model: Model, name: str, least: int) -> None:
    """Refuse a parameter that is neither None nor a whole number of at least so much."""
    value: Any = getattr(model, name)
    if value is None or (isinstance(value, Integral) and not isinstance(value, bool) and value >= least):  # type: ignore[operator]
        return
    raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")


def require_number(model: Model, name: str, low: float, high: float, open_low: bool = True) -> None:
    """Refuse a parameter that is no number between two bounds; ``high`` is allowed, and ``low`` unless ``open_low``."""
    value: Any = getattr(model, name)
    inside = isinstance(value, Real) and not isinstance(value, bool) and low <= value <= high and value < np.inf  # type: ignore[operator]
    if inside and not (open_low and value == low):
        return
    bounds = f"{'above' if open_low else 'of at least'} {low:g}" + (f" and at most {high:g}" if high < np.inf else "")
    raise ValueError(f"{name}={value!r} must be a number {bounds}.")


def require_risk(model: Model, risk: Any) -> None:
    """Explain what an engine is to whoever calls ``fit(X, y)`` on one."""
    if not isinstance(risk, Risk):
        name = type(model).__name__
        raise TypeError(
            f"{name} is an engine: it minimises the risk that a method makes of labels, and does not take labels itself. Use "
            f"DelayedFeedbackClassifier(model={name}(...)).fit(X, y); without elapsed and delay that is plain regularised "
            f"logistic regression."
        )
