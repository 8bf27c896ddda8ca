"""What a forecast found as plain data: in all, by day of outcome, by day of arrival, by group, and for dates of the past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from belated.data.times import show_instant
from belated.forecasting.fitted_sums import FittedSums
from belated.forecasting.past_forecasts import PastForecast
from belated.forecasting.predictors import CHAIN_LADDER
from belated.tables.refusal import counted
from belated.typing import Bools, Ints

Bands = dict[str, list[float]]


class PlainForecast:
    """``came`` says which unripe rows have turned positive since, where all of that is known."""

    def __init__(
        self,
        made: FittedSums,
        past: list[PastForecast],
        levels: Sequence[float],
        whole: bool,
        clock: str,
        came: Bools | None,
    ) -> None:
        self.made, self.sums, self.clock, self.came = made, made.sums, clock, came
        self.levels = made.bands(past, levels, whole)
        self.positive = made.unripe.worth.value * made.unripe.y
        self.days = made.calendar.labels()

    def bands(self, name: str, k: int) -> Bands:
        at = self.sums.places[name].start + k
        return {level: [float(low[at]), float(high[at])] for level, (low, high) in self.levels.items()}

    def total(self) -> dict[str, Any]:
        unripe, now, total = self.made.unripe, self.made.calendar.now, self.sums["total"]
        last, half = len(total) - 1, self.made.half
        so_far = float(self.positive.sum())
        found: dict[str, Any] = {
            "as_of": show_instant(now, self.clock).removesuffix("+00:00").removesuffix(" 00:00:00"),
            "until": self.made.calendar.last_day,
            "rows": len(unripe.y),
            "positive": int(unripe.y.sum()),
            "so_far": so_far,
            "to_come": float(total[-1]),
            "final": so_far + float(self.sums.at_the_end["total"][0]),
            "bands": self.bands("total", last),
            "half_by": None if half is None else self.made.calendar.day_of(half),
            "came": None if self.came is None else float(unripe.in_the_end @ self.came),
        }
        if self.made.new is not None:
            found |= {"all_to_come": float(self.sums["all_total"][-1]), "all_bands": self.bands("all_total", last)}
        return found

    def history(self) -> list[dict[str, Any]]:
        """What there was by the end of each day so far, of the same rows."""
        unripe, calendar = self.made.unripe, self.made.calendar
        y = unripe.y
        days, step = calendar.before(unripe.arrival[y] + unripe.snapshot.delay_micros[y])
        cumulated = np.cumsum(np.bincount(step, self.positive[y], len(days)))
        return [{"day": day, "cumulated": float(value)} for day, value in zip(days, cumulated, strict=True)]

    def by_outcome(self) -> list[dict[str, Any]]:
        sums = self.sums
        found = [
            {
                "day": day,
                "to_come": float(sums["steps"][k]),
                "bands": self.bands("steps", k),
                "cumulated": float(sums["total"][k]),
                "cumulated_bands": self.bands("total", k),
            }
            for k, day in enumerate(self.days)
        ]
        for k, row in enumerate(found if self.made.new is not None else []):
            row |= {
                "new": float(sums["new_steps"][k]),
                "all": float(sums["all_steps"][k]),
                "all_bands": self.bands("all_steps", k),
                "all_cumulated": float(sums["all_total"][k]),
                "all_cumulated_bands": self.bands("all_total", k),
            }
        return found

    def by_arrival(self) -> list[dict[str, Any]]:
        return self._by(self.made.cohort, self.made.labels, "cohorts")

    def by_group(self) -> list[dict[str, Any]]:
        unripe = self.made.unripe
        found = self._by(unripe.group, list(unripe.groups), "groups")
        return sorted((row for row in found if row["rows"]), key=lambda row: -row["rows"])

    def _by(self, code: Ints, names: list[str], of: str) -> list[dict[str, Any]]:
        count, so_far = np.bincount(code, minlength=len(names)), np.bincount(code, self.positive, len(names))
        found = []
        for k, name in enumerate(names):
            to_come, in_the_end = float(self.sums[of][k]), float(self.sums.at_the_end[of][k])
            found.append(
                {
                    "name": name,
                    "rows": int(count[k]),
                    "so_far": float(so_far[k]),
                    "to_come": to_come,
                    "final": float(so_far[k]) + in_the_end,
                    "bands": self.bands(of, k),
                }
            )
        return found


def errors_of(past: list[PastForecast]) -> dict[str, Any]:
    """Of past forecasts and of the chain ladder: mean absolute and mean signed error of totals, relative to what came, and that of cohorts."""
    if not past:
        return {}
    found = {}
    for name, of in (("forecast", "mean"), (CHAIN_LADDER, "ladder")):
        off = [abs(getattr(one, of) - one.came) / one.came for one in past]
        signed = [(getattr(one, of) - one.came) / one.came for one in past]
        cohorts = [getattr(one, f"{of}_by_cohort") for one in past]
        found[name] = {
            "total": float(np.mean(off)),
            "bias": float(np.mean(signed)),
            "by_arrival": float(np.mean(cohorts)),
        }
    return found


def notes_on_past(past: list[PastForecast], tried: int) -> list[str]:
    if not past and tried:
        return [
            f"At {counted(tried, 'date')} of the past too little was known or came to compare, so the bands hold draws and fit alone."
        ]
    if not past:
        return [
            "No forecast was made from the past (the log is too short, or cutoffs is 0), so nothing is known about how far such forecasts are off; the bands hold draws and fit alone."
        ]
    partly = [one for one in past if not one.whole]
    if partly:
        return [
            f"At {counted(len(partly), 'date')} of the past not all has come yet; there the forecast up to the present is compared."
        ]
    return []
