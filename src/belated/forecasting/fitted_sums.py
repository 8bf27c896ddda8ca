"""The sums of a forecast from a fit on all rows, and how unsure they are: refits without some days, and how much days vary."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from belated.data.durations import DAY
from belated.forecasting.bands import Spread, band, drift, jackknife
from belated.forecasting.calendar import Calendar
from belated.forecasting.open_rows import KnownRows
from belated.forecasting.past_forecasts import BLOCKS, PastForecast, apart, block_of_days, variation
from belated.forecasting.predictors import Family, Predictor
from belated.forecasting.sums import Arrivals, Sums, sums_to_come
from belated.typing import Floats

_HALVINGS = 14  # to a minute of a week


class FittedSums:
    """Of the unripe among ``rows``, and with ``arrivals`` of what is still to arrive; ``done`` is called after each fit."""

    def __init__(
        self,
        rows: KnownRows,
        calendar: Calendar,
        arrived: Calendar,
        family: Family,
        arrivals: str | None,
        done: Callable[[], None],
    ) -> None:
        self.rows, self.calendar, self.unripe = rows, calendar, rows.take(rows.unripe)
        self.new = Arrivals.repeated(rows, calendar.now) if arrivals else None
        self.labels, self.cohort = arrived.cohorts(self.unripe.arrival)
        self.predictor = predictor = family.fit(rows)
        done()
        self.sums = self._sums(predictor)
        block = block_of_days(rows, BLOCKS)
        refits = []
        for part in range(BLOCKS):
            refits.append(self._sums(family.fit(rows, block % BLOCKS != part)).mean)
            done()
        self.fitted = jackknife(np.array(refits))
        self.varied = variation(predictor, rows, block)

    def _sums(self, predictor: Predictor) -> Sums:
        return sums_to_come(predictor, self.unripe, self.calendar, self.cohort, len(self.labels), self.new)

    @property
    def half(self) -> float | None:
        """Days from now to half of what is to come."""
        come, worth = self.predictor.to_come(self.unripe), self.unripe.worth.value
        low, high = 0.0, float(self.calendar.ahead[-1])
        wanted = float(worth @ come(high)) / 2.0
        if not wanted > 0:
            return None
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            low, high = (low, middle) if worth @ come(middle) >= wanted else (middle, high)
        return high

    def expected_since(self, last: int) -> tuple[float, float]:
        """How many outcomes were to be expected between an instant and now, and how many are still to come; counted, whatever they are worth."""
        gap = max(self.calendar.now - last, 0) / DAY
        by, rows = self.predictor.from_arrival(self.rows), self.rows
        now, before = (by(np.minimum(ages, rows.horizon)) for ages in (rows.elapsed, rows.elapsed - gap))
        return float((now - before).sum()), float(self.predictor.to_come(self.unripe)(rows.horizon).sum())

    def off(self, past: list[PastForecast]) -> float:
        """The squared relative error that forecasts of the past had beyond their draws; what they owed to their fits counts as well, to be on the safe side."""
        each = np.array([one.each for one in past])  # so that the unit of values does not matter
        means, came, variances = (
            np.array([getattr(one, name) for one in past]) for name in ("mean", "came", "variance")
        )
        return drift(means / each, came / each, variances / each**2)

    def bands(self, past: list[PastForecast], levels: Sequence[float], whole: bool) -> dict[str, tuple[Floats, Floats]]:
        """For each level, between which numbers each sum lies; ``whole`` for counts."""
        sums, unit = self.sums, 1.0
        if not whole and self.unripe.worth.value.any():
            unit = float(self.unripe.worth.value.mean())
        dates = apart(past, round(self.rows.horizon * DAY))
        mean, fitted = sums.mean / unit, (self.fitted + sums.unsure) / unit**2
        spread = Spread(self.varied * sums.drawn / unit**2, fitted, self.off(past) * mean**2, BLOCKS - 1, dates)
        found = {}
        for level in levels:
            low, high = (unit * end for end in band(mean, spread, level, whole))
            found[f"{100 * level:.4g}%"] = low, np.minimum(high, np.maximum(sums.most, low))
        return found
