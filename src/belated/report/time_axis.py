"""Times of a summary, which are text, as places on an axis: dates where they are dates, and else days since the clock's zero."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
from matplotlib.dates import HOURLY, AutoDateLocator, ConciseDateFormatter, date2num

from belated.typing import Floats

_UNITS = {"second": 1 / 86400, "hour": 1 / 24, "day": 1.0, "week": 7.0, "28 days": 28.0, "year": 364.0}  # in days


def is_dated(text: str) -> bool:
    return text[:4].isdigit() and text[4:5] == "-"


def day_of(text: str) -> str:
    """The day of an instant, if it is a date.

    >>> day_of("2024-01-02 12:30:00"), day_of("172800 s")
    ('2024-01-02', '172800 s')
    """
    return text[:10] if is_dated(text) else text


def days_of(labels: Sequence[str]) -> Floats:
    """Days since an origin of matplotlib's, or of the clock.

    >>> days_of(["2024-01-02"]) - days_of(["2024-01-01 12:00:00+00:00"])
    array([0.5])
    >>> days_of(["day 3", "28 days 2", "43200 s"])
    array([ 3. , 56. ,  0.5])
    """
    return np.array([_days(label) for label in labels], dtype=np.float64)


def _days(label: str) -> float:
    if is_dated(label):
        return float(date2num(datetime.fromisoformat(label).replace(tzinfo=None)))
    if label.endswith(" s"):
        return float(label[:-2]) / 86400
    unit, _, number = label.rpartition(" ")
    return float(number) * _UNITS[unit]


def step_of(unit: str) -> float:
    """The days in a step that is called so."""
    return _UNITS[unit]


def set_time_axis(axes: Any, label: str, first: str) -> None:
    """An axis of dates, with as many of them as fit, or of days; ``first`` is one of its labels."""
    if not is_dated(first):
        axes.set_xlabel(f"{label}, days", loc="left")
        return
    room = axes.bbox.width / axes.figure.dpi
    locator = AutoDateLocator(minticks=3, maxticks=max(4, min(14, int(1.6 * room))))
    locator.intervald[HOURLY] = [1, 2, 3, 4, 6, 12, 24]  # of two days on a phone, one a day
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set_xlabel(label, loc="left")  # the year, or the month, stands on the right
