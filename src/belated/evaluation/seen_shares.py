"""Which share of all positives has been seen by an age, learned from positives alone, so that a change of the rate does not disturb it.

A positive is known only if its delay is at most its row's age. Read backwards, from old ages to young ones, that is no obstacle: of positives that came by
age s in rows at least that old, R in number, d came at s itself. The share seen before s is the product of 1 - d / R over all delays from s on
(Lagakos, Barraj and De Gruttola, 1988). Actuaries know it as the chain ladder: R / (R - d) is how much a column of ages grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belated.typing import Floats


@dataclass(frozen=True)
class SeenShares:
    """F(age), a step function that is 1 from the last delay on, and the variance of log F before each step."""

    delays: Floats  # distinct, increasing
    before: Floats  # F just before each of them
    variance: Floats  # of log(before); 0 where before is 0

    def at(self, ages: Floats) -> Floats:
        """F at each age: the share of positives that has been seen by then."""
        place = np.searchsorted(self.delays, np.asarray(ages) * (1 + 1e-12), side="right")
        found: Floats = np.append(self.before, 1.0)[place]
        return found

    def variance_at(self, ages: Floats) -> Floats:
        """The variance of log F at each age, from how few positives there were."""
        place = np.searchsorted(self.delays, np.asarray(ages) * (1 + 1e-12), side="right")
        found: Floats = np.append(self.variance, 0.0)[place]
        return found

    def covariance_at(self, ages: Floats) -> Floats:
        """That of log F at several ages with each other: F at the younger is F at the older times a factor that is independent of it."""
        return self.variance_at(np.maximum(ages[:, None], ages[None, :]))

    def age_of(self, share: float) -> float:
        """The first age by which this share has been seen."""
        return float(self.delays[np.searchsorted(np.append(self.before, 1.0)[1:], share * (1 - 1e-12))])


def seen_shares(delay: Floats, elapsed: Floats, weight: Floats | None = None) -> SeenShares:
    """From the delays of positives and the ages of their rows; ``weight`` counts as repetition."""
    weight = np.ones(len(delay)) if weight is None else weight
    distinct, code = np.unique(delay, return_inverse=True)
    came = np.bincount(code, weight, len(distinct))
    order = np.argsort(elapsed, kind="stable")
    younger = np.append(0.0, np.cumsum(weight[order]))[
        np.searchsorted(elapsed[order], distinct * (1 - 1e-12), side="left")
    ]
    at_risk = np.maximum(np.cumsum(came) - younger, came)
    # Where all that are old enough came at one age, half a row more is taken to have come before, lest everything younger count as nothing.
    left = np.maximum(at_risk - came, 0.5 * weight[weight > 0].min(initial=1.0))
    left[0] = 0.0
    with np.errstate(divide="ignore"):
        steps = np.log(left / np.maximum(at_risk, left))
    spread = np.where(left > 0, came / np.maximum(at_risk * left, 1e-300), 0.0)
    before = np.exp(np.cumsum(steps[::-1])[::-1])
    variance = np.where(before > 0, np.cumsum(spread[::-1])[::-1], 0.0)
    return SeenShares(distinct, before, variance)
