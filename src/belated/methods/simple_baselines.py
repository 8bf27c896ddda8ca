"""Rescale and STC: two simple baselines of Chapelle (KDD 2014)."""

from __future__ import annotations

import numpy as np
from scipy.special import logit

from belated.data.durations import parse_age
from belated.data.labels import Labels
from belated.methods.base import Learner, Method, require_mature_positives, warn_if_nothing_late
from belated.methods.delayed_feedback import late_weights
from belated.risks.base import Risk
from belated.risks.links import Ratio, Sigmoid
from belated.risks.separate_risks import SeparateRisks
from belated.risks.weighted import WeightedRisk


class Rescale(Method):
    """BL, its odds multiplied by one constant.

    The constant takes the average rate from what has been seen, mean(y), to what it will become,
    mean(y) + sum of the late rows' matched weights: for a model that is an intercept and no more it equals ConvDF.

    Examples
    --------
    >>> from belated import Rescale, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(Rescale(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.146
    """

    needs_window = True
    needs_delay = True
    rewinds = True

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        warn_if_nothing_late(labels, "Rescale")
        share = labels.weight / labels.total
        rate = float(share[labels.y].sum())
        target = rate + float(late_weights(labels, "matched").sum())
        if not target < 1:
            raise ValueError(
                f"Rescale with window={labels.window:g} estimates a positive rate of {target:.3g}, which is not below 1. Use another window."
            )
        shift = float(logit(target) - logit(rate))
        return WeightedRisk(share * labels.y, share * ~labels.y, link=Sigmoid(shift))


class STC(Method):
    """Short-term conversions: p(positive within a short time) / p(that early | positive).

    The first is learned on all rows older than the short time, the second on mature positives.

    Parameters
    ----------
    short : float, optional
        The short time, in the unit of elapsed; by default the median delay of mature positives.
    ceiling : float
        The ratio of two estimates can exceed 1; it is cut here.

    Examples
    --------
    >>> from belated import STC, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier(STC(), window=5.0).fit_snapshot(snap)
    >>> round(float(clf.predict_proba(snap.X)[:, 1].mean()), 3)
    0.155
    """

    needs_window = True
    needs_delay = True

    def __init__(self, short: float | None = None, ceiling: float = 0.99) -> None:
        self.short = short
        self.ceiling = ceiling

    def risk(self, labels: Labels, learner: Learner) -> Risk:
        assert labels.elapsed is not None and labels.delay is not None and labels.window is not None
        converted = labels.mature & labels.y
        require_mature_positives(labels, "STC")
        if not 0 < self.ceiling <= 1:
            raise ValueError(f"ceiling={self.ceiling!r} must be above 0 and at most 1.")
        short = 0.0 if self.short == 0 else parse_age(self.short, "short")
        if short is None:
            short = self._usual_delay(labels)
        elif not 0 <= short < labels.window:
            raise ValueError(f"short={short:g} must be at least 0 and below window={labels.window:g}.")
        quick = labels.y & (np.where(labels.y, labels.delay, np.inf) <= short + labels.tie_width)
        ripe = labels.elapsed >= short - labels.tie_width
        if quick[converted].all() or not quick[converted].any():
            raise ValueError(
                f"short={short:g}: {'all' if quick[converted].any() else 'no'} mature positives came that early. Choose another short time."
            )
        parts = []
        for rows in (ripe, converted):
            share = labels.weight * rows / labels.weight[rows].sum()
            parts.append(WeightedRisk(share * quick, share * ~quick))
        return SeparateRisks(parts, Ratio(self.ceiling))

    def _usual_delay(self, labels: Labels) -> float:
        """The median delay of mature positives; a shorter one where none or few of them come later, or the window is over."""
        assert labels.delay is not None and labels.window is not None
        converted = labels.mature & labels.y
        delays, weight = labels.delay[converted], labels.weight[converted]
        median = float(np.quantile(delays, 0.5, weights=weight, method="inverted_cdf"))
        latest = min(float(delays.max()), labels.window) - labels.tie_width
        if median < latest:
            return median
        earlier = delays[delays < latest]
        if not len(earlier):
            raise ValueError(
                f"STC compares positives that come early with those that come later within the window ({labels.window:g}), and the {len(delays)} "
                f"mature positives do not differ in that. Use another window, or another method."
            )
        return float(earlier.max())
