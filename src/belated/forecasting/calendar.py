"""The days of a forecast: those on which outcomes will come, and those on which rows arrived. Hours or weeks where days would be too few or too many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from belated.data.durations import DAY
from belated.data.times import show_instant
from belated.typing import Floats, Ints

_FEWEST, _MOST = 5, 120
UNITS = {"hour": DAY // 24, "day": DAY, "week": 7 * DAY, "28 days": 28 * DAY, "year": 364 * DAY}


@dataclass(frozen=True)
class Calendar:
    """Steps ahead of ``now`` up to ``span``, both in microseconds; ``grid`` is the step of all times of the log."""

    now: int
    span: int
    grid: int
    clock: str

    @property
    def unit(self) -> str:
        """What a step is called."""
        for name, size in UNITS.items():
            if self.span <= _MOST * size and (name != "hour" or self.span < _FEWEST * DAY) and size >= self.grid:
                return name
        return "year"

    @property
    def size(self) -> int:
        return UNITS[self.unit]

    @property
    def edges(self) -> Ints:
        """The ends of all steps; days and hours end when the clock says so, and the last step with the span."""
        end, size = self.now + self.span, self.size
        first = (self.now // size + 1) * size if self.unit in ("hour", "day") else self.now + size
        return np.append(np.arange(first, end, size), end)

    @property
    def ahead(self) -> Floats:
        """The ends of all steps, in days from now."""
        return (self.edges - self.now) / DAY

    def labels(self) -> list[str]:
        """The day that each step ahead is, or begins with."""
        return self._names(np.append(self.now, self.edges[:-1]), self.edges)

    @property
    def last_day(self) -> str:
        """The day, or the hour, with which the last step ends."""
        return self.labels()[-1] if self.unit == "day" else self.show(int(self.edges[-1]))

    def day_of(self, ahead: float) -> str:
        """The day, or the end of the hour, that an instant some days from now belongs to."""
        k = min(int(np.searchsorted(self.ahead, ahead * (1 - 1e-9))), len(self.ahead) - 1)
        if self.unit == "day":
            return self.labels()[k]
        return self.show(int(self.edges[k]) if self.unit == "hour" else self.now + int(np.ceil(ahead * DAY)))

    def before(self, outcome: Ints) -> tuple[list[str], Ints]:
        """The names of steps up to now, from the first of these instants on; and in which step each lies."""
        first, size = int(outcome.min(initial=self.now)), self.size
        if self.unit in ("hour", "day"):
            ends = np.append(np.arange(-(-first // size) * size, self.now, size), self.now)
        else:
            ends = np.arange(self.now, first - size, -size)[::-1]
        return self._names(ends - size, ends), np.searchsorted(ends, outcome, side="left")

    def _names(self, begin: Ints, end: Ints) -> list[str]:
        """Hours and days by the clock. In a log stamped by the day, what is stamped at the end of a step belongs to it."""
        if self.unit not in ("hour", "day"):
            at = begin + self.grid
        else:
            at = end if self.grid >= self.size else (end - 1) // self.size * self.size
        return [self.show(int(one)) for one in at]

    def cohorts(self, arrival: Ints) -> tuple[list[str], Ints]:
        """The names of the days on which rows arrived, and the number of each row's."""
        origin = 0 if self.unit in ("hour", "day") else self.now % self.size
        days, code = np.unique((arrival - origin) // self.size, return_inverse=True)
        return [self.show(int(day) * self.size + origin) for day in days], code

    def show(self, at: int) -> str:
        if self.clock == "seconds":
            unit = self.unit if self.unit in ("hour", "day") else "day"
            return f"{unit} {at // UNITS[unit]}"
        return show_instant(at, self.clock)[: 16 if self.unit == "hour" else 10]
