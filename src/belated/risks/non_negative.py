"""A weighted risk whose negative part is kept from going below 0."""

from __future__ import annotations

from typing import Any

from belated.arrays import at_least, namespace
from belated.risks.base import EMPTY, Risk
from belated.risks.links import Link
from belated.risks.losses import Loss
from belated.risks.weighted import WeightedRisk
from belated.typing import Floats


class NonNegativeRisk(WeightedRisk):
    """J+(g) + max(J-(g), 0), with J+ = sum a l(g) and J- = sum b l(-g), which cannot truly be negative.

    It equals max(J, J+), so with a linear model and a linear-odd loss it is convex, with a kink where J- = 0. Its
    least value is max over t in [0, 1] of min over g of J+ + t J-; :meth:`relaxed` is that inner risk.
    With ``ascent`` the gradient is -step grad J- while J- < -threshold, a rule for mini-batches (Kiryo et al. 2017) that belongs
    to no function.
    """

    non_negative = True
    logistic_weights = None

    def __init__(
        self,
        a: Floats,
        b: Floats,
        loss: Loss | None = None,
        link: Link | None = None,
        ascent: bool = False,
        threshold: float = 0.0,
        step: float = 1.0,
    ) -> None:
        super().__init__(a, b, loss, link)
        self.smooth = False
        self.minibatch_only = ascent
        self.threshold, self.step = threshold, step

    def value_and_gradient(self, margins: Any, shared: Any = EMPTY) -> tuple[float, Any, Any]:
        below = self.negative_part(margins) < -self.threshold
        if below and self.minibatch_only:
            nothing = namespace(margins).zeros_like(self.a)
            negative = WeightedRisk(nothing, self.b, self.loss).value_and_gradient(margins)[1]
            return self.relaxed(0.0).value_and_gradient(margins)[0], -self.step * negative, shared
        return self.relaxed(0.0 if below else 1.0).value_and_gradient(margins, shared)

    def curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        return self.relaxed(0.0 if self.negative_part(margins) < -self.threshold else 1.0).curvature(margins)

    def bounding_curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        """Of all rows, also while only J+ counts: steps would else go as far where few rows are positive as where all are."""
        return WeightedRisk(self.a, at_least(self.b, 0.0), self.loss).curvature(margins)

    def relaxed(self, share: float) -> WeightedRisk:
        """J+ + share * J-."""
        return WeightedRisk(self.a, share * self.b, self.loss, self.link)

    def smoothed(self, width: float) -> Risk:
        how = (self.minibatch_only, self.threshold, self.step)
        return NonNegativeRisk(self.a, self.b, self.loss.smoothed(width), self.link, *how)
