"""The window to suggest: the age by which most of the positives have come."""

from __future__ import annotations

import numpy as np

from belated.data.snapshot import Snapshot
from belated.evaluation.delay_curve import DelayCurve, delay_curve

_MOST = 0.9  # of the positives within the horizon


def age_of_most(curve: DelayCurve) -> float:
    """The first age by which nine in ten of all positives have been seen."""
    return curve.age_of(_MOST)


def suggest_window(snap: Snapshot, lookback: float) -> float:
    """The age by which nine in ten positives have come, as known in a snapshot, in days.

    At most half the lookback (days), which methods that set the clock back need, and at most the horizon; and not so short
    that hardly anything is left to be late. Rounded to four digits, for it is printed in commands.
    """
    if not snap.y.any():
        raise ValueError(f"no positives are known by {snap.as_of}: start the cut-offs later, or lengthen the lookback.")
    days = age_of_most(delay_curve(snap.elapsed, snap.delay, snap.horizon))
    longest = lookback / 2.0 if snap.horizon is None else min(lookback / 2.0, snap.horizon)
    # Of the history that most rows have: a stray arrival years ago says nothing about delays.
    shortest = min(float(np.quantile(snap.elapsed, 0.98)) / 50.0, longest)
    return min(float(f"{np.clip(days, shortest, longest):.4g}"), longest)
