"""Fit one method at one or several strengths of regularisation, on rows that a model has encoded."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

from belated.data.labels import Labels
from belated.methods.base import Method
from belated.models.base import Model
from belated.risks.links import Link
from belated.typing import Floats


@dataclass(frozen=True)
class FittedMethod:
    """A model of one method at one l2 (None where the model has none), and how its margins become probabilities."""

    model: Model
    link: Link
    l2: float | None

    def predict(self, X: Any) -> Floats:
        return self.link.probability(self.model.margins(X), self.model.shared_)


def fit_path(
    model: Model, encoded: Any, method: Method, labels: Labels, l2: Sequence[float | None] | None
) -> list[FittedMethod]:
    """Fit a method at each l2, on rows that ``model`` has encoded; auxiliary fits are regularised as the main one is."""
    method.check(labels)
    has_path = model.path is not None and l2 is not None
    groups: list[Any] = [[value] for value in l2] if has_path and l2 and method.has_auxiliary_fits else [l2]
    fits: list[FittedMethod] = []
    for values in groups:
        engine = copy(model)
        if has_path:
            engine.set_params(l2=values[0])
        risk = method.build_risk(labels, partial(engine.auxiliary_margin, encoded))
        if not risk.link.has_probability:
            raise ValueError("its loss gives no probabilities, which are what is scored here.")
        found = engine.path(encoded, risk, values) if has_path else [engine.fit(encoded, risk)]
        fits += [FittedMethod(one, risk.link, getattr(one, "l2", None)) for one in found]
    return fits
