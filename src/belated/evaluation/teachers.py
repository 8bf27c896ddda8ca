"""Teachers: linear models of a simple method, whose beliefs another method builds on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np

from belated.data.labels import Labels
from belated.evaluation.cross_validation import choose_setting, chosen_value
from belated.evaluation.fitting import fit_method
from belated.methods.base import Method, Taught
from belated.models.linear import LinearModel
from belated.notices import quietly
from belated.tables.frames import array_as_table, take_rows
from belated.typing import Bools


@dataclass(frozen=True)
class Teachers:
    """Teachers of some rows, each fitted once, whichever models learn from it. Their l2 is chosen by cross-validation."""

    X: Any  # an array with missing values is read as a table, for which a linear model has a place for them
    tol: float = 1e-8
    _values: dict[Any, float | None] = field(default_factory=dict)
    _taught: dict[Any, Taught] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.X, np.ndarray) and np.isnan(self.X).any():
            object.__setattr__(self, "X", array_as_table(self.X))

    def teach(self, method: Method, labels: Labels, known: Bools | None = None, l2: float | None = None) -> Taught:
        """What a method believes of all rows when it is fitted on those in ``known``, by default all."""
        name = joblib.hash((type(method).__qualname__, method.get_params(), labels.window, l2))
        key = (name, None if known is None else known.tobytes())
        if key not in self._taught:
            with quietly():
                if name not in self._values:
                    self._values[name] = self._choose(method, labels) if l2 is None else l2
                self._taught[key] = self._fit(method, labels, self._values[name], known)
        return self._taught[key]

    def _choose(self, method: Method, labels: Labels) -> float | None:
        model = LinearModel(tol=max(self.tol, 1e-5))
        choices = choose_setting(self.X, {"teacher": labels}, model, {"teacher": method}, model.grid)
        return chosen_value(choices["teacher"], model.grid)

    def _fit(self, method: Method, labels: Labels, l2: float | None, known: Bools | None) -> Taught:
        known = np.ones_like(labels.y, dtype=bool) if known is None else known
        model, some = LinearModel(tol=self.tol), labels.take(known)
        fit = fit_method(model, model.encode(take_rows(self.X, known), some.weight), method, some, l2)
        return Taught(fit.model.margins(model.transform(self.X)), fit.model.shared_, fit.link)
