"""What the likelihoods of delays have in common; each of them is one file: :mod:`.cure`, :mod:`.hazard`.

With L(t) = exp(h) Lambda0(t), where Lambda0 is a delay law's and h a margin, an event at t costs L(t) - h - log lambda0(t).
Where delays are recorded on a grid (to the day, say) an event lies in a cell, between t and t + cell, and costs
L(t) - log(1 - exp(-D)) with D = L(t + cell) - L(t); treated as exact, ties at a time would bias the hazard.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr

from belated.arrays import LARGEST_EXPONENT, at_most, between, namespace, safe_exp, where
from belated.risks.base import EMPTY, Risk
from belated.risks.delay_laws import DelayLaw
from belated.typing import Bools, Floats, Ints


@dataclass(frozen=True)
class EventTimes:
    """When each row's event came, or until when there was none.

    Attributes
    ----------
    y : bool array of shape (n,)
    times : float array of shape (n,)
        The delay where ``y``, else the age.
    cell : float
        Delays are known up to this: an event lies between its time and its time + cell. 0: exact.
    weight : float array of shape (n,), with sum 1
    ages : float array of shape (n,)
        Until when each row was watched, with an event or without.
    """

    y: Bools
    times: Floats
    cell: float
    weight: Floats
    ages: Floats


class DelayRisk(Risk):
    """A likelihood under a :class:`DelayLaw`: keeps what the law prepares of the times, and does what all of them need."""

    stiff = True

    def __init__(self, events: EventTimes, law: DelayLaw) -> None:
        self.y, self.weight, self.law = events.y, events.weight, law
        self.n_shared = law.n_shared
        self.ages = events.ages
        self.prepared = law.prepare(events.times)
        self.prepared_end = law.prepare(events.times + events.cell) if events.cell else None
        self.prepared_middle = law.prepare(events.times + events.cell / 2) if events.cell else self.prepared
        self._set_scale()

    def _set_scale(self) -> None:
        self.rate = float((self.weight * self.y).sum() / self.weight.sum())
        # The value depends on the unit of time and may be near 0, so tolerances are relative to the entropy of the labels.
        self.scale = float(entr(self.rate) + entr(1.0 - self.rate))

    def take(self, rows: Bools, factor: float = 1.0) -> DelayRisk:
        some = copy(self)
        some.y, some.weight, some.ages = self.y[rows], factor * self.weight[rows], self.ages[rows]
        some.prepared, some.prepared_end, some.prepared_middle = (
            _take(part, rows) for part in (self.prepared, self.prepared_end, self.prepared_middle)
        )
        some._set_scale()
        return some

    def penalty(self, shared: Any) -> tuple[float, Any]:
        return self.law.roughness(shared)

    def kinds(self) -> Ints:
        return np.where(self.weight > 0, self.y.astype(np.int64), -1)

    def event_terms(self, h: Any, shared: Any) -> EventTerms:
        """Of each row, what an event costs under hazards scaled by exp(h)."""
        xp = namespace(h)
        # Cut here and not in exp(h) alone: an event's cost falls with h, and must not fall on where the total stays.
        h = at_most(h, LARGEST_EXPONENT)
        log_hazard, cumulated = self.law.evaluate(self.prepared, shared)
        factor = safe_exp(h)
        total = cumulated * factor
        if self.prepared_end is None:
            return EventTerms(factor, total, -h - log_hazard, xp.full_like(h, -1.0), xp.zeros_like(h), None)
        inside = between((self.law.evaluate(self.prepared_end, shared)[1] - cumulated) * factor, 1e-150, 300.0)
        growth = xp.expm1(inside)
        bend = inside * (inside * (growth + 1.0) - growth) / growth**2
        return EventTerms(factor, total, -xp.log(-xp.expm1(-inside)), -inside / growth, bend, factor / growth)

    def where_event(self, values: Any) -> Any:
        """The values of rows with an event, and 0 elsewhere, where they may be infinite."""
        return where(self.y, values, 0.0)

    def shared_gradient(self, shared: Any, d_cumulated: Any, d_end: Any) -> Any:
        """Gradient in the shared parameters, given that in Lambda0 at each row's time and, with cells, at their ends."""
        rough = self.law.roughness(shared)[1]
        if not self.n_shared:
            return rough
        events = self.weight * self.y
        if d_end is None:
            return rough + self.law.shared_gradient(self.prepared, shared, -events, d_cumulated)
        none = namespace(events).zeros_like(events)
        begin = self.law.shared_gradient(self.prepared, shared, none, d_cumulated)
        return rough + begin + self.law.shared_gradient(self.prepared_end, shared, none, d_end)

    def left_out_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        """The log loss of labels as they stand, given each row's age: when an event came is no matter of predictions."""
        seen = np.clip(self.seen(margins, shared), 1e-300, 1.0 - 1e-16)
        return -self.weight * np.where(self.y, np.log(seen), np.log1p(-seen))

    def seen(self, margins: Floats, shared: Floats) -> Floats:
        """The probability that each row has turned positive by its age."""
        raise NotImplementedError

    def _hazard_by_age(self, h: Floats, shared: Floats) -> Floats:
        return self.law.evaluate(self.law.prepare(self.ages), shared)[1] * safe_exp(h)

    def shared_curvature(self) -> Floats | None:
        return self.law.shared_curvature(self.prepared, self.weight * self.y) if self.n_shared else None

    def add_cells(self, terms: EventTerms, d_total: Any) -> tuple[Any, Any]:
        """Gradient in Lambda0 at times and at ends of cells (None without them), given that in the total hazards."""
        if terms.per_cell is None:
            return d_total * terms.factor, None
        events = self.weight * self.where_event(terms.per_cell)
        return d_total * terms.factor + events, -events


@dataclass(frozen=True)
class EventTerms:
    """Of each row: exp(h), the total hazard, and what an event costs beyond it, with its derivatives in h."""

    factor: Any
    total: Any
    event: Any
    d_event: Any
    dd_event: Any
    per_cell: Any  # the derivative of an event's cost in -Lambda0(t + cell); None without cells


def _take(prepared: Any, rows: Bools) -> Any:
    """Some rows of what a law prepared: an array, a tuple of arrays, or nothing."""
    if isinstance(prepared, tuple):
        return tuple(part[rows] for part in prepared)
    return None if prepared is None else prepared[rows]
