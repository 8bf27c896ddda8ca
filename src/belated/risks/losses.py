"""Margin losses l(z), where z is large when a sample is on the right side.

The three here satisfy the linear-odd condition l(z) - l(-z) = -z (du Plessis, Niu and Sugiyama 2015, Table 1), which
keeps risks with negative weights convex. Another loss is a subclass of :class:`Loss`; methods with negative weights
refuse it unless ``linear_odd`` is true of it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from belated.arrays import at_most, between, namespace, sigmoid, softplus
from belated.risks.links import Halfway, Link, Sigmoid, SignOnly


class Loss(BaseEstimator):
    """A convex loss of a margin: its value, first and second derivative, elementwise."""

    linear_odd: ClassVar[bool] = False
    smooth: ClassVar[bool] = True
    logistic: ClassVar[bool] = False  # the one loss for which solvers have short cuts
    link: ClassVar[Link] = SignOnly()  # what the minimiser of its risk estimates

    def value(self, z: Any) -> Any:
        raise NotImplementedError

    def derivative(self, z: Any) -> Any:
        raise NotImplementedError

    def curvature(self, z: Any) -> Any:
        raise NotImplementedError

    def level(self, rate: float) -> float:
        """The constant margin that minimises the loss where a share ``rate`` is positive."""
        return 0.0

    def smoothed(self, width: float) -> Loss:
        """A smooth stand-in within ``width`` of this loss; itself where it is smooth."""
        return self


class LogisticLoss(Loss):
    """l(z) = log(1 + exp(-z)).

    >>> round(float(LogisticLoss().value(np.array(0.0))), 4)
    0.6931
    """

    linear_odd = True
    logistic = True
    link = Sigmoid()

    def value(self, z: Any) -> Any:
        return softplus(-z)

    def derivative(self, z: Any) -> Any:
        return -sigmoid(-z)

    def curvature(self, z: Any) -> Any:
        return sigmoid(z) * sigmoid(-z)

    def level(self, rate: float) -> float:
        return float(np.log(rate) - np.log1p(-rate))


class SquaredLoss(Loss):
    """l(z) = (z - 1)^2 / 4."""

    linear_odd = True
    link = Halfway()

    def value(self, z: Any) -> Any:
        return (z - 1.0) ** 2 / 4.0

    def derivative(self, z: Any) -> Any:
        return (z - 1.0) / 2.0

    def curvature(self, z: Any) -> Any:
        return namespace(z).full_like(z, 0.5)

    def level(self, rate: float) -> float:
        return 2.0 * rate - 1.0


class DoubleHingeLoss(Loss):
    """l(z) = max(-z, max(0, (1 - z) / 2)), with each kink rounded over an interval of ``width`` (0: not at all).

    A kink at k, where the slope rises by s, becomes the parabola s (z - k + width/2)^2 / (2 width) on its interval.
    """

    linear_odd = True

    def __init__(self, width: float = 0.0) -> None:
        self.width = width

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.width > 0

    def smoothed(self, width: float) -> Loss:
        return DoubleHingeLoss(width)

    def value(self, z: Any) -> Any:
        return -z + 0.5 * (self._ramp(z + 1.0) + self._ramp(z - 1.0))

    def derivative(self, z: Any) -> Any:
        return -1.0 + 0.5 * (self._step(z + 1.0) + self._step(z - 1.0))

    def curvature(self, z: Any) -> Any:
        xp = namespace(z)
        if not self.width:
            return xp.zeros_like(z)
        near = [xp.astype(xp.abs(z - kink) < self.width / 2, z.dtype) for kink in (-1.0, 1.0)]
        return 0.5 / self.width * (near[0] + near[1])

    def _ramp(self, u: Any) -> Any:
        if not self.width:
            return -at_most(-u, 0.0)
        inside = between(u + self.width / 2, 0.0, self.width)
        return inside**2 / (2.0 * self.width) - at_most(self.width / 2 - u, 0.0)

    def _step(self, u: Any) -> Any:
        if not self.width:
            return namespace(u).astype(u > 0, u.dtype)
        return between(u / self.width + 0.5, 0.0, 1.0)


LOSSES = {"logistic": LogisticLoss, "squared": SquaredLoss, "double_hinge": DoubleHingeLoss}


def resolve_loss(loss: str | Loss, needs_linear_odd: bool, method: str) -> Loss:
    """The loss that a name or an object means, refused where it would make the method's risk non-convex."""
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise ValueError(
                f"loss={loss!r} is not known; choose one of {', '.join(map(repr, LOSSES))}, or pass a Loss object."
            )
        loss = LOSSES[loss]()
    if not isinstance(loss, Loss):
        raise ValueError(f"loss must be a name or a Loss object, got {type(loss).__name__}.")
    if needs_linear_odd and not loss.linear_odd:
        raise ValueError(
            f"{method} gives some samples a negative weight, and stays convex only for a loss with l(z) - l(-z) = -z, which "
            f"{type(loss).__name__} does not satisfy. Use one of {', '.join(map(repr, LOSSES))}."
        )
    return loss
