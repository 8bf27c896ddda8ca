"""Risks: from margins to a number to minimise.

A risk holds what a method knows about n rows and maps margins of shape (n, m), one column for each function a model
has to learn, and ``shared`` parameters of shape (s,) to a value with its gradient. That is all a model needs to know
of a method; a model adds its own regulariser. Weights are already divided by N or M, so a value is an average.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from belated.risks import compiled
from belated.risks.links import Link, link_of
from belated.risks.losses import LogisticLoss, Loss
from belated.typing import Floats

_NONE = np.zeros(0)


class Risk:
    """The interface between methods and models.

    Attributes
    ----------
    n_margins, n_shared : int
        m and s.
    intercepts : sequence of bool of length m
        Which margins want an intercept; the others get their level from ``shared``.
    link : Link
        From margins and shared parameters to a probability.
    convex, smooth : bool
        Whether the value is convex in (margins, shared), and differentiable everywhere.
    minibatch_only : bool
        Whether only training on mini-batches gives this risk its meaning.
    stiff : bool
        Whether the curvature may change by orders of magnitude within a fit, as that of hazards does.
    scale : float or None
        What a tolerance is relative to; None: the value.
    """

    n_margins: int = 1
    n_shared: int = 0
    intercepts: Sequence[bool] = (True,)
    link: Link
    convex: bool = True
    smooth: bool = True
    minibatch_only: bool = False
    stiff: bool = False
    scale: float | None = None

    def value_and_gradient(self, margins: Floats, shared: Floats = _NONE) -> tuple[float, Floats, Floats]:
        """Value, gradient in the margins (n, m), gradient in the shared parameters (s,)."""
        raise NotImplementedError

    def curvature(self, margins: Floats, shared: Floats = _NONE) -> Floats:
        """Second derivative of the value in each single margin, of shape (n, m)."""
        raise NotImplementedError

    def start(self) -> tuple[Floats, Floats]:
        """A first guess: a constant for each margin (m,), and the shared parameters (s,)."""
        raise NotImplementedError

    def smoothed(self, width: float) -> Risk:
        """A smooth stand-in that tends to this risk with ``width``; itself where it is smooth."""
        return self


class WeightedRisk(Risk):
    """J(g) = sum_i a_i l(g_i) + b_i l(-g_i), with a >= 0, and b of either sign.

    For a linear-odd loss this is (a+b) l(-g) - a g, convex wherever a + b >= 0.
    """

    def __init__(self, a: Floats, b: Floats, loss: Loss | None = None, link: Link | None = None) -> None:
        self.a = a
        self.b = b
        self.loss = LogisticLoss() if loss is None else loss
        self.link = link_of(self.loss) if link is None else link
        self.smooth = self.loss.smooth
        # Rounding alone may push a + b below 0 where they cancel.
        dust = 1e-12 * float(np.abs(a).max(initial=0.0))
        self.convex = bool((b >= 0).all() or (self.loss.linear_odd and (a + b >= -dust).all()))

    def value_and_gradient(self, margins: Floats, shared: Floats = _NONE) -> tuple[float, Floats, Floats]:
        g = margins[:, 0]
        if isinstance(self.loss, LogisticLoss) and len(g) >= compiled.MANY:
            total, gradient = compiled.logistic(g, self.a, self.b)
            return total, gradient[:, None], _NONE
        if self.loss.linear_odd:
            both = self.a + self.b
            value = np.einsum("i,i->", both, self.loss.value(-g)) - np.einsum("i,i->", self.a, g)
            gradient = -both * self.loss.derivative(-g) - self.a
            return float(value), gradient[:, None], _NONE
        value = np.einsum("i,i->", self.a, self.loss.value(g)) + np.einsum("i,i->", self.b, self.loss.value(-g))
        gradient = self.a * self.loss.derivative(g) - self.b * self.loss.derivative(-g)
        return float(value), gradient[:, None], _NONE

    def curvature(self, margins: Floats, shared: Floats = _NONE) -> Floats:
        g = margins[:, 0]
        if isinstance(self.loss, LogisticLoss) and len(g) >= compiled.MANY:
            curvature = np.empty(len(g))
            compiled.logistic_curvature(np.ascontiguousarray(g), self.a, self.b, curvature)
            return curvature[:, None]
        return (self.a * self.loss.curvature(g) + self.b * self.loss.curvature(-g))[:, None]

    def start(self) -> tuple[Floats, Floats]:
        rate = float(np.clip(self.a.sum() / (self.a.sum() + self.b.sum()), 1e-6, 1 - 1e-6))
        return np.array([self.loss.level(rate)]), _NONE

    def smoothed(self, width: float) -> Risk:
        return WeightedRisk(self.a, self.b, self.loss.smoothed(width), self.link)


class NonNegativeRisk(WeightedRisk):
    """J+(g) + max(J-(g), 0), with J+ = sum a l(g) and J- = sum b l(-g), which cannot truly be negative.

    It equals max(J, J+), so with a linear model and a linear-odd loss it is convex, with a kink where J- = 0. Its
    least value is max over t in [0, 1] of min over g of J+ + t J-; :meth:`relaxed` is that inner risk.
    With ``ascent`` the gradient is -grad J- while J- < 0, a rule for mini-batches that belongs to no function.
    """

    def __init__(
        self, a: Floats, b: Floats, loss: Loss | None = None, link: Link | None = None, ascent: bool = False
    ) -> None:
        super().__init__(a, b, loss, link)
        self.smooth = False
        self.minibatch_only = ascent

    def negative_part(self, margins: Floats) -> float:
        """J-, before the correction."""
        return float(np.einsum("i,i->", self.b, self.loss.value(-margins[:, 0])))

    def value_and_gradient(self, margins: Floats, shared: Floats = _NONE) -> tuple[float, Floats, Floats]:
        corrected = self.negative_part(margins) < 0
        if corrected and self.minibatch_only:
            negative = WeightedRisk(np.zeros_like(self.a), self.b, self.loss)
            return self.relaxed(0.0).value_and_gradient(margins)[0], -negative.value_and_gradient(margins)[1], _NONE
        return self.relaxed(0.0 if corrected else 1.0).value_and_gradient(margins)

    def curvature(self, margins: Floats, shared: Floats = _NONE) -> Floats:
        return self.relaxed(0.0 if self.negative_part(margins) < 0 else 1.0).curvature(margins)

    def relaxed(self, share: float) -> WeightedRisk:
        """J+ + share * J-."""
        return WeightedRisk(self.a, share * self.b, self.loss, self.link)

    def smoothed(self, width: float) -> Risk:
        return NonNegativeRisk(self.a, self.b, self.loss.smoothed(width), self.link, self.minibatch_only)


class SeparateRisks(Risk):
    """The sum of one-margin risks, each on a margin of its own."""

    def __init__(self, risks: Sequence[WeightedRisk], link: Link) -> None:
        self.risks = risks
        self.link = link
        self.n_margins = len(risks)
        self.intercepts = (True,) * len(risks)
        self.convex = all(risk.convex for risk in risks)

    def value_and_gradient(self, margins: Floats, shared: Floats = _NONE) -> tuple[float, Floats, Floats]:
        parts = [risk.value_and_gradient(margins[:, [k]]) for k, risk in enumerate(self.risks)]
        return sum(part[0] for part in parts), np.hstack([part[1] for part in parts]), _NONE

    def curvature(self, margins: Floats, shared: Floats = _NONE) -> Floats:
        return np.hstack([risk.curvature(margins[:, [k]]) for k, risk in enumerate(self.risks)])

    def start(self) -> tuple[Floats, Floats]:
        return np.concatenate([risk.start()[0] for risk in self.risks]), _NONE
