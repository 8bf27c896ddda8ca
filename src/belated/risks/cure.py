"""The delayed feedback model's likelihood: some rows turn positive after a delay, the others never do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.arrays import dot, is_numpy_array, namespace, safe_exp, sigmoid, softplus, where
from belated.risks import compiled_costs
from belated.risks.base import EMPTY
from belated.risks.delay_laws import DelayLaw
from belated.risks.delays import DelayRisk, EventTimes
from belated.risks.links import Link
from belated.typing import Floats


class CureRisk(DelayRisk):
    """A share sigmoid(g) turns positive, after a delay with hazard exp(h) lambda0: a mixture cure model.

    A row costs
        y = 1:  -log sigmoid(g) + L(d) + the cost of its event, see :mod:`belated.risks.delays`
        y = 0:  -log(1 - sigmoid(g) + sigmoid(g) exp(-L(e))) = softplus(g) - softplus(g - L(e)).
    Margins are (g, h).
    """

    n_margins = 2
    convex = False
    simple_margins = (1,)

    def __init__(self, events: EventTimes, law: DelayLaw, horizon: float | None) -> None:
        super().__init__(events, law)
        self.intercepts = (True, not law.has_level)
        self.link = CureLink(law, horizon)

    def value_and_gradient(self, margins: Any, shared: Any = EMPTY) -> tuple[float, Any, Any]:
        many = is_numpy_array(margins) and len(margins) >= compiled_costs.MANY
        rows = self._compiled_rows if many else self._rows
        value, d_margins, d_cumulated, d_end = rows(margins, shared)
        value = float(value + self.law.roughness(shared)[0])
        return value, d_margins, self.shared_gradient(shared, d_cumulated, d_end)

    def row_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        g, terms = margins[:, 0], self.event_terms(margins[:, 1], shared)
        positive = softplus(-g) + terms.total + terms.event
        return self.weight * np.where(self.y, positive, softplus(g) - softplus(g - terms.total))

    def seen(self, margins: Floats, shared: Floats) -> Floats:
        return sigmoid(margins[:, 0]) * -np.expm1(-self._hazard_by_age(margins[:, 1], shared))

    def _rows(self, margins: Any, shared: Any) -> tuple[Any, Any, Any, Any]:
        """The sum of all costs, and its gradients in the margins and in Lambda0 at times and at ends of cells."""
        xp = namespace(margins)
        g, h = margins[:, 0], margins[:, 1]
        terms = self.event_terms(h, shared)
        rest = g - terms.total
        positive = softplus(-g) + terms.total + terms.event
        negative = softplus(g) - softplus(rest)
        value = dot(self.weight, xp.where(self.y, positive, negative))
        d_total = self.weight * where(~self.y, sigmoid(rest), 1.0)
        d_g = self.weight * sigmoid(g) - d_total
        d_h = d_total * terms.total + self.weight * self.where_event(terms.d_event)
        return value, xp.stack([d_g, d_h], axis=1), *self.add_cells(terms, d_total)

    def _compiled_rows(self, margins: Floats, shared: Floats) -> tuple[Any, Any, Any, Any]:
        """The same in one compiled pass."""
        log_hazard, cumulated = self.law.evaluate(self.prepared, shared)
        end = None if self.prepared_end is None else self.law.evaluate(self.prepared_end, shared)[1]
        return compiled_costs.cure(margins, self.y, self.weight, log_hazard, cumulated, end)

    def curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        xp = namespace(margins)
        g, h = margins[:, 0], margins[:, 1]
        terms = self.event_terms(h, shared)
        rest = g - terms.total
        weighted = sigmoid(rest) * terms.total
        in_g = sigmoid(g) * sigmoid(-g) - where(~self.y, sigmoid(rest) * sigmoid(-rest), 0.0)
        # Multiplied in this order, a huge total meets a share of 0 before it is squared, and nothing overflows.
        in_h = xp.where(self.y, terms.total + terms.dd_event, weighted - weighted * sigmoid(-rest) * terms.total)
        return self.weight[:, None] * xp.stack([in_g, in_h], axis=1)

    def bounding_curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        """That of the EM algorithm's bound, which takes as given how likely each open row is to turn positive."""
        xp = namespace(margins)
        g, h = margins[:, 0], margins[:, 1]
        if is_numpy_array(margins) and len(margins) >= compiled_costs.MANY and self.prepared_end is None:
            # In h an open row's is its gradient, and that of an event is its gradient without the event's own -1.
            in_h = self._compiled_rows(margins, shared)[1][:, 1] + self.weight * self.y
            return np.column_stack([compiled_costs.logistic_curvature(g, self.weight, 0.0 * self.weight), in_h])
        terms = self.event_terms(h, shared)
        share = where(~self.y, sigmoid(g - terms.total), 1.0)
        in_h = share * terms.total + self.where_event(terms.dd_event)
        return self.weight[:, None] * xp.stack([sigmoid(g) * sigmoid(-g), in_h], axis=1)

    def start(self) -> tuple[Floats, Floats]:
        events = self.weight * self.y
        level, shared = self.law.start(self.prepared_middle, events, events)
        rate = min(max(self.rate, 1e-6), 1 - 1e-6)
        return np.array([np.log(rate / (1 - rate)), level]), shared


@dataclass(frozen=True)
class CureLink(Link):
    """p = sigmoid(g) (1 - S(H)), with S the survival of those who convert; sigmoid(g) without a horizon H."""

    law: DelayLaw
    horizon: float | None

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        return sigmoid(margins[:, 0]) if self.horizon is None else self.positive_by(margins, shared, self.horizon)

    def positive_by(self, margins: Floats, shared: Floats, age: float | Floats) -> Floats:
        come = -np.expm1(-self.law.cumulated_by(age, shared) * safe_exp(margins[:, 1]))
        return sigmoid(margins[:, 0]) * come

    def decision(self, margins: Floats, shared: Floats) -> Floats:
        return margins[:, 0] if self.horizon is None else super().decision(margins, shared)

    def still_to_come(self, margins: Floats, shared: Floats, ages: Floats) -> Floats:
        share, factor = sigmoid(margins[:, 0]), safe_exp(margins[:, 1])
        waiting = np.exp(-self.law.evaluate(self.law.prepare(ages), shared)[1] * factor)
        beyond = 0.0 if self.horizon is None else np.exp(-self.law.cumulated_at(self.horizon, shared) * factor)
        # 1 - share (1 - waiting), without the loss of digits where both are near 1.
        open_rows = sigmoid(-margins[:, 0]) + share * waiting
        return share * np.maximum(waiting - beyond, 0.0) / np.maximum(open_rows, 1e-300)
