"""Likelihoods of delays, as risks: with a share that never turns positive, and without one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from belated.laws import DelayLaw, safe_exp
from belated.links import CureShare, Incidence
from belated.risk import Risk

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_NONE = np.zeros(0)


class LawRisk(Risk):
    """What the likelihoods under a :class:`DelayLaw` have in common.

    ``times`` are delays where ``y`` and ages elsewhere; ``weight`` sums to 1.
    """

    def __init__(self, y: Bools, times: Floats, weight: Floats, law: DelayLaw) -> None:
        self.y = y
        self.weight = weight
        self.law = law
        self.at = law.prepare(times)
        self.n_shared = law.n_shared
        events = weight * y
        self.rate = float(events.sum())
        self.mean_delay = float(max(events @ times / self.rate, 1e-9 * times.max()))

    def _cumulated(self, log_factor: Floats, shared: Floats) -> tuple[Floats, Floats, Floats]:
        """log lambda0, and the cumulated hazard exp(h) Lambda0 with and without its factor exp(h)."""
        log_hazard, cumulated = self.law.evaluate(self.at, shared)
        factor = safe_exp(log_factor)
        return log_hazard, cumulated * factor, factor


class CureRisk(LawRisk):
    """The delayed feedback model: a share sigmoid(g) turns positive, after a delay with hazard exp(h) lambda0.

    With L = exp(h) Lambda0(t), a row costs
        y = 1:  -log sigmoid(g) - h - log lambda0(d) + L(d)
        y = 0:  -log(1 - sigmoid(g) + sigmoid(g) exp(-L(e))) = softplus(g) - softplus(g - L(e)).
    Margins are (g, h).
    """

    n_margins = 2
    convex = False

    def __init__(self, y: Bools, times: Floats, weight: Floats, law: DelayLaw, horizon: float | None) -> None:
        super().__init__(y, times, weight, law)
        self.intercepts = (True, not law.has_level)
        self.link = CureShare(law, horizon)

    def value_and_gradient(self, margins: Floats, shared: Floats = _NONE) -> tuple[float, Floats, Floats]:
        g, h = margins.T
        log_hazard, total, factor = self._cumulated(h, shared)
        rest = g - total
        positive = np.logaddexp(0.0, -g) - h - log_hazard + total
        negative = np.logaddexp(0.0, g) - np.logaddexp(0.0, rest)
        rough, d_rough = self.law.roughness(shared)
        value = self.weight @ np.where(self.y, positive, negative) + rough
        d_total = self.weight * np.where(self.y, 1.0, expit(rest))
        d_g = self.weight * (expit(g) - np.where(self.y, 1.0, expit(rest)))
        d_event = -self.weight * self.y
        d_h = d_event + d_total * total
        d_shared = self.law.pull_back(self.at, shared, d_event, d_total * factor) + d_rough
        return float(value), np.column_stack([d_g, d_h]), d_shared

    def curvature(self, margins: Floats, shared: Floats = _NONE) -> Floats:
        g, h = margins.T
        total = self._cumulated(h, shared)[1]
        rest = g - total
        bend = expit(rest) * expit(-rest)
        in_g = expit(g) * expit(-g) - np.where(self.y, 0.0, bend)
        in_h = np.where(self.y, total, expit(rest) * total - bend * total**2)
        return self.weight[:, None] * np.column_stack([in_g, in_h])

    def start(self) -> tuple[Floats, Floats]:
        level, shared = self.law.start(self.mean_delay)
        rate = min(max(self.rate, 1e-6), 1 - 1e-6)
        return np.array([np.log(rate / (1 - rate)), level]), shared


class HazardRisk(LawRisk):
    """Proportional hazards without a cure share: hazard exp(g) lambda0, so everyone would turn positive in the end.

    With L = exp(g) Lambda0(t), a row costs L(d) - g - log lambda0(d) where y = 1 and L(e) elsewhere.
    """

    def __init__(self, y: Bools, times: Floats, weight: Floats, law: DelayLaw, horizon: float) -> None:
        super().__init__(y, times, weight, law)
        self.intercepts = (not law.has_level,)
        self.link = Incidence(law, horizon)

    def value_and_gradient(self, margins: Floats, shared: Floats = _NONE) -> tuple[float, Floats, Floats]:
        g = margins[:, 0]
        log_hazard, total, factor = self._cumulated(g, shared)
        rough, d_rough = self.law.roughness(shared)
        value = self.weight @ (total - np.where(self.y, g + log_hazard, 0.0)) + rough
        d_event = -self.weight * self.y
        d_shared = self.law.pull_back(self.at, shared, d_event, self.weight * factor) + d_rough
        return float(value), (d_event + self.weight * total)[:, None], d_shared

    def curvature(self, margins: Floats, shared: Floats = _NONE) -> Floats:
        return (self.weight * self._cumulated(margins[:, 0], shared)[1])[:, None]

    def start(self) -> tuple[Floats, Floats]:
        # Everyone is at risk here, converters and others alike, so the level is far below that of the delays alone.
        level, shared = self.law.start(self.mean_delay)
        return np.array([level]), shared + np.log(self.rate)
