"""Sums over rows of what is still to come: by day of outcome, by day of arrival, by group; with the variance of drawing them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belated.data.durations import DAY
from belated.forecasting.calendar import Calendar
from belated.forecasting.open_rows import KnownRows
from belated.forecasting.predictors import Predictor
from belated.typing import Floats, Ints

_WEEK = 7 * DAY


@dataclass(frozen=True)
class Sums:
    """Expected sums laid end to end, the variance of each if rows are independent, and that of what rows are worth on average."""

    mean: Floats
    drawn: Floats
    unsure: Floats
    most: Floats  # what all rows that are open would bring
    places: dict[str, slice]
    # Of some of them, what comes until all rows are final, however far the others look ahead.
    at_the_end: dict[str, Floats]

    def __getitem__(self, name: str) -> Floats:
        return self.mean[self.places[name]]


def sums_to_come(
    predictor: Predictor,
    rows: KnownRows,
    calendar: Calendar,
    cohort: Ints,
    cohorts: int,
    arrivals: Arrivals | None = None,
) -> Sums:
    """Of unripe rows, in the cohorts given. ``arrivals`` adds what rows still to arrive will bring."""
    come, worth = predictor.to_come(rows), rows.worth
    total, drawn, steps, steps_drawn = [], [], [], []
    before = np.zeros(len(rows.y))
    for ahead in calendar.ahead:
        by_then = come(ahead)
        now = by_then - before
        total.append(worth.value @ by_then)
        drawn.append(worth.variance(by_then).sum())
        steps.append(worth.value @ now)
        steps_drawn.append(worth.variance(now).sum())
        before = by_then
    expected, varies, many = worth.value * before, worth.variance(before), len(rows.groups)
    finally_ = worth.value * come(rows.horizon)
    at_the_end = {
        "total": finally_.sum(keepdims=True),
        "cohorts": added(cohort, finally_, cohorts),
        "groups": added(rows.group, finally_, many),
    }
    by_group = added(rows.group, expected, many)
    # The error of an average value is the same for all rows of a group, so it does not average out.
    unsure = added(rows.group, expected**2 * worth.unsure, many)
    unsure = unsure / np.maximum(added(rows.group, expected**2, many), 1e-300)
    overall = float((by_group / max(by_group.sum(), 1e-300)) ** 2 @ unsure)
    parts: dict[str, tuple[Floats, Floats]] = {
        "total": (np.array(total), np.array(drawn)),
        "steps": (np.array(steps), np.array(steps_drawn)),
        "cohorts": (added(cohort, expected, cohorts), added(cohort, varies, cohorts)),
        "groups": (by_group, added(rows.group, varies, many)),
    }
    if arrivals is not None:
        new_total, new_variance = arrivals.sums(predictor, calendar)
        new_steps = np.diff(new_total, prepend=0.0)
        share = new_steps / np.maximum(new_total, 1e-300)
        parts["new_total"] = (new_total, new_variance)
        parts["new_steps"] = (new_steps, new_steps + share * new_variance)
        for old, new in (("total", "new_total"), ("steps", "new_steps")):
            parts[f"all_{old}"] = (parts[old][0] + parts[new][0], parts[old][1] + parts[new][1])
    places, at = {}, 0
    for name, (mean, _) in parts.items():
        places[name] = slice(at, at + len(mean))
        at += len(mean)
    mean, drawn_all = (np.concatenate([part[k] for part in parts.values()]) for k in (0, 1))
    # Of values that are not known yet, and of rows still to arrive, there is no most.
    open_worth = np.where(rows.y, 0.0, worth.value)
    most = np.full(at, np.inf)
    if not worth.spread.any():
        for name in ("total", "steps"):
            most[places[name]] = open_worth.sum()
        most[places["cohorts"]], most[places["groups"]] = (
            added(cohort, open_worth, cohorts),
            added(rows.group, open_worth, many),
        )
    relative = np.full(at, overall)
    relative[places["groups"]] = unsure
    return Sums(mean, drawn_all, relative * mean**2, most, places, at_the_end)


def added(code: Ints, weight: Floats, many: int = 0) -> Floats:
    """The sum of weights of each code."""
    return np.bincount(code, weight, many).astype(np.float64)


@dataclass(frozen=True)
class Arrivals:
    """Rows still to arrive: those of the last weeks again, week after week, each counting one over the number of weeks."""

    rows: KnownRows
    weeks: int

    @classmethod
    def repeated(cls, rows: KnownRows, now: int, most: int = 4) -> Arrivals:
        weeks = min(most, int((now - rows.arrival.min()) // _WEEK))
        if weeks < 1:
            raise ValueError("arrivals='repeat' repeats whole weeks, and the log is shorter than one.")
        return cls(rows.take(rows.arrival > now - weeks * _WEEK), weeks)

    def sums(self, predictor: Predictor, calendar: Calendar) -> tuple[Floats, Floats]:
        """What comes by the end of each step, and its variance: of drawing it, and of how much weeks differ."""
        rows, worth = self.rows, self.rows.worth
        come = predictor.from_arrival(rows)
        offset = (rows.arrival - calendar.now) % _WEEK  # within the week to come
        offset = np.where(offset == 0, _WEEK, offset)
        week = (calendar.now - rows.arrival) // _WEEK
        squared = (worth.value**2 + worth.spread) / self.weeks
        known: dict[int, Floats] = {}

        def after(time: int) -> Floats:
            """Of a week that began so long ago: what has come, with squares, and what each week that is repeated would bring."""
            if time not in known:
                by_then = come((time - offset) / DAY)
                each = np.bincount(week, worth.value * by_then, self.weeks)[: self.weeks]
                known[time] = np.array([worth.value @ by_then / self.weeks, squared @ by_then, *each])
            return known[time]

        ends = (calendar.edges - calendar.now).tolist()
        found = np.array([sum(after(end - begun) for begun in range(0, end, _WEEK)) for end in ends])
        mean, squares, by_week = found[:, 0], found[:, 1], found[:, 2:]
        if self.weeks == 1:
            return mean, squares
        # Weeks differ; those to come do so from each other and, all alike, from the few that were looked at.
        differ = by_week.var(axis=1, ddof=1)
        begun = np.ceil((calendar.edges - calendar.now) / _WEEK)
        return mean, squares + differ * (1.0 / np.maximum(begun, 1.0) + 1.0 / self.weeks)
