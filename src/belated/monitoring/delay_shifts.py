"""Delays that have changed: how many times as long the positives of a group take as those of all rows together.

With F the share of positives seen by an age, those of a group may have taken s times as long: F_s(a) = F(a / s) / F(H / s), which is 1 at the horizon H. For a positive with delay d in a row of
age e, F_s(d) / F_s(e) is then evenly spread between 0 and 1 whatever the rate is, so a change of the delays can be told from one of the rate. Whether there is a change at all is asked at s = 1 (a score
test), where F is known; at the estimate, rows too young to show one may seem to show it clearly. What is believed of a group is a mixture of "its delays have not changed" and "they have", each as likely as the
other before looking, and s then somewhere around a half to twice. F itself is learned from the groups whose delays have not clearly changed.

What comes after the oldest age of a group nobody has seen. Delays may change there by another factor than before: its logarithm is taken to be off by _UNSEEN times itself, give or take.
Where delays have not shifted that adds nothing; where they have, intervals become wide, as they should.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from belated.evaluation.seen_shares import SeenShares
from belated.typing import Floats

_CHANGED = 0.5  # how likely it is before looking that the delays of a group have changed
_USUAL_SIZE = np.log(2.0)  # and then the standard deviation of log s
_FEWEST = 10  # positives that say something about their delays
_UNSEEN = 0.5
_WIDEST = 4.0  # of log s
_NONE = 1e-5  # of log s: as good as 0
_ENOUGH = 20_000  # positives; of more, every second, third, ... by delay
_POINTS = 4000  # of the curve
_COARSE = 0.002  # of the horizon
_MANY = 0.005  # of the positives


@dataclass(frozen=True)
class Shift:
    """log s of a group: as measured, with its error, and as believed given all groups, with the variance of that."""

    measured: float = 0.0
    error: float = np.inf
    mean: float = 0.0
    variance: float = 0.0

    @property
    def z(self) -> float:
        """How many standard errors the delays of the group are from those of all rows; above 0, longer."""
        return self.measured / self.error if np.isfinite(self.error) else 0.0


class ScaledDelays:
    """F_s, for delays that are recorded on a grid, too: straight lines between its points."""

    def __init__(self, shares: SeenShares, horizon: float, grid: float) -> None:
        self.shares, self.horizon, self.grid = shares, horizon, grid
        after = np.append(shares.before[1:], 1.0)
        ages, seen = np.append(0.0, shares.delays), np.append(0.0, after)
        # A step is a grid long, however far the one before: where times are coarse, and where many come at once.
        steep = (after - shares.before > _MANY) | (grid > horizon * _COARSE)
        ages, seen = np.append(ages, (shares.delays - grid)[steep]), np.append(seen, shares.before[steep])
        order = np.lexsort((seen, ages))
        keep = ages[order] >= 0
        ages, seen = ages[order][keep], seen[order][keep]
        some = np.unique(np.linspace(0, len(ages) - 1, min(len(ages), _POINTS)).astype(np.int64))
        self.ages = np.append(ages[some], max(horizon, float(shares.delays[-1])))
        self.seen = np.append(seen[some], 1.0)

    def at(self, ages: Floats, log_s: float) -> Floats:
        """F_s at ages; before arrival nothing has been seen."""
        if log_s == 0.0:
            return np.where(ages >= 0, self.shares.at(ages), 0.0)
        scale = np.exp(-log_s)
        end = max(float(np.interp(self.horizon * scale, self.ages, self.seen)), 1e-300)
        return np.where(ages >= 0, np.minimum(np.interp(ages * scale, self.ages, self.seen) / end, 1.0), 0.0)

    def measure(self, delay: Floats, elapsed: Floats) -> tuple[float, float]:
        """log s of positives with these delays, in rows of these ages, and its standard error; it is no clearer than that s is not 1."""
        if len(delay) > _ENOUGH:
            order = np.lexsort((elapsed, delay))[:: -(-len(delay) // _ENOUGH)]
            delay, elapsed = delay[order], elapsed[order]
        before = delay - self.grid

        def excess(log_s: float) -> float:
            """How far the places of delays among those that could be seen are above their middle, on average; falls with s."""
            seen = np.maximum(self.at(elapsed, log_s), 1e-300)
            place = (self.at(delay, log_s) + self.at(before, log_s)) / (2.0 * seen)
            return float(np.minimum(place, 1.0).mean()) - 0.5

        if len(delay) < _FEWEST:
            return 0.0, np.inf
        if excess(-_WIDEST) <= 0 or excess(_WIDEST) >= 0:
            return 0.0, np.inf
        found = float(brentq(excess, -_WIDEST, _WIDEST, xtol=1e-6))
        bend = (excess(found + 0.05) - excess(found - 0.05)) / 0.1
        if bend > -1e-3:
            return 0.0, np.inf
        noise = float(np.sqrt(1.0 / 12.0 / len(delay)))
        error, z = noise / -bend, abs(excess(0.0)) / noise
        if abs(found) > _NONE:
            error = max(error, min(abs(found) / max(z, 1e-9), _WIDEST))
        return found, error


def shifts(measured: list[tuple[float, float]]) -> list[Shift]:
    """Of groups, what to believe of each."""
    found = [_believed(value, error) for value, error in measured]
    known = [one for one in found if np.isfinite(one.error)]
    usual = float(np.mean([one.mean**2 + one.variance for one in known])) if known else 0.0
    return [one if np.isfinite(one.error) else Shift(variance=usual) for one in found]


def _believed(value: float, error: float) -> Shift:
    """The mean and the variance of "there is no change" and "there is one", by how well each explains what was measured."""
    if not np.isfinite(error):
        return Shift()
    ours, theirs = error**2, _USUAL_SIZE**2
    share = theirs / (theirs + ours)
    odds = _CHANGED / (1.0 - _CHANGED) * np.sqrt(1.0 - share) * np.exp(min(0.5 * (value / error) ** 2 * share, 500.0))
    changed, there = float(odds / (1.0 + odds)), share * value
    mean, variance = changed * there, changed * share * ours + changed * (1.0 - changed) * there**2
    return Shift(value, error, mean, variance + _UNSEEN**2 * (mean**2 + variance))
