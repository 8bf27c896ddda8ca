"""Links: from a model's margins (and a risk's shared parameters) to a probability.

Links outlive training: a fitted classifier keeps one, so they hold numbers, not training rows. The links of likelihoods
stand beside their risks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit

from belated.typing import Floats


class Link:
    """Margins of shape (n, m) and shared parameters of shape (s,) to arrays of shape (n,)."""

    has_probability: ClassVar[bool] = True

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        raise NotImplementedError

    def decision(self, margins: Floats, shared: Floats) -> Floats:
        """A score that is positive where the positive class is likelier."""
        return logit(self.probability(margins, shared))

    def positive_by(self, margins: Floats, shared: Floats, age: float | Floats) -> Floats:
        """The probability of turning positive by an age, or by one of each row, on the clock of the link's own horizon."""
        raise NotImplementedError(f"{type(self).__name__} knows no law of delays.")

    def still_to_come(self, margins: Floats, shared: Floats, ages: Floats) -> Floats:
        """Of rows that are not positive at their age, the probability that they turn positive within the horizon."""
        raise NotImplementedError(f"{type(self).__name__} knows no law of delays.")


@dataclass(frozen=True)
class Sigmoid(Link):
    """p = sigmoid(g + shift)."""

    shift: float = 0.0

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        return expit(margins[:, 0] + self.shift)

    def decision(self, margins: Floats, shared: Floats) -> Floats:
        return margins[:, 0] + self.shift


@dataclass(frozen=True)
class Halfway(Link):
    """p = (1 + g) / 2 cut to [0, 1]: what the squared loss estimates."""

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        return np.clip((1.0 + margins[:, 0]) / 2.0, 0.0, 1.0)

    def decision(self, margins: Floats, shared: Floats) -> Floats:
        return margins[:, 0]


@dataclass(frozen=True)
class SignOnly(Link):
    """A margin whose sign is all that means something, as with the double hinge."""

    has_probability = False

    def decision(self, margins: Floats, shared: Floats) -> Floats:
        return margins[:, 0]


@dataclass(frozen=True)
class Ratio(Link):
    """p = sigmoid(g) / sigmoid(h), at most ``ceiling``."""

    ceiling: float

    def probability(self, margins: Floats, shared: Floats) -> Floats:
        # As a difference of logarithms, since far out both may be 0.
        ratio = np.logaddexp(0.0, -margins[:, 1]) - np.logaddexp(0.0, -margins[:, 0])
        return np.minimum(np.exp(np.minimum(ratio, 0.0)), self.ceiling)
