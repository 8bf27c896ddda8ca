"""Days ahead: their ends, their names, and hours or weeks where days are too few or too many."""

from __future__ import annotations

import numpy as np
import pytest

from belated.data.durations import DAY
from belated.data.times import parse_instant
from belated.forecasting.calendar import Calendar

HOUR = DAY // 24


def calendar(now, span, grid=1):
    return Calendar(parse_instant(now, "now", "datetime"), span, grid, "datetime")


def test_days_end_at_midnight_and_the_last_with_the_span():
    days = calendar("2024-03-01 18:00", 7 * DAY)
    assert days.unit == "day" and len(days.edges) == 8
    assert days.ahead[[0, 1, -1]].tolist() == [0.25, 1.25, 7.0]
    assert days.labels() == [f"2024-03-0{k}" for k in range(1, 9)]


def test_in_a_log_stamped_by_the_day_the_next_day_comes_next():
    days = calendar("2024-03-01", 3 * DAY, grid=DAY)
    assert days.labels() == ["2024-03-02", "2024-03-03", "2024-03-04"] and days.ahead.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("span", "unit", "steps"),
    [(2 * DAY, "hour", 48), (30 * DAY, "day", 30), (180 * DAY, "week", 26), (1000 * DAY, "28 days", 36)],
)
def test_the_step_follows_the_span(span, unit, steps):
    found = calendar("2024-03-01", span)
    assert found.unit == unit and len(found.edges) == steps == len(set(found.labels()))


def test_cohorts_are_the_days_of_arrival():
    days = calendar("2024-03-01", 30 * DAY)
    names, code = days.cohorts(days.now - HOUR * (1 + 10 * (12 - np.arange(12))))
    assert names == sorted(names) and names[-1] == "2024-02-29" and code[-1] == len(names) - 1
