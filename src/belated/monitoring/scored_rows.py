"""Scores and outcomes as they were told: who was scored when, how high, and who turned positive when."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from belated.data.durations import DAY, parse_duration
from belated.data.event_log import EventLog
from belated.data.log_columns import reach_of
from belated.data.times import NEVER, parse_instant, show_instant
from belated.tables.frames import as_numbers, as_text, open_table
from belated.tables.refusal import refuse
from belated.typing import Bools, Floats, Ints

_MONDAY = 4 * DAY  # the first after the clock's beginning, a Thursday


@dataclass(frozen=True)
class ScoredRows:
    """Arrays of shape (n,), in order of time; times in microseconds on the clock of the log."""

    time: Ints
    outcome: Ints  # NEVER where there is none within the horizon
    score: Floats
    segment: Ints
    version: Ints
    segments: tuple[str, ...]
    versions: tuple[str, ...]
    now: int
    last: int  # outcome of any row, within the horizon or after it
    horizon: int
    grid: int  # the step of all times
    clock: str

    @classmethod
    def of(cls, log: EventLog, score: str, by: str | None, version: str | None, horizon: Any) -> ScoredRows:
        if log.on_cluster:
            raise ValueError("monitoring wants its rows here: collect the log first.")
        table, (time, outcome) = open_table(log.frame, "the scores"), log.times
        limit = parse_duration(horizon, "horizon", log.clock)
        values = _scores(as_numbers(table, score, "probabilities"), score)
        segment, segments = _codes(table, by)
        which, versions = _codes(table, version)
        late = np.where(outcome == NEVER, limit + 1, outcome - time) > limit
        found = cls(
            time,
            np.where(late, NEVER, outcome),
            values,
            segment,
            which,
            segments,
            versions,
            log.until,
            int(outcome[outcome != NEVER].max(initial=0)),
            limit,
            log.grid,
            log.clock,
        )
        if bool((np.diff(time) >= 0).all()):
            return found
        return found.take(np.argsort(time, kind="stable"))

    def take(self, rows: Any) -> ScoredRows:
        names = ("time", "outcome", "score", "segment", "version")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def known_until(self, until: Any) -> ScoredRows:
        """The same where outcomes are known up to an instant; scores given later are left out."""
        now = parse_instant(until, "until", self.clock)
        if now >= self.now:
            return replace(self, now=reach_of(until, self.now, self.clock))
        if now < self.time[0]:
            raise ValueError(f"until={until!r} is before the first score, at {self.show(int(self.time[0]))}.")
        return self.at(now)

    def at(self, now: int) -> ScoredRows:
        """The same as it was known at another time."""
        some = self.take(slice(0, int(np.searchsorted(self.time, now, side="right"))))
        outcome = np.where(some.outcome <= now, some.outcome, NEVER)
        last = self.last if self.last <= now else int(outcome[outcome != NEVER].max(initial=0))
        return replace(some, outcome=outcome, now=now, last=last)

    @property
    def positive(self) -> Bools:
        return self.outcome <= self.now

    @property
    def elapsed(self) -> Floats:
        """Ages in days."""
        found: Floats = (self.now - self.time) / DAY
        return found

    @property
    def days(self) -> float:
        """The horizon in days."""
        return self.horizon / DAY

    def show(self, at: int) -> str:
        """An instant; the day alone where that is all there is to say."""
        return show_instant(at, self.clock).removesuffix("+00:00").removesuffix(" 00:00:00")


def period_of(time: Ints, size: int, clock: str) -> Ints:
    """The beginning of each row's period. Whole weeks of dates begin on Mondays."""
    origin = _MONDAY if size % (7 * DAY) == 0 and clock != "seconds" else 0
    return (time - origin) // size * size + origin


def _scores(values: Floats, name: str) -> Floats:
    refuse(np.isnan(values), name, "{count} missing", values, "Every row needs the score that it was given.")
    advice = "Scores must be probabilities between 0 and 1; a margin becomes one by 1 / (1 + exp(-margin))."
    refuse((values < 0) | (values > 1), name, "{count} outside 0 to 1", values, advice)
    return values


def _codes(table: Any, name: str | None) -> tuple[Ints, tuple[str, ...]]:
    if name is None:
        return np.zeros(len(table), dtype=np.int16), ("",)
    coded = as_text(table, name).dictionary_encode()
    return np.asarray(coded.indices, dtype=np.int64), tuple(coded.dictionary.to_pylist())
