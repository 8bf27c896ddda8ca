"""What a monitor says in words: of the newest period that can be judged, of segments that are off, of limits that are broken."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.data.durations import duration_text
from belated.monitoring.estimates import LEAST, Figure
from belated.monitoring.limits import Limit
from belated.monitoring.looking import Period
from belated.monitoring.scored_rows import ScoredRows
from belated.tables.refusal import counted

JUDGED = 20  # positives, or as many expected so far, from which on a period is judged
_CLOSE = 0.25  # intervals that reach further from 1 say little


def versions_in_use(rows: ScoredRows, size: int) -> list[str]:
    """Versions with scores within a period's length of the newest score, the one with the most first. The newest period itself may hold a score or two."""
    recent = np.bincount(rows.version[rows.time > rows.time[-1] - size], minlength=len(rows.versions))
    return [rows.versions[k] for k in np.argsort(-recent, kind="stable") if recent[k]]


def judged_period(periods: list[Period], version: str) -> Period | None:
    """The newest period of a version of which enough is known."""
    enough = [
        one
        for one in periods
        if one.version == version
        and one.estimate.share_in >= LEAST
        and max(one.estimate.expected, one.estimate.positive) >= JUDGED
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
            version = f", version {judged.version}" if judged.version else ""
            found.append(
                f"{limit}: {limit.name} is {is_now} (95% interval {low} to {high}) for {judged.plain['period']}{version}"
            )
    return found


def finding(plain: dict[str, Any] | None) -> str:
    """What is to be said of the predictions of a period, in a few words."""
    if plain is None:
        return "nothing can be said yet"
    value, low, high = (None if v is None else v - 1.0 for v in plain["calibration"])
    if not plain["positive"]:
        return f"no positives yet, where {plain['expected']:.0f} were expected"
    if value is None or low is None or high is None:
        return "nothing is clear about the predictions"
    if low > 0 or high < 0:
        if value < -0.9:
            return f"predictions less than a tenth of what comes (predicted over actual {value + 1:.2g})"
        if value > 9:
            return f"predictions {value + 1:.0f} times what comes ({low + 1:.0f} to {high + 1:.0f} times)"
        ends = sorted((abs(low), abs(high)))
        return f"predictions {abs(value):.0%} too {'high' if value > 0 else 'low'} ({ends[0]:.0%} to {ends[1]:.0%})"
    between = f"(predicted over actual {value + 1:.2f}, {low + 1:.2f} to {high + 1:.2f})"
    if low < -_CLOSE or high > 1 / (1 - _CLOSE) - 1:
        return f"too little is known to tell predictions from right ones {between}"
    return f"predictions agree with what comes {between}"


def is_off(judged: Period) -> bool:
    """Whether its predictions are clearly wrong."""
    _, low, high = judged.plain["calibration"]
    return (low is not None and low > 1) or (high is not None and high < 1)


def verdict_on(
    judged: list[Period],
    unknown: list[str],
    segments: list[dict[str, Any]],
    by: str | None,
    failed: list[str],
    limited: bool,
) -> str:
    """Of the period that matters most, first in ``judged``; of other versions in use, among them the ``unknown`` ones; of segments and limits."""
    said = [_sentence(judged[0]), *_others(judged[1:], unknown)] if judged else [_nothing(unknown)]
    if limited and not judged:
        said.append("No limit could be checked.")
    striking = [row for row in segments if row["adjusted_p"] < 0.05]
    if striking:
        many = len({row["segment"] for row in striking})
        said.append(
            f"{counted(many, 'value')} of {by} {'is' if many == 1 else 'are'} off, most clearly {_most_clearly(striking[0])}."
        )
    if failed:
        said.append(f"Broken: {'; '.join(failed)}.")
    return " ".join(said)


def _nothing(unknown: list[str]) -> str:
    of = f" of version {' or '.join(unknown)}" if any(unknown) and len(unknown) <= 3 else ""
    return f"No period{of} has the {JUDGED} positives that a judgement needs: nothing can be said yet. Take a longer period."


_DELAYS = {
    "unchanged": "delays unchanged",
    "later": "positives come later than usual",
    "sooner": "positives come sooner than usual",
}


def _sentence(judged: Period) -> str:
    p = judged.plain
    labels = "all labels in" if judged.estimate.final else f"{min(p['share_in'], 0.99):.0%} of labels in"
    version = f" (version {p['version']})" if p["version"] else ""
    return f"From {p['period']} to {p['end']}{version}: {finding(p)}, with {labels}; {_DELAYS[p['delays']]}."


def _others(judged: list[Period], unknown: list[str]) -> list[str]:
    found = []
    off, agree = ([one.version for one in judged if is_off(one) is wrong] for wrong in (True, False))
    for versions, what in (
        (off, "clearly off as well"),
        (agree, "not clearly off"),
        (unknown, "too little known to be judged"),
    ):
        if versions:
            found.append(f"{_named(versions)} {'is' if len(versions) == 1 else 'are'} {what}.")
    return found


def _named(versions: list[str], most: int = 3) -> str:
    if len(versions) > most:
        return f"{len(versions)} more versions"
    return f"Version{'s' if len(versions) > 1 else ''} {' and '.join(versions)}"


def _most_clearly(row: dict[str, Any]) -> str:
    off = row["calibration"][0]
    how = "no positives at all"
    if off is not None:
        how = f"{off:.0f} times what comes" if off > 10 else f"{abs(off - 1):.0%} too {'high' if off > 1 else 'low'}"
    version = f"version {row['version']}, " if row["version"] else ""
    return f"{row['segment']} ({version}{how})"


def notes_on(periods: list[Period], check: list[dict[str, Any]], small: int, surprises: int) -> list[str]:
    """What a reader should know; ``small`` segments were not looked at, and ``surprises`` are rows that cannot be if their scores are right."""
    found = []
    if small:
        found.append(f"{counted(small, 'segment')} with the fewest rows: not looked at.")
    if surprises:
        found.append(
            f"{counted(surprises, 'row')} scored 0 and positive, or scored 1 and negative: their log loss is infinite, and counts as that of a score 1e-15 away."
        )
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
