"""When a backtest looks back: its cut-offs, the lookback before each and the period after, checked against the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from belated.data.durations import DAY, parse_duration
from belated.data.event_log import EventLog
from belated.data.times import parse_instant, show_instant


@dataclass(frozen=True)
class CutoffPlan:
    """Cut-offs, the lookback before each and the period after, in microseconds on the log's clock."""

    instants: list[int]
    lookback: int
    period: int


@dataclass(frozen=True)
class _Range:
    """What of a log can be used: from the first arrival to the last whose label is final."""

    first: int
    last: int
    lookback: int


def plan_cutoffs(log: EventLog, cutoffs: int | Sequence[Any], lookback: Any, period: Any, horizon: int) -> CutoffPlan:
    """Spread cut-offs evenly where a number is given, else take the instants that are."""
    usable = _usable(log, lookback, horizon)
    length = None if period is None else parse_duration(period, "period", log.clock)
    if isinstance(cutoffs, int):
        return _spread(log, cutoffs, length, usable, horizon)
    return _given(log, cutoffs, length, usable)


def _usable(log: EventLog, lookback: Any, horizon: int) -> _Range:
    first, last = log.first, min(log.until - horizon, log.last)
    if last <= first:
        raise ValueError(
            f"the log runs from {show_instant(first, log.clock)} to {show_instant(log.until, log.clock)}, which is no longer than "
            f"the horizon ({horizon / DAY:g} days): no label is final yet. Take a horizon of {(log.until - first) / 2 / DAY:.2g} days or less, or a "
            f"longer log."
        )
    reach = (last - first) // 2 if lookback is None else parse_duration(lookback, "lookback", log.clock)
    return _Range(first, last, reach)


def _spread(log: EventLog, count: int, length: int | None, usable: _Range, horizon: int) -> CutoffPlan:
    reach, last = usable.lookback, usable.last
    if count < 1:
        raise ValueError(f"cutoffs={count!r} must be at least 1.")
    if last - usable.first <= reach:
        raise ValueError(
            f"a lookback of {reach / DAY:g} days and a horizon of {horizon / DAY:g} leave nothing to test on in a log of "
            f"{(log.until - usable.first) / DAY:g} days. Shorten one of them."
        )
    # In a log stamped by the day, the clock must not stand between two days.
    grid = log.grid
    start = usable.first + reach // grid * grid
    step = max((last - start) // count // grid, 1) * grid if length is None else length
    room = (last - start) // step
    if room < count:
        raise ValueError(
            f"after a lookback of {reach / DAY:g} days and before the last horizon there are {(last - start) / DAY:g} days, which is room "
            f"for {room} periods of {step / DAY:g} days that do not overlap, and cutoffs={count}. Take fewer or shorter ones."
        )
    gap = step if length is None else (last - step - start) // max(count - 1, 1) // grid * grid
    return CutoffPlan([start + k * gap for k in range(count)], reach, step)


def _given(log: EventLog, cutoffs: Sequence[Any], length: int | None, usable: _Range) -> CutoffPlan:
    instants = sorted({parse_instant(value, "cutoffs", log.clock) for value in cutoffs})
    if not instants:
        raise ValueError("cutoffs is empty.")
    last = usable.last
    if instants[0] < usable.first or instants[-1] >= last:
        raise ValueError(
            f"cut-offs must lie between {show_instant(usable.first, log.clock)}, where the log begins, and "
            f"{show_instant(last, log.clock)}, one horizon before it ends or at its last arrival."
        )
    gaps = np.diff(instants)
    until_next = int(gaps.min()) if len(gaps) else last - instants[-1]
    step = until_next if length is None else length
    if len(gaps) and step > gaps.min():
        raise ValueError(
            f"periods of {step / DAY:g} days overlap where cut-offs are {gaps.min() / DAY:g} days apart, and their rows would count twice. "
            f"Shorten the period."
        )
    if instants[-1] + step > last:
        raise ValueError(
            f"the last cut-off must lie before {show_instant(last - step, log.clock)}: after it come the {step / DAY:g} days to predict, "
            f"and a whole horizon. Move it, or shorten the period."
        )
    return CutoffPlan(instants, usable.lookback, step)
