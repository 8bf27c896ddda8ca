"""What a monitor says in words: of the newest period that can be judged, of segments that are off, of limits that are broken."""

from __future__ import annotations

from typing import Any

from belated.data.durations import duration_text
from belated.monitoring.estimates import LEAST, Figure
from belated.monitoring.limits import Limit
from belated.monitoring.looking import Period
from belated.tables.refusal import counted

JUDGED = 20  # positives, or as many expected so far, from which on a period is judged
_CLOSE = 0.25  # intervals that reach further from 1 say little


def judged_period(periods: list[Period]) -> Period | None:
    """The newest period of the newest version of which enough is known."""
    if not periods:
        return None
    newest = max(periods, key=lambda one: one.start).version
    mine = [one for one in periods if one.version == newest]
    enough = [
        one
        for one in mine
        if one.estimate.share_in >= LEAST and max(one.estimate.expected, one.estimate.positive) >= JUDGED
    ]
    return max(enough, key=lambda one: one.start) if enough else None


def broken_limits(judged: Period, limits: list[Limit]) -> list[str]:
    found = []
    for limit in limits:
        value = judged.plain[limit.name]
        figure = Figure(*value)
        if limit.broken_by(figure):
            is_now, low, high = (
                "?" if end is None else f"{end:.3g}" for end in (figure.value, figure.low, figure.high)
            )
            found.append(
                f"{limit}: {limit.name} is {is_now} (95% interval {low} to {high}) for {judged.plain['period']}"
            )
    return found


def verdict_on(
    judged: Period | None, segments: list[dict[str, Any]], by: str | None, failed: list[str], limits: list[Limit]
) -> str:
    if judged is None:
        advice = " No limit could be checked." if limits else ""
        return f"No period has the {JUDGED} positives that a judgement needs: nothing can be said yet. Take a longer period.{advice}"
    p = judged.plain
    name = _name(p)
    value, low, high = (None if v is None else v - 1.0 for v in p["calibration"])
    if not p["positive"]:
        said = f"no positives yet, where {p['expected']:.0f} were expected"
    elif value is None or low is None or high is None:
        said = "nothing is clear about the predictions"
    elif low > 0 or high < 0:
        ends = sorted((abs(low), abs(high)))
        said = f"predictions {abs(value):.0%} too {'high' if value > 0 else 'low'} ({ends[0]:.0%} to {ends[1]:.0%})"
        if value < -0.9:
            said = f"predictions less than a tenth of what comes (predicted over actual {value + 1:.2g})"
    elif low < -_CLOSE or high > 1 / (1 - _CLOSE) - 1:
        said = f"too little is known to tell predictions from right ones (predicted over actual {value + 1:.2f}, {low + 1:.2f} to {high + 1:.2f})"
    else:
        said = f"predictions agree with what comes (predicted over actual {value + 1:.2f}, {low + 1:.2f} to {high + 1:.2f})"
    delays = {
        "unchanged": "delays unchanged",
        "later": "positives come later than usual",
        "sooner": "positives come sooner than usual",
    }
    labels = "all labels in" if judged.estimate.final else f"{p['share_in']:.0%} of labels in"
    found = f"{name}: {said}, with {labels}; {delays[p['delays']]}."
    striking = [row for row in segments if row["adjusted_p"] < 0.05]
    if striking:
        row = striking[0]
        off = row["calibration"][0]
        how = "no positives at all" if off is None else f"{abs(off - 1):.0%} too {'high' if off > 1 else 'low'}"
        found += f" {counted(len(striking), 'value')} of {by} {'is' if len(striking) == 1 else 'are'} off, most clearly {row['segment']} ({how})."
    if failed:
        found += f" Broken: {'; '.join(failed)}."
    return found


def _name(plain: dict[str, Any]) -> str:
    version = f" (version {plain['version']})" if plain["version"] else ""
    return f"From {plain['period']} to {plain['end']}{version}"


def notes_on(periods: list[Period], check: list[dict[str, Any]]) -> list[str]:
    found = []
    young = sum(one.estimate.too_young for one in periods)
    if young:
        found.append(
            f"{counted(young, 'row')} so young that less than {LEAST:.0%} of their positives can have been seen: left out of the estimates."
        )
    changed = [one for one in periods if one.delays != "unchanged"]
    if changed:
        found.append(
            f"In {counted(len(changed), 'period')} positives come sooner or later than in all of them together. Estimates take it into account as far as it shows; "
            f"what will come after the oldest age of a period is taken from the others."
        )
    known = [row["oe"]["inside"] for row in check if row["oe"]["inside"] is not None]
    if known:
        lags = ", ".join(duration_text(lag) for lag in sorted({row["lag"] for row in check}))
        found.append(
            f"Checked on its own past: of {len(known)} judgements {lags} after the end of a period, the interval of observed over expected held the truth in {sum(known)}."
        )
    return found
