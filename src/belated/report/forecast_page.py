"""The page of a forecast: how much is still to come, when, from where, and how far such forecasts have been off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belated.report.drawing import Chart, draw
from belated.report.forecast_pictures import (
    MOST_GROUPS,
    ends_before_all_is_final,
    paint_by_arrival,
    paint_by_group,
    paint_by_outcome,
    paint_cumulated,
    paint_past,
    past_dates,
)
from belated.report.marks import levels_of
from belated.report.template import amount, fill


def render_forecast(summary: dict[str, Any]) -> str:
    """A self-contained page of HTML for the summary of a forecast, with its ``name`` and ``command``."""
    wide = levels_of(summary["total"]["bands"])[0]
    return fill("forecast.html", summary, _charts(summary), wide=wide, band=_band, off=_off, dates=past_dates(summary))


def _band(ends: list[float]) -> str:
    return f"{amount(ends[0])} to {amount(ends[1])}"


def _off(said: float, came: float) -> float | None:
    return said / came - 1.0 if came else None


def _charts(summary: dict[str, Any]) -> dict[str, Chart]:
    found = {
        "cumulated": _cumulated(summary),
        "by_outcome": _by_outcome(summary),
        "by_arrival": _by_arrival(summary),
    }
    if summary["past"]:
        found["past"] = _past(summary)
    if summary["by_group"]:
        found["by_group"] = _by_group(summary)
    return found


def _painted(paint: Callable[..., None], summary: dict[str, Any]) -> Callable[..., None]:
    return lambda axes, look: paint(axes, summary, look)


def _cumulated(summary: dict[str, Any]) -> Chart:
    t = summary["total"]
    levels = ", ".join(f"{level} {_band(ends)}" for level, ends in t["bands"].items())
    title = f"{amount(t['so_far'])} so far, {amount(t['final'])} in the end"
    if "all_to_come" in t:
        title += f", and {amount(t['so_far'] + t['all_to_come'])} with what arrives next"
    text = f"Cumulated {_what(summary)}. By {t['until']}, {amount(t['to_come'])} more will come; bands: {levels}."
    if t["came"] is not None:
        text += f" In fact {amount(t['came'])} came."
    return draw("cumulated", title, text, _painted(paint_cumulated, summary), 3.3, wide=True)


def _by_outcome(summary: dict[str, Any]) -> Chart:
    half, unit = summary["total"]["half_by"], summary["settings"]["unit"]
    what = (
        f"Half of what comes by {summary['total']['until']}"
        if ends_before_all_is_final(summary)
        else "Half of what has arrived and is still to come"
    )
    title = f"{what} comes by {half}" if half else "Nothing more is expected"
    text = f"{_what(summary).capitalize()} expected {'in each step of' if unit[0].isdigit() else 'on each'} {unit}, with bands."
    return draw("by-outcome", title, text, _painted(paint_by_outcome, summary))


def _by_arrival(summary: dict[str, Any]) -> Chart:
    cohorts, unit = summary["by_arrival"], summary["settings"]["arrival_unit"]
    young = cohorts[-max(1, len(cohorts) // 4) :]
    final = sum(row["final"] for row in young)
    missing = sum(row["final"] - row["so_far"] for row in young) / final if final > 0 else 0.0
    last = f"the last {len(young)} {unit}s" if len(young) > 1 else f"the last {unit}"
    if unit[0].isdigit():
        last = f"the last {len(young) * int(unit.split()[0])} days"
    title = f"Of what {last} of arrival will bring, {missing:.0%} is still to come"
    text = f"{_what(summary).capitalize()} by {unit} of arrival, so far and still to come, with bands of the sum."
    return draw("by-arrival", title, text, _painted(paint_by_arrival, summary))


def _past(summary: dict[str, Any]) -> Chart:
    errors, past = summary["errors"], summary["past"]
    title = f"Past forecasts were off by {errors['forecast']['total']:.0%} on average"
    if summary["settings"]["method"] != "chain-ladder" and "chain-ladder" in errors:
        title += f", the chain ladder by {errors['chain-ladder']['total']:.0%}"
    parts = [
        f"{date} {amount(row['forecast'])} and {amount(row['came'])}"
        for date, row in zip(past_dates(summary), past, strict=True)
    ]
    text = f"Forecast and what came, from dates of the past: {'; '.join(parts)}."
    return draw("past", title, text, _painted(paint_past, summary))


def _by_group(summary: dict[str, Any]) -> Chart:
    rows, group = summary["by_group"], summary["settings"]["group"]
    most = max(rows, key=lambda row: row["to_come"])
    title = f"{most['name']} has the most still to come: {amount(most['to_come'])} on top of {amount(most['so_far'])}"
    shown = min(len(rows), MOST_GROUPS)
    text = f"{_what(summary).capitalize()} by {group}, so far and in the end, with bands"
    text += f"; the {shown} values with the most rows." if shown < len(rows) else "."
    return draw("by-group", title, text, _painted(paint_by_group, summary), lambda _: 1.0 + 0.24 * shown)


def _what(summary: dict[str, Any]) -> str:
    value = summary["settings"]["value"]
    return "positives" if value is None else f"sum of {value} over positives"
