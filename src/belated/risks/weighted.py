"""The risk of almost every method: each row costs a l(g) + b l(-g), with two weights a row."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from belated.arrays import dot
from belated.risks import compiled_costs
from belated.risks.base import EMPTY, Risk
from belated.risks.links import Link
from belated.risks.losses import LogisticLoss, Loss
from belated.typing import Bools, Floats, Ints


class WeightedRisk(Risk):
    """J(g) = sum_i a_i l(g_i) + b_i l(-g_i), with a >= 0, and b of either sign.

    For a linear-odd loss this is (a+b) l(-g) - a g, convex wherever a + b >= 0.
    """

    _spread: tuple[Bools, WeightedRisk] | None = None

    def __init__(self, a: Floats, b: Floats, loss: Loss | None = None, link: Link | None = None) -> None:
        self.a = a
        self.b = b
        self.loss = LogisticLoss() if loss is None else loss
        self.link = self.loss.link if link is None else link
        self.smooth = self.loss.smooth
        # Rounding alone may push a + b below 0 where they cancel.
        dust = 1e-12 * float(abs(a).max()) if len(a) else 0.0
        self.convex = bool((b >= 0).all() or (self.loss.linear_odd and (a + b >= -dust).all()))

    @property
    def logistic_weights(self) -> tuple[Floats, Floats] | None:  # type: ignore[override]
        return (self.a, self.b) if self.loss.logistic else None

    @property
    def steep(self) -> bool:
        return bool((self.b < 0).any())  # labels beyond 1, which no margin reaches

    def _compiled(self, margins: Any) -> bool:
        return self.loss.logistic and isinstance(margins, np.ndarray) and len(margins) >= compiled_costs.MANY

    def value_and_gradient(self, margins: Any, shared: Any = EMPTY) -> tuple[float, Any, Any]:
        g = margins[:, 0]
        if self._compiled(margins):
            total, gradient = compiled_costs.logistic(g, self.a, self.b)
        elif self.loss.linear_odd:
            both = self.a + self.b
            total = dot(both, self.loss.value(-g)) - dot(self.a, g)
            gradient = -both * self.loss.derivative(-g) - self.a
        else:
            total = dot(self.a, self.loss.value(g)) + dot(self.b, self.loss.value(-g))
            gradient = self.a * self.loss.derivative(g) - self.b * self.loss.derivative(-g)
        return float(total), gradient[:, None], shared

    def curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        g = margins[:, 0]
        if self._compiled(margins):
            return compiled_costs.logistic_curvature(g, self.a, self.b)[:, None]
        return (self.a * self.loss.curvature(g) + self.b * self.loss.curvature(-g))[:, None]

    def kinds(self) -> Ints:
        found = 3 * (self.a > 0) + np.sign(self.b).astype(np.int64) + 1
        return np.where((self.a == 0) & (self.b == 0), -1, found)

    def row_costs(self, margins: Floats, shared: Floats = EMPTY) -> Floats:
        g = margins[:, 0]
        if self.loss.linear_odd:
            return (self.a + self.b) * self.loss.value(-g) - self.a * g
        return self.a * self.loss.value(g) + self.b * self.loss.value(-g)

    def negative_part(self, margins: Any) -> float:
        if self._compiled(margins):
            return compiled_costs.logistic(margins[:, 0], 0.0 * self.b, self.b)[0]
        return float(dot(self.b, self.loss.value(-margins[:, 0])))

    def take(self, rows: Bools, factor: float = 1.0) -> Risk:
        some = copy(self)
        some.a, some.b, some._spread = factor * self.a[rows], factor * self.b[rows], None
        return some

    def spread(self, rows: Bools) -> Risk | None:
        if self._spread is None or self._spread[0] is not rows:  # asked for again at each l2
            some = copy(self)
            some.a, some.b, some._spread = np.zeros(len(rows)), np.zeros(len(rows)), None
            some.a[rows], some.b[rows] = self.a, self.b
            self._spread = rows, some
        return self._spread[1]

    def start(self) -> tuple[Floats, Floats]:
        rate = float(np.clip(self.a.sum() / (self.a.sum() + self.b.sum()), 1e-6, 1 - 1e-6))
        return np.array([self.loss.level(rate)]), EMPTY

    def smoothed(self, width: float) -> Risk:
        return WeightedRisk(self.a, self.b, self.loss.smoothed(width), self.link)
