"""The same forecast at dates of the log's own past, where what came is known, beside the chain ladder's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from belated.data.durations import DAY
from belated.data.event_log import EventLog
from belated.data.times import show_instant
from belated.forecasting.bands import overdispersion
from belated.forecasting.open_rows import KnownRows
from belated.forecasting.predictors import ChainLadderFamily, Family, Predictor
from belated.forecasting.sums import added
from belated.forecasting.worth import ValueColumn
from belated.notices import logger
from belated.typing import Bools, Floats, Ints

BLOCKS = 10  # of arrival time, each of which is left out in one refit
_FEWEST = 20  # positives that came, and that were known


@dataclass(frozen=True)
class PastForecast:
    """Of rows that were not final at a date: what was forecast, and what came."""

    at: int
    until: int
    whole: bool  # whether all of it can have come by now
    rows: int
    mean: float
    variance: float  # of draws
    ladder: float
    came: float
    each: float  # what one of those that came is worth; 1 for counts
    mean_by_cohort: float  # the absolute errors of cohorts, added up, over what came
    ladder_by_cohort: float

    def as_plain_data(self, clock: str) -> dict[str, Any]:
        return {
            "as_of": show_instant(self.at, clock),
            "until": show_instant(self.until, clock),
            "rows": self.rows,
            "forecast": self.mean,
            "chain_ladder": self.ladder,
            "came": self.came,
        }


def past_dates(log: EventLog, now: int, horizon: int, count: int) -> list[int]:
    """Dates spread evenly over the later part of the past, where a whole horizon lies before and after; where there is no room for that, less."""
    if not (isinstance(count, Integral) and count >= 0):
        raise ValueError(f"cutoffs={count!r} must be a whole number of at least 0.")
    grid, half = log.grid, (now - log.first) // 2
    # A forecast from much less history than there is today would say little about today's.
    for before, after in ((max(half, horizon), horizon), (horizon, horizon), (horizon // 2, horizon // 4)):
        first, last = log.first + before, now - after
        if last - first >= count * grid and last > first:
            places = np.linspace(first, last, count) if count > 1 else np.array([last] * count)
            return sorted({int(log.first + (place - log.first) // grid * grid) for place in places})
    return []


def apart(past: list[PastForecast], horizon: int) -> float:
    """How many dates of the past are as good as independent: rows of two dates less than a horizon apart are partly the same."""
    return min(len(past), 1.0 + (past[-1].at - past[0].at) / horizon) if past else 1.0


def look_back(
    log: EventLog,
    family: Family,
    dates: list[int],
    now: int,
    horizon: int,
    ahead: int,
    lookback: int,
    values: ValueColumn | None,
    cohort: int,
    done: Callable[[], None],
) -> list[PastForecast]:
    """Forecasts at dates of the past, of what comes within ``ahead``; the setting of a model is chosen at the first of them, which knows nothing of what came."""
    found: list[PastForecast] = []
    chosen: Family | None = None
    for date in dates:
        rows = KnownRows.of(log, date, lookback, horizon, values, None)
        done()
        if rows.y.sum() < _FEWEST or not rows.unripe.any():
            continue
        try:
            chosen = family.chosen(rows) if chosen is None else chosen
            found += _forecast_at(log, chosen, rows, date, now, min(ahead, horizon), cohort)
        except ValueError as error:
            logger.info("no forecast at %s: %s", show_instant(date, log.clock), error)
    return found


def _forecast_at(
    log: EventLog, family: Family, rows: KnownRows, at: int, now: int, span: int, cohort: int
) -> list[PastForecast]:
    """The forecast at a date; none where too little came to compare it with."""
    until = min(at + span, now)
    some = rows.take(rows.unripe)
    later = came_until(log, some, until)
    came = some.in_the_end * later
    total, count = float(came.sum()), int(later.sum())
    if count < _FEWEST or not total > 0:
        return []
    predictor = family.fit(rows)
    ahead = (until - at) / DAY
    mine = predictor.to_come(some)(ahead)
    theirs = ChainLadderFamily(cohort).fit(rows).to_come(some)(ahead)
    _, code = np.unique(some.arrival // cohort, return_inverse=True)

    def by_cohort(expected: Floats) -> float:
        return float(np.abs(np.bincount(code, some.worth.value * expected - came)).sum() / total)

    varied = variation(predictor, rows, block_of_days(rows, BLOCKS))
    one = PastForecast(
        at,
        until,
        until == at + span,
        len(later),
        float(some.worth.value @ mine),
        varied * float(some.worth.variance(mine).sum()),
        float(some.worth.value @ theirs),
        total,
        total / count,
        by_cohort(mine),
        by_cohort(theirs),
    )
    return [one]


def variation(predictor: Predictor, rows: KnownRows, block: Ints) -> float:
    """By how much sums over blocks of arrival time vary more than independent rows would."""
    p = np.clip(predictor.expected_so_far(rows), 0.0, 1.0)
    # Where only positives have a value, it would say who is positive: then rows are counted.
    worth = np.ones(len(p)) if rows.worth.spread.any() else rows.worth.value
    return overdispersion(*(added(block, w) for w in (worth * rows.y, worth * p, worth**2 * p * (1.0 - p))))


def block_of_days(rows: KnownRows, blocks: int) -> Ints:
    """The number of each row's stretch of arrival: weeks in a long log, days in a short one, parts of a day in a very short one.

    There are twice as many of them as ``blocks``, or more.
    """
    length = float(rows.elapsed.max() - rows.elapsed.min())
    size = 7.0 if length >= 14 * blocks else 1.0 if length >= 2 * blocks else max(length, 1e-9) / (2 * blocks)
    return (rows.elapsed // size).astype(np.int64)


def came_until(log: EventLog, rows: KnownRows, until: int) -> Bools:
    """Which rows, all that were young enough at their instant, have turned positive since, up to another."""
    arrival, outcome = log.times
    at, horizon = rows.snapshot.as_of_micros, round(rows.horizon * DAY)
    mine = (arrival <= at) & (arrival >= at - int(rows.snapshot.elapsed_micros.max()))
    when, begin = outcome[mine], arrival[mine]
    there = (when > at) & (when <= until)
    found: Bools = there & (np.where(there, when - begin, horizon + 1) <= horizon)
    return found
