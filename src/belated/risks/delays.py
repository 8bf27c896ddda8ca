"""Likelihoods of delays, as risks: with a share that never turns positive, and without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, expit

from belated.risks import compiled
from belated.risks.base import Risk
from belated.risks.delay_laws import DelayLaw, safe_exp
from belated.risks.links import CureShare, Incidence
from belated.typing import Bools, Floats

_NONE = np.zeros(0)


@dataclass(frozen=True)
class Times:
    """When each row's event came, or until when there was none.

    Attributes
    ----------
    y : bool array of shape (n,)
    times : float array of shape (n,)
        The delay where ``y``, else the age.
    cell : float
        Delays are known up to this: an event lies between its time and its time + cell. 0: exact.
    weight : float array of shape (n,), with sum 1
    """

    y: Bools
    times: Floats
    cell: float
    weight: Floats


class LawRisk(Risk):
    """What the likelihoods under a :class:`DelayLaw` have in common.

    With L = exp(h) Lambda0(t), an event at t costs L(t) - h - log lambda0(t) beside its share; one between t and t + cell
    costs L(t) - log(1 - exp(-D)), D = L(t + cell) - L(t). Recorded to the day, say, ties at a time would bias the first.
    """

    stiff = True

    def __init__(self, events: Times, law: DelayLaw) -> None:
        self.y, self.weight, self.law = events.y, events.weight, law
        self.n_shared = law.n_shared
        self.at = law.prepare(events.times)
        self.end = law.prepare(events.times + events.cell) if events.cell else None
        self.rate = float(self.weight @ self.y)
        # The value itself depends on the unit of time, and may be near 0; the entropy of the labels does not.
        self.scale = float(entr(self.rate) + entr(1.0 - self.rate))
        self.middle = law.prepare(events.times + events.cell / 2) if events.cell else self.at

    def _terms(self, h: Floats, shared: Floats) -> _Terms:
        log_hazard, cumulated = self.law.evaluate(self.at, shared)
        factor = safe_exp(h)
        total = cumulated * factor
        if self.end is None:
            return _Terms(factor, total, -h - log_hazard, np.full_like(h, -1.0), np.zeros_like(h), None)
        inside = np.clip((self.law.evaluate(self.end, shared)[1] - cumulated) * factor, 1e-300, 300.0)
        growth = np.expm1(inside)
        bend = inside * (inside * (growth + 1.0) - growth) / growth**2
        return _Terms(factor, total, -np.log(-np.expm1(-inside)), -inside / growth, bend, factor / growth)

    def _shared_gradient(self, terms: _Terms, d_total: Floats, shared: Floats) -> Floats:
        """Gradient in the shared parameters, given that in the total hazards of all rows."""
        rough = self.law.roughness(shared)[1]
        events = self.weight * self.y
        if terms.per_cell is None:
            return rough + self.law.pull_back(self.at, shared, -events, d_total * terms.factor)
        moved = events * terms.per_cell
        none = np.zeros_like(events)
        start = self.law.pull_back(self.at, shared, none, d_total * terms.factor + moved)
        return rough + start + self.law.pull_back(self.end, shared, none, -moved)


@dataclass(frozen=True)
class _Terms:
    """Of each row: exp(h), the total hazard, what an event costs beyond it with its derivatives in h."""

    factor: Floats
    total: Floats
    event: Floats
    d_event: Floats
    dd_event: Floats
    per_cell: Any  # minus the derivative of an event's cost in Lambda0(t + cell), where there are cells


class CureRisk(LawRisk):
    """The delayed feedback model: a share sigmoid(g) turns positive, after a delay with hazard exp(h) lambda0.

    A row costs
        y = 1:  -log sigmoid(g) + the cost of its event, see :class:`LawRisk`
        y = 0:  -log(1 - sigmoid(g) + sigmoid(g) exp(-L(e))) = softplus(g) - softplus(g - L(e)).
    Margins are (g, h).
    """

    n_margins = 2
    convex = False

    def __init__(self, events: Times, law: DelayLaw, horizon: float | None) -> None:
        super().__init__(events, law)
        self.intercepts = (True, not law.has_level)
        self.link = CureShare(law, horizon)

    def value_and_gradient(self, margins: Floats, shared: Floats = _NONE) -> tuple[float, Floats, Floats]:
        if len(margins) >= compiled.MANY:
            return self._compiled(margins, shared)
        g, h = margins.T
        terms = self._terms(h, shared)
        rest = g - terms.total
        positive = np.logaddexp(0.0, -g) + terms.total + terms.event
        negative = np.logaddexp(0.0, g) - np.logaddexp(0.0, rest)
        value = np.einsum("i,i->", self.weight, np.where(self.y, positive, negative)) + self.law.roughness(shared)[0]
        d_total = self.weight * np.where(self.y, 1.0, expit(rest))
        d_g = self.weight * expit(g) - d_total
        d_h = d_total * terms.total + np.where(self.y, self.weight * terms.d_event, 0.0)
        return float(value), np.column_stack([d_g, d_h]), self._shared_gradient(terms, d_total, shared)

    def _compiled(self, margins: Floats, shared: Floats) -> tuple[float, Floats, Floats]:
        """The same in one compiled pass."""
        log_hazard, cumulated = self.law.evaluate(self.at, shared)
        end = None if self.end is None else self.law.evaluate(self.end, shared)[1]
        value, d_margins, d_cumulated, d_end = compiled.cure(margins, self.y, self.weight, log_hazard, cumulated, end)
        rough, d_shared = self.law.roughness(shared)
        if self.n_shared:
            events = np.where(self.y, -self.weight, 0.0) if end is None else np.zeros(len(self.y))
            d_shared = d_shared + self.law.pull_back(self.at, shared, events, d_cumulated)
            if d_end is not None:
                d_shared += self.law.pull_back(self.end, shared, np.zeros(len(self.y)), d_end)
        return value + rough, d_margins, d_shared

    def curvature(self, margins: Floats, shared: Floats = _NONE) -> Floats:
        g, h = margins.T
        terms = self._terms(h, shared)
        rest = g - terms.total
        weighted = expit(rest) * terms.total
        in_g = expit(g) * expit(-g) - np.where(self.y, 0.0, expit(rest) * expit(-rest))
        # In this order a huge total meets a share of 0 before it is squared.
        in_h = np.where(self.y, terms.total + terms.dd_event, weighted - weighted * expit(-rest) * terms.total)
        return self.weight[:, None] * np.column_stack([in_g, in_h])

    def start(self) -> tuple[Floats, Floats]:
        events = self.weight * self.y
        level, shared = self.law.start(self.middle, events, events)
        rate = min(max(self.rate, 1e-6), 1 - 1e-6)
        return np.array([np.log(rate / (1 - rate)), level]), shared


class HazardRisk(LawRisk):
    """Proportional hazards without a cure share: hazard exp(g) lambda0, so everyone would turn positive in the end.

    A row costs L(e) where y = 0, and the cost of its event where y = 1, see :class:`LawRisk`.
    """

    def __init__(self, events: Times, law: DelayLaw, horizon: float) -> None:
        super().__init__(events, law)
        self.intercepts = (not law.has_level,)
        self.link = Incidence(law, horizon)

    def value_and_gradient(self, margins: Floats, shared: Floats = _NONE) -> tuple[float, Floats, Floats]:
        terms = self._terms(margins[:, 0], shared)
        cost = terms.total + np.where(self.y, terms.event, 0.0)
        value = np.einsum("i,i->", self.weight, cost) + self.law.roughness(shared)[0]
        d_g = self.weight * (terms.total + np.where(self.y, terms.d_event, 0.0))
        return float(value), d_g[:, None], self._shared_gradient(terms, self.weight, shared)

    def curvature(self, margins: Floats, shared: Floats = _NONE) -> Floats:
        terms = self._terms(margins[:, 0], shared)
        return (self.weight * (terms.total + np.where(self.y, terms.dd_event, 0.0)))[:, None]

    def start(self) -> tuple[Floats, Floats]:
        # Everyone is at risk here, converters and others alike.
        level, shared = self.law.start(self.middle, self.weight * self.y, self.weight)
        return np.array([level]), shared
