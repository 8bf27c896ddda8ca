"""A monitor checked on its own past: what it would have said of periods that are final now, some time after their end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from belated.data.durations import DAY
from belated.monitoring.estimates import FIGURES, Estimate
from belated.monitoring.looking import Look, Period
from belated.monitoring.scored_rows import ScoredRows
from belated.monitoring.verdicts import JUDGED

_CHECKED = 6  # final periods
_AT_A_TIME = 2  # looks, each of which takes as much memory as the rows


def own_past(rows: ScoredRows, size: int, lags: list[int], periods: list[Period]) -> list[dict[str, Any]]:
    """What would have been said of periods that are final now, some time after their end."""
    final = [one for one in periods if one.estimate.final and one.estimate.positive >= JUDGED][-_CHECKED:]
    asked = [(one, lag) for one in final for lag in lags if lag < rows.horizon]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        said = list(pool.map(lambda pair: _said(rows, size, *pair), asked))
    return [_compared(one, lag, then) for (one, lag), then in zip(asked, said, strict=True) if then is not None]


def _said(rows: ScoredRows, size: int, period: Period, lag: int) -> Estimate | None:
    try:
        return Look(rows.at(period.start + size + lag), size).of_period(period.version, period.start)
    except ValueError:  # too little was known
        return None


def _compared(period: Period, lag: int, said: Estimate) -> dict[str, Any]:
    found: dict[str, Any] = {
        "period": period.plain["period"],
        "version": period.version or None,
        "lag": lag / DAY,
        "share_in": said.share_in,
    }
    for name in FIGURES:
        figure, truth = said.figures[name], period.estimate.figures[name].value
        inside = None
        if truth is not None and figure.low is not None and figure.high is not None:
            inside = bool(figure.low <= truth <= figure.high)
        found[name] = {"said": figure.as_plain_data(), "truth": truth, "inside": inside}
    return found
