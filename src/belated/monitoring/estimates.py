"""How good scores are, of rows whose labels are not all in: rate, log loss, Brier score, area under the curve, and observed over expected.

With q the score of a row, F the share of positives seen by its age and y whether it is positive yet, r = y / F(age) has the mean of the final label. So
    rate = mean r,  log loss = mean(l0 + r (l1 - l0)),  Brier = mean(q^2 + r (1 - 2 q)),
    AUC = (A - rate / 2) / (1 - rate), with A the mean share of all rows ranked below, weighted by r,
are right whatever q is, if F is. Observed over expected is sum y / sum q F. All of them are sums over rows of alpha + r beta, to first order, which gives their errors: of the rows, of
F, and of delays that may have shifted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from belated.monitoring.delay_shifts import ScaledDelays, Shift
from belated.typing import Bools, Floats

LEAST = 0.05  # of positives seen; younger rows are left out, since 1 / F varies too much
_JUDGED = 5  # positives, or as many expected, from which on chance is told
_BINS = 40  # of ages, for the error of F
_STEP = 0.1  # of log s, for how F moves with it
FIGURES = ("rate", "log_loss", "brier", "auc", "oe")


@dataclass(frozen=True)
class Figure:
    """An estimate with an interval."""

    value: float | None
    low: float | None
    high: float | None
    error: float | None = None  # of its logarithm, log odds or itself, as the interval was made

    def as_plain_data(self) -> list[float | None]:
        return [self.value, self.low, self.high]


NOTHING = Figure(None, None, None)


@dataclass(frozen=True)
class Estimate:
    """Of a group of rows: how many there are, what is known, and the figures by name."""

    rows: int
    too_young: int
    positive: int
    expected: float  # positives so far, if scores and delays are right
    share_in: float  # of labels: the mean of F over its rows
    final: bool
    shift: Shift
    figures: dict[str, Figure]
    chance: float = 1.0  # that positives are as far from what was expected, or further, if scores are right

    def as_plain_data(self) -> dict[str, Any]:
        names = ("rows", "too_young", "positive", "expected", "share_in", "final")
        plain = {name: getattr(self, name) for name in names}
        return {**plain, **{name: figure.as_plain_data() for name, figure in self.figures.items()}}


def estimate(
    q: Floats,
    y: Bools,
    elapsed: Floats,
    scaled: ScaledDelays,
    shift: Shift,
    varied: float = 1.0,
    level: float = 0.95,
) -> Estimate:
    """Of rows with scores q, labels as they stand, and ages."""
    n, final = len(q), bool(elapsed.min(initial=np.inf) >= scaled.horizon * (1 - 1e-12))
    elapsed = np.minimum(elapsed, scaled.horizon)
    seen = scaled.at(elapsed, shift.mean)
    old = seen >= LEAST
    expected, positive = float(q @ seen), int(y.sum())
    share = float(seen.mean()) if n else 0.0
    young = n - int(old.sum())
    if young:
        q, y, elapsed, seen = q[old], y[old], elapsed[old], seen[old]
    figures, chance = dict.fromkeys(FIGURES, NOTHING), 1.0
    if len(q):
        delays = _Delays(elapsed, seen, scaled, shift)
        counted = _Counted.of(q, y, seen, delays, varied)
        figures, chance = _figures(q, y, seen, delays, counted, varied, level), counted.chance
    return Estimate(n, young, positive, expected, share, final, shift, figures, chance)


class _Delays:
    """How an estimate moves with F: by bins of ages, and with a shift of all delays."""

    def __init__(self, elapsed: Floats, seen: Floats, scaled: ScaledDelays, shift: Shift) -> None:
        # Bins of equal width in F, where its error lives; each stands for its mean age.
        code = np.minimum((seen * _BINS).astype(np.int64), _BINS)
        count = np.bincount(code, minlength=_BINS + 1)
        ages = np.bincount(code, elapsed, _BINS + 1) / np.maximum(count, 1)
        self.code, self.covariance = code, scaled.shares.covariance_at(ages * np.exp(-shift.mean))
        self.variance = shift.variance
        if shift.variance > 0:
            longer, shorter = (np.maximum(scaled.at(elapsed, shift.mean + step), 1e-300) for step in (_STEP, -_STEP))
            self.slope = np.log(longer / shorter) / (2.0 * _STEP)

    def variance_of(self, moved: Floats) -> float:
        """The variance of a sum that moves by ``moved`` (one a row) for each unit of log F at its age."""
        by_bin = np.bincount(self.code, moved, _BINS + 1)
        sampled = float(by_bin @ self.covariance @ by_bin)
        return sampled + float(moved @ self.slope) ** 2 * self.variance if self.variance > 0 else sampled


@dataclass(frozen=True)
class _Counted:
    """Positives, as many as scores and delays promise by now, and the variance of their number if the scores are right."""

    positive: int
    expected: float
    variance: float

    @classmethod
    def of(cls, q: Floats, y: Bools, seen: Floats, delays: _Delays, varied: float) -> _Counted:
        by_now = q * seen
        expected = max(float(by_now.sum()), 1e-9)  # scores may all be 0
        variance = varied * float(by_now @ (1.0 - by_now)) + delays.variance_of(by_now)
        return cls(int(y.sum()), expected, max(variance, 1e-9 * expected))

    @property
    def chance(self) -> float:
        """Both tails of a Poisson number, of which one stands for as many positives as give it the variance."""
        if max(self.expected, self.positive) < _JUDGED:
            return 1.0
        each = self.variance / self.expected
        number, mean = self.positive / each, self.expected / each
        above = special.gammainc(number, mean) if self.positive else 1.0
        return float(min(1.0, 2.0 * min(above, special.gammaincc(number + 1.0, mean))))

    @property
    def most_times(self) -> float:
        """As many times what was expected as still leaves a chance of one in forty to see none."""
        return float(-np.log(0.025) * self.variance / self.expected**2)


def _figures(
    q: Floats, y: Bools, seen: Floats, delays: _Delays, counted: _Counted, varied: float, level: float
) -> dict[str, Figure]:
    n, z = len(q), float(stats.norm.ppf(0.5 + level / 2))
    r = y / seen
    safe = np.clip(q, 1e-15, 1 - 1e-15)
    zero, one = -np.log1p(-safe), -np.log(safe)
    rate = float(r.mean())

    def error(alpha: Floats | float, beta: Floats | float) -> float:
        """The standard error of the mean of alpha + r beta."""
        rows = varied * float(np.var(alpha + r * beta)) / n
        return float(np.sqrt(rows + delays.variance_of(-(r * beta) / n)))

    def plain(value: float, wide: float) -> Figure:
        return Figure(value, value - z * wide, value + z * wide, wide)

    def positive(value: float, wide: float) -> Figure:
        if not value > 0:
            return Figure(value, 0.0, None)
        return Figure(value, value * float(np.exp(-z * wide)), value * float(np.exp(z * wide)), wide)

    def lost(alpha: Floats, beta: Floats) -> Figure:
        """Without positives nothing varies yet: it is known where all labels are in, and nothing can be said before."""
        value = float((alpha + r * beta).mean())
        if rate > 0:
            return plain(value, error(alpha, beta))
        return Figure(value, None, None) if seen.min() >= 1.0 else NOTHING

    found = {
        "rate": positive(rate, error(0.0, 1.0) / rate if rate > 0 else 0.0),
        "log_loss": lost(zero, one - zero),
        "brier": lost(q**2, 1 - 2 * q),
        "auc": _area(q, r, rate, error, z),
    }
    found = {name: _within(figure, 1.0 if name in ("rate", "auc") else np.inf) for name, figure in found.items()}
    found["oe"] = _observed_over_expected(q * seen, y, delays, counted, varied, positive)
    return found


def _within(figure: Figure, most: float) -> Figure:
    """Of a figure between 0 and ``most``: an estimate beyond them, as few positives may give one, is none, and its interval ends there."""
    value, low, high = figure.value, figure.low, figure.high
    if (low is not None and low > most) or (high is not None and high < 0):
        return NOTHING
    value = None if value is None or not 0 <= value <= most else value
    return Figure(
        value, None if low is None else max(low, 0.0), None if high is None else min(high, most), figure.error
    )


def _area(q: Floats, r: Floats, rate: float, error: Any, z: float) -> Figure:
    if not 0 < rate < 1:
        return NOTHING
    n = len(q)
    order = np.argsort(q, kind="stable")
    ordered = q[order]
    low, high = np.searchsorted(ordered, ordered, side="left"), np.searchsorted(ordered, ordered, side="right")
    below = np.empty(n)
    below[order] = (low + high) / (2.0 * n)
    weight = np.append(0.0, np.cumsum(r[order]))
    above = np.empty(n)
    above[order] = (weight[-1] - (weight[low] + weight[high]) / 2.0) / n
    mean = float(r @ below) / n
    share = mean / rate
    value = (share - rate / 2) / (1 - rate)
    in_mean = 1.0 / (rate * (1 - rate))
    in_rate = (-share / rate - 0.5) / (1 - rate) + value / (1 - rate)
    wide = error(in_mean * above, in_mean * below + in_rate)
    if not 0 < value < 1:
        return Figure(value, None, None, None)
    odds, scaled = np.log(value / (1 - value)), wide / (value * (1 - value))
    low_value, high_value = (float(1 / (1 + np.exp(-(odds + sign * z * scaled)))) for sign in (-1, 1))
    return Figure(value, low_value, high_value, scaled)


def _observed_over_expected(
    by_now: Floats, y: Bools, delays: _Delays, counted: _Counted, varied: float, positive: Any
) -> Figure:
    ratio = counted.positive / counted.expected
    if not ratio > 0:
        return Figure(0.0, 0.0, counted.most_times, None)
    rows = varied * float(((y - ratio * by_now) ** 2).sum()) / (ratio * counted.expected) ** 2
    figure: Figure = positive(ratio, float(np.sqrt(rows + delays.variance_of(-by_now / counted.expected))))
    return figure
