"""Rescale and STC: two simple baselines of Chapelle (KDD 2014)."""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from belated.data.labels import Observed
from belated.methods.base import Learner, Method, require_mature_positives, warn_if_nothing_late
from belated.methods.delayed_feedback import late_weights
from belated.risks.base import Risk, SeparateRisks, WeightedRisk
from belated.risks.links import Ratio, Sigmoid


class Rescale(Method):
    """BL, its odds multiplied by one constant.

    The constant takes the average rate from what is observed, mean(y), to what it will become,
    mean(y) + sum of the late rows' matched weights: for a model that is an intercept and no more it equals ConvDF.
    """

    needs_window = True
    needs_delay = True
    rewinds = True

    def risk(self, observed: Observed, learner: Learner) -> Risk:
        warn_if_nothing_late(observed, "Rescale")
        share = observed.weight / observed.total
        rate = float(share[observed.y].sum())
        target = rate + float(late_weights(observed, "matched").sum())
        if not target < 1:
            raise ValueError(
                f"Rescale with window={observed.window:g} estimates a positive rate of {target:.3g}, which is not below 1. Use another window."
            )
        shift = float(logit(target) - logit(rate))
        return WeightedRisk(share * observed.y, share * ~observed.y, link=Sigmoid(shift))


class STC(Method):
    """Short-term conversions: p(positive within a short time) / p(that early | positive).

    The first is learned on all rows older than the short time, the second on mature positives.

    Parameters
    ----------
    short : float, optional
        The short time, in the unit of elapsed; by default the median delay of mature positives.
    ceiling : float
        The ratio of two estimates can exceed 1; it is cut here.
    """

    needs_window = True
    needs_delay = True
    means_nothing_without_times = True

    def __init__(self, short: float | None = None, ceiling: float = 0.99) -> None:
        self.short = short
        self.ceiling = ceiling

    def risk(self, observed: Observed, learner: Learner) -> Risk:
        assert observed.elapsed is not None and observed.delay is not None and observed.window is not None
        converted = observed.mature & observed.y
        require_mature_positives(observed, "STC")
        if not 0 < self.ceiling <= 1:
            raise ValueError(f"ceiling={self.ceiling!r} must be above 0 and at most 1.")
        short = self.short
        if short is None:
            short = float(
                np.quantile(observed.delay[converted], 0.5, weights=observed.weight[converted], method="inverted_cdf")
            )
        if not 0 <= short < observed.window:
            raise ValueError(f"short={short:g} must be at least 0 and below window={observed.window:g}.")
        quick = observed.y & (np.where(observed.y, observed.delay, np.inf) <= short + observed.tick)
        ripe = observed.elapsed >= short - observed.tick
        if quick[converted].all() or not quick[converted].any():
            raise ValueError(
                f"short={short:g}: {'all' if quick[converted].any() else 'no'} mature positives came that early. Choose another short time."
            )
        parts = []
        for rows in (ripe, converted):
            share = observed.weight * rows / observed.weight[rows].sum()
            parts.append(WeightedRisk(share * quick, share * ~quick))
        return SeparateRisks(parts, Ratio(self.ceiling))
