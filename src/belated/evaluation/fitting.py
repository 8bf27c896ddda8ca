"""Fit one method, on rows that a model has encoded."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from belated.data.labels import Labels
from belated.methods.base import Method
from belated.models.base import Model
from belated.risks.base import Risk
from belated.risks.links import Link
from belated.typing import Floats


@dataclass(frozen=True)
class FittedMethod:
    """A model of one method at one l2 (None where the model has none), and how its margins become probabilities."""

    model: Model
    link: Link
    l2: float | None

    def predict(self, X: Any) -> Floats:
        p = self.link.probability(self.model.margins(X), self.model.shared_)
        if not np.isfinite(p).all():
            raise ValueError("some of its probabilities are no numbers.")
        return p


def fit_method(model: Model, encoded: Any, method: Method, labels: Labels, l2: float | None = None) -> FittedMethod:
    """Fit a method at one l2, or at the model's own settings; auxiliary fits are regularised as the main one is."""
    method.check(labels)
    engine = with_l2(model, l2)
    risk = method.build_risk(labels, partial(engine.auxiliary_margin, encoded))
    require_probabilities(risk)
    return FittedMethod(engine.fit(encoded, risk), risk.link, getattr(engine, "l2", None))


def fit_path(model: Model, encoded: Any, method: Method, labels: Labels, l2: Sequence[float]) -> list[FittedMethod]:
    """Fit a method at each l2, in their order."""
    if method.has_auxiliary_fits or model.path is None:
        return [fit_method(model, encoded, method, labels, value) for value in l2]
    method.check(labels)
    risk = method.build_risk(labels, partial(model.auxiliary_margin, encoded))
    require_probabilities(risk)
    found = {one.l2: FittedMethod(one, risk.link, one.l2) for one in model.path(encoded, risk, l2)}
    return [found[value] for value in l2]


def with_l2(model: Model, l2: float | None) -> Model:
    """A copy of a model that has encoded rows, with another l2 where it has one and that is asked."""
    engine = copy(model)
    if l2 is not None and model.path is not None:
        engine.set_params(l2=l2)
    return engine


def require_probabilities(risk: Risk) -> None:
    if not risk.link.has_probability:
        raise ValueError("its loss gives no probabilities, which are what is scored here.")
