"""Fit one method, on rows that a model has encoded."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.cluster.sharded import by_rows
from belated.data.labels import Labels
from belated.evaluation.compatibility import require_compatible
from belated.evaluation.learners import EngineLearner
from belated.methods.base import Method
from belated.models.base import Model
from belated.risks.base import Risk
from belated.risks.links import Link
from belated.typing import Floats


@dataclass(frozen=True)
class FittedMethod:
    """A model of one method at one value of its setting (None where it has none), and how its margins become probabilities."""

    model: Model
    link: Link
    value: float | None

    def predict(self, X: Any) -> Floats:
        p = by_rows(self.link.probability, self.model.margins(X), self.model.shared_)
        if not np.isfinite(p).all():
            raise ValueError("some of its probabilities are no numbers.")
        return p


def fit_method(
    model: Model, encoded: Any, method: Method, labels: Labels, value: float | None = None, teachers: Any = None
) -> FittedMethod:
    """Fit a method at one value of the model's setting, or as the model is; auxiliary fits are as the main one is."""
    require_compatible(method, model)
    method.check(labels)
    engine = with_setting(model, value)
    risk = method.build_risk(labels, EngineLearner(engine, encoded, teachers))
    require_probabilities(risk)
    return FittedMethod(engine.fit(encoded, risk), risk.link, value_of(engine))


def fit_path(
    model: Model, encoded: Any, method: Method, labels: Labels, values: Sequence[float], teachers: Any = None
) -> list[FittedMethod]:
    """Fit a method at each value of the model's setting, in their order."""
    if model.path is None or (method.has_auxiliary_fits and model.auxiliary_follows_setting):
        return [fit_method(model, encoded, method, labels, value, teachers) for value in values]
    method.check(labels)
    risk = method.build_risk(labels, EngineLearner(model, encoded, teachers))
    require_probabilities(risk)
    fits = (FittedMethod(one, risk.link, value_of(one)) for one in model.path(encoded, risk, values))
    found = {fit.value: fit for fit in fits}
    return [found[value] for value in values]


def value_of(model: Model) -> float | None:
    """The value of its setting."""
    return None if model.setting is None else getattr(model, model.setting)


def with_setting(model: Model, value: float | None) -> Model:
    """A copy of a model that has encoded rows, with another value of its setting where it has one and that is asked."""
    engine = copy(model)
    if value is not None and model.setting is not None and model.path is not None:
        engine.set_params(**{model.setting: value})
    return engine


def require_probabilities(risk: Risk) -> None:
    if not risk.link.has_probability:
        raise ValueError("its loss gives no probabilities, which are what is scored here.")
