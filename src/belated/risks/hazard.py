"""The likelihood of proportional hazards: everyone would turn positive in the end, sooner or later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.arrays import dot, safe_exp
from belated.risks.base import EMPTY
from belated.risks.delay_laws import DelayLaw
from belated.risks.delays import DelayRisk, EventTimes
from belated.risks.links import Link
from belated.typing import Floats


class HazardRisk(DelayRisk):
    """Hazard exp(g) lambda0, without a share that never turns positive.

    A row costs L(e) where y = 0, and L(d) + the cost of its event where y = 1, see :mod:`belated.risks.delays`.
    """

    def __init__(self, events: EventTimes, law: DelayLaw, horizon: float) -> None:
        super().__init__(events, law)
        self.intercepts = (not law.has_level,)
        self.link = HazardLink(law, horizon)

    def value_and_gradient(self, margins: Any, shared: Any = EMPTY) -> tuple[float, Any, Any]:
        terms = self.event_terms(margins[:, 0], shared)
        value = dot(self.weight, terms.total + self.where_event(terms.event)) + self.law.roughness(shared)[0]
        d_g = self.weight * (terms.total + self.where_event(terms.d_event))
        return float(value), d_g[:, None], self.shared_gradient(shared, *self.add_cells(terms, self.weight))

    def row_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        terms = self.event_terms(margins[:, 0], shared)
        return self.weight * (terms.total + self.where_event(terms.event))

    def seen(self, margins: Floats, shared: Floats) -> Floats:
        return -np.expm1(-self._hazard_by_age(margins[:, 0], shared))

    def curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        terms = self.event_terms(margins[:, 0], shared)
        return (self.weight * (terms.total + self.where_event(terms.dd_event)))[:, None]

    def start(self) -> tuple[Floats, Floats]:
        # Everyone is at risk here, converters and others alike.
        level, shared = self.law.start(self.prepared_middle, self.weight * self.y, self.weight)
        return np.array([level]), shared


@dataclass(frozen=True)
class HazardLink(Link):
    """p = 1 - exp(-Lambda(H) exp(g)): the share that turns positive by age H."""

    law: DelayLaw
    horizon: float

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        return self.positive_by(margins, shared, self.horizon)

    def positive_by(self, margins: Floats, shared: Floats, age: float | Floats) -> Floats:
        return -np.expm1(-self.law.cumulated_by(age, shared) * safe_exp(margins[:, 0]))

    def still_to_come(self, margins: Floats, shared: Floats, ages: Floats) -> Floats:
        past = self.law.evaluate(self.law.prepare(ages), shared)[1]
        left = np.maximum(self.law.cumulated_at(self.horizon, shared) - past, 0.0)
        return -np.expm1(-left * safe_exp(margins[:, 0]))
