"""Whether positives of one group come later than those of another, although in young rows late ones have not been seen yet."""

from __future__ import annotations

import numpy as np

from belated.typing import Floats


def later_than(delay: Floats, elapsed: Floats, other_delay: Floats, other_elapsed: Floats) -> float:
    """How many standard errors later positives come than those of the other group, given their delays and the ages of their rows.

    The log-rank test in reverse time: of the positives with delay <= s <= age, R in number of whom r are of the first group, d came at s itself. Were delays the same, d r / R of
    those would be of the first group, whatever the rates and ages are.

    >>> rng = np.random.default_rng(0)
    >>> delay, age = rng.exponential(2.0, 2000), rng.uniform(0, 10, 2000)
    >>> other, other_age = rng.exponential(1.5, 2000), rng.uniform(0, 5, 2000)
    >>> seen, other_seen = delay <= age, other <= other_age
    >>> later_than(delay[seen], age[seen], other[other_seen], other_age[other_seen]) > 2
    True
    """
    at = np.unique(np.concatenate([delay, other_delay]))
    came, risk = _at_risk(at, delay, elapsed)
    other_came, other_risk = _at_risk(at, other_delay, other_elapsed)
    both, of_both = came + other_came, risk + other_risk
    share = risk / of_both
    excess = float((came - both * share).sum())
    variance = float((both * share * (1.0 - share) * (of_both - both) / np.maximum(of_both - 1, 1)).sum())
    return excess / float(np.sqrt(variance)) if variance > 0 else 0.0


def _at_risk(at: Floats, delay: Floats, elapsed: Floats) -> tuple[Floats, Floats]:
    """At each delay, how many positives came then, and how many had come by then in rows at least that old."""
    slack = 1 + 1e-12
    by_then = np.searchsorted(np.sort(delay), at * slack, side="right")
    younger = np.searchsorted(np.sort(elapsed), at / slack, side="left")
    return np.diff(by_then, prepend=0).astype(np.float64), (by_then - younger).astype(np.float64)
