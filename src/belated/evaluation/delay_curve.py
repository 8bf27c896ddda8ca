"""When positives arrive: the share that has turned positive by each age, corrected for rows too young to tell.

Every row is watched until its outcome or, without one, until its age; that is right-censored time to an event, and the
Kaplan-Meier estimator gives the share positive by age t as 1 - prod over ages s <= t of (1 - d_s / n_s), with d_s
outcomes at age s among n_s rows watched for at least that long. A plain share of positives by delay would count the
young rows as if they had had time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belated.arrays import look_up
from belated.cluster.sharded import Sharded, add_up, merge_weights, weights_by_value
from belated.typing import Floats

_POINTS = 400
_DRAWS = 400
_MANY = 1_000_000  # positives on a cluster, of which each delay is looked at by itself


def _left_before(watched: Floats, weight: Floats, ages: Floats) -> Floats:
    """The weight of rows that were not watched until each age."""
    order = np.argsort(watched)
    found: Floats = np.append(0.0, np.cumsum(weight[order]))[np.searchsorted(watched[order], ages, side="left")]
    return found


@dataclass(frozen=True)
class DelayCurve:
    """A curve over ``ages`` (days, increasing): share of all rows positive by then, with a 95% band.

    ``share`` is the same relative to its end, which is the horizon or the oldest age: the share of all positives that
    have been seen by an age.
    """

    ages: Floats
    positive: Floats
    low: Floats
    high: Floats
    share: Floats
    share_low: Floats
    share_high: Floats

    steps: tuple[Floats, Floats]  # all ages at which the share grows, and the share there

    def seen(self, age: Floats) -> Floats:
        """Share of all positives that have been seen by each age."""
        ages, share = self.steps
        return look_up(np.append(0.0, share), np.searchsorted(ages, age * (1 + 1e-12), side="right"))

    def age_of(self, share: float) -> float:
        """The first age by which this share of all positives has been seen."""
        ages, shares = self.steps
        return float(ages[min(int(np.searchsorted(shares, share * (1 - 1e-12))), len(ages) - 1)])


def delay_curve(
    elapsed: Floats, delay: Floats, horizon: float | None = None, weight: Floats | None = None, seed: int = 0
) -> DelayCurve:
    """The curve of rows with the given ages and delays (NaN where no outcome has been seen), up to the horizon.

    ``weight`` counts as repetition. The bands come from redrawing the increments of -log(1 - curve), gamma distributed with Greenwood's variance.
    """
    end = float(elapsed.max()) if horizon is None else min(horizon, float(elapsed.max()))
    positive = np.where(np.isnan(delay), np.inf, delay) <= end * (1 + 1e-12)
    if not positive.any():
        raise ValueError("no positive has been seen, so there is nothing to say about delays.")
    weight = np.ones_like(elapsed) if weight is None else weight
    if isinstance(delay, Sharded) and positive.sum() > _MANY:  # as if recorded on a fine grid
        delay = np.ceil(delay / end * _MANY) * (end / _MANY)
    ages, events = merge_weights(add_up(weights_by_value, delay[positive], weight[positive]))
    watched = np.where(positive, delay, np.minimum(elapsed, end))
    at_risk = weight.sum() - add_up(_left_before, watched, weight, ages)
    left = np.maximum(at_risk - events, 0.5 * weight[positive].min())
    hazard, variance = np.cumsum(np.log(at_risk / left)), np.cumsum(events / (at_risk * left))
    exact = -np.expm1(-hazard)
    steps_of = ages, exact / exact[-1]
    keep = np.unique(np.linspace(0, len(ages) - 1, min(len(ages), _POINTS)).astype(int))
    ages, steps, spread = ages[keep], np.diff(hazard[keep], prepend=0.0), np.diff(variance[keep], prepend=0.0)
    drawn = np.random.default_rng(seed).gamma(steps**2 / spread, spread / steps, (_DRAWS, len(ages)))
    drawn = np.vstack([steps, drawn])
    curves = -np.expm1(-np.cumsum(drawn, axis=1))
    shares = curves / np.maximum(curves[:, -1:], 1e-300)
    low, high = np.quantile(curves[1:], [0.025, 0.975], axis=0)
    share_low, share_high = np.quantile(shares[1:], [0.025, 0.975], axis=0)
    return DelayCurve(ages, curves[0], low, high, shares[0], share_low, share_high, steps_of)
