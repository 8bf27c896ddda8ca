"""A monitor checked on its own past: what it would have said of periods that are final now, some time after their end."""

from __future__ import annotations

from typing import Any

from belated.data.durations import DAY
from belated.monitoring.estimates import FIGURES
from belated.monitoring.looking import Look, Period
from belated.monitoring.scored_rows import ScoredRows
from belated.monitoring.verdicts import JUDGED

_CHECKED = 6  # final periods


def own_past(rows: ScoredRows, size: int, lags: list[int], periods: list[Period]) -> list[dict[str, Any]]:
    """What would have been said of periods that are final now, some time after their end."""
    final = [one for one in periods if one.estimate.final and one.estimate.positive >= JUDGED][-_CHECKED:]
    found = []
    for one in final:
        for lag in lags:
            if lag >= rows.horizon:
                continue
            then = rows.at(one.start + size + lag)
            try:
                look = Look(then, size)
            except ValueError:  # too little was known
                continue
            said = {(p.version, p.start): p for p in look.by_period()}[one.version, one.start].estimate
            row: dict[str, Any] = {
                "period": one.plain["period"],
                "version": one.version or None,
                "lag": lag / DAY,
                "share_in": said.share_in,
            }
            for name in FIGURES:
                figure, truth = said.figures[name], one.estimate.figures[name].value
                inside = None
                if truth is not None and figure.low is not None and figure.high is not None:
                    inside = bool(figure.low <= truth <= figure.high)
                row[name] = {"said": figure.as_plain_data(), "truth": truth, "inside": inside}
            found.append(row)
    return found
