"""All scored rows as they are known at one time: the delays of all of them, and estimates by period and by segment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from belated.data.durations import DAY
from belated.evaluation.seen_shares import seen_shares
from belated.monitoring.delay_shifts import ScaledDelays, Shift, shifts
from belated.monitoring.estimates import Estimate, Figure, estimate
from belated.monitoring.same_age import same_age
from belated.monitoring.scored_rows import ScoredRows, period_of
from belated.tables.refusal import counted
from belated.typing import Bools, Ints

_FEWEST = 50  # positives to learn delays from
_SEGMENTS = 200  # the most segments that are looked at
_ALPHA = 0.01  # of the test for changed delays
_CLEAR = float(stats.norm.ppf(1 - _ALPHA / 2))


@dataclass(frozen=True)
class Period:
    version: str
    start: int
    estimate: Estimate
    delays: str  # "unchanged", "later" or "sooner"
    plain: dict[str, Any]


class Look:
    """All rows as they are known at one time: the delays of all of them, and estimates of groups of rows."""

    def __init__(self, rows: ScoredRows, size: int) -> None:
        self.rows, self.size = rows, size
        self.y, self.elapsed = rows.positive, rows.elapsed
        _check_history(rows, int(self.y.sum()))
        self.delay = np.where(self.y, rows.outcome - rows.time, 0) / DAY
        self.start = period_of(rows.time, size, rows.clock)
        self.scaled = self._delays_of(self.y)
        usual = self._usual()
        if usual is not self.y:
            self.scaled = self._delays_of(usual)
        self.varied = self._variation()

    def expected_since(self, last: int) -> tuple[float, float]:
        """How many outcomes were to be expected after an instant, by the scores, or by what came where that is less; and by now, of rows within the last period's length."""
        rows = self.rows
        first = int(np.searchsorted(rows.time, rows.now - rows.horizon))  # older rows have shown all they will
        time, score = rows.time[first:], rows.score[first:]
        by_now, by_then = (
            score * self.scaled.at(np.minimum((end - time) / DAY, rows.days), 0.0)
            for end in (rows.now, last + rows.grid)
        )
        right = min(1.0, float(self.y[first:].sum()) / max(float(by_now.sum()), 1e-300))
        return right * float((by_now - by_then).sum()), right * float(by_now[time > rows.now - self.size].sum())

    def _delays_of(self, positive: Bools) -> ScaledDelays:
        shares = seen_shares(self.delay[positive], np.minimum(self.elapsed[positive], self.rows.days))
        return ScaledDelays(shares, self.rows.days, self.rows.grid / DAY)

    def _usual(self) -> Bools:
        """The positives of periods whose delays have not clearly changed, if they are most of all and old enough to show all delays."""
        groups = self._periods[1]
        found = self.y.copy()
        for group, shift in zip(groups, self._shifts(groups), strict=True):
            if abs(shift.z) > _CLEAR:
                found[group] = False
        left, all_of_them = int(found.sum()), int(self.y.sum())
        if left == all_of_them or left < max(_FEWEST, all_of_them / 2):
            return self.y
        return found if self.elapsed[found].max() >= self.rows.days else self.y

    def _variation(self) -> float:
        """By how much days vary more than independent rows would, within a period."""
        by_now = self.rows.score * self.scaled.at(np.minimum(self.elapsed, self.rows.days), 0.0)
        period = (self.start - self.start[0]) // self.size * len(self.rows.versions) + self.rows.version

        def per_period(over: Any, under: Any) -> Any:
            return (np.bincount(period, over) / np.maximum(np.bincount(period, under), 1e-100))[period]

        # Scores may be far off: what is expected is scaled to what came, and rows vary by as much as they do.
        expected = per_period(self.y, by_now) * by_now
        variance = per_period((self.y - expected) ** 2, expected) * expected
        day = (self.rows.time - self.rows.time[0]) // min(DAY, self.size)
        by_day = [np.bincount(day, weights) for weights in (self.y, expected, variance)]
        happened, expected, variance = (sums[by_day[1] >= 5] for sums in by_day)
        freedom = len(expected) - len(np.unique(period))
        over = (happened - expected) ** 2 / np.maximum(variance, 1e-9 * expected)
        return max(1.0, float(over.sum() / freedom)) if freedom >= 5 else 1.0

    def estimates(self, groups: list[Ints]) -> list[Estimate]:
        """Of groups of rows, given by their numbers; delays of each may be their own."""
        return [self._estimate(group, shift) for group, shift in zip(groups, self._shifts(groups), strict=True)]

    def _shifts(self, groups: list[Ints]) -> list[Shift]:
        measured = []
        for group in groups:
            mine = group[self.y[group]]
            measured.append(self.scaled.measure(self.delay[mine], np.minimum(self.elapsed[mine], self.rows.days)))
        return shifts(measured)

    def _estimate(self, group: Any, shift: Shift) -> Estimate:
        score, y, elapsed = self.rows.score[group], self.y[group], self.elapsed[group]
        return estimate(score, y, elapsed, self.scaled, shift, self.varied)

    def by_period(self) -> list[Period]:
        kinds, groups = self._periods
        found = [self._period(kind, one) for kind, one in zip(kinds, self.estimates(groups), strict=True)]
        return sorted(found, key=lambda one: (one.start, one.version))

    def of_period(self, version: str, start: int) -> Estimate:
        """The estimate of one of them."""
        kinds, groups = self._periods
        wanted = kinds.index((version, start))
        return self._estimate(groups[wanted], self._shifts(groups)[wanted])

    @cached_property
    def _periods(self) -> tuple[list[tuple[str, int]], list[Ints]]:
        """Version and start of each period, and the numbers of its rows."""
        rows = self.rows
        kinds, groups = _groups((self.start - self.start[0]) // self.size * len(rows.versions) + rows.version)
        named = [
            (rows.versions[kind % len(rows.versions)], int(self.start[0]) + kind // len(rows.versions) * self.size)
            for kind in kinds.tolist()
        ]
        return named, groups

    def _period(self, kind: tuple[str, int], one: Estimate) -> Period:
        rows, (version, start) = self.rows, kind
        changed = "unchanged"
        if abs(one.shift.z) > _CLEAR:
            changed = "later" if one.shift.z > 0 else "sooner"
        end = start + self.size
        plain = {
            "period": rows.show(start),
            "end": rows.show(end),
            "version": version or None,
            **one.as_plain_data(),
            "calibration": _inverse(one.figures["oe"]).as_plain_data(),
            "rate_so_far": one.positive / max(one.rows, 1),
            "final_on": rows.show(min(end, rows.now) + rows.horizon),
            "delays": changed,
            "delay": _delay_ratio(one.shift).as_plain_data(),
            "same_age": same_age(rows, start, self.size, version),
        }
        return Period(version, start, one, changed, plain)

    def by_segment(self, versions: list[str]) -> tuple[list[dict[str, Any]], int]:
        """Of rows that are not final, of the versions given, the most striking first; and how many segments have too few rows to be among them."""
        rows, many = self.rows, len(self.rows.segments)
        wanted = np.isin(rows.version, [rows.versions.index(version) for version in versions])
        recent = np.flatnonzero((self.elapsed < rows.days) & wanted)
        if not len(recent):
            return [], 0
        kinds, groups = _groups(rows.version[recent].astype(np.int64) * many + rows.segment[recent])
        order = np.argsort([-len(group) for group in groups], kind="stable")[:_SEGMENTS]
        estimates = self.estimates([recent[groups[k]] for k in order])
        adjusted = stats.false_discovery_control([one.chance for one in estimates])
        found = [
            {
                "segment": rows.segments[int(kinds[k]) % many],
                "version": rows.versions[int(kinds[k]) // many] or None,
                **one.as_plain_data(),
                "calibration": _inverse(one.figures["oe"]).as_plain_data(),
                "adjusted_p": float(p),
            }
            for k, one, p in zip(order, estimates, adjusted, strict=True)
        ]
        return sorted(found, key=lambda row: (row["adjusted_p"], -row["rows"])), len(groups) - len(order)


def _groups(code: Ints) -> tuple[Ints, list[Ints]]:
    """The values of codes, and which rows have each."""
    order = np.argsort(code, kind="stable")
    kinds, first = np.unique(code[order], return_index=True)
    return kinds, np.split(order, first[1:])


def _check_history(rows: ScoredRows, positive: int) -> None:
    oldest = float((rows.now - rows.time[0]) / DAY)
    if oldest < rows.days * (1 - 1e-12):
        raise ValueError(
            f"the oldest score is {oldest:.3g} days old and the horizon is {rows.days:.3g}: nobody has seen yet how many come after "
            f"{oldest:.3g} days. Take a shorter horizon, or older scores as well."
        )
    if positive < _FEWEST:
        raise ValueError(
            f"{counted(positive, 'positive')} to learn delays from, and at least {_FEWEST} are needed. Give a longer history."
        )


def _inverse(figure: Figure) -> Figure:
    value, low, high = (None if not v else 1.0 / v for v in (figure.value, figure.low, figure.high))
    return Figure(value, high, low, figure.error)


def _delay_ratio(shift: Shift) -> Figure:
    """How many times as long as usual positives take."""
    if not np.isfinite(shift.error):
        return Figure(None, None, None)
    value, low, high = (float(np.exp(shift.measured + k * shift.error)) for k in (0.0, -1.96, 1.96))
    return Figure(value, low, high, shift.error)
