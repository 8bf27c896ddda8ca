"""Pictures of a forecast: the fan of what is still to come, by day, by arrival, by group, and past forecasts beside what came."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.report.marks import band_label, from_zero, levels_of, name_rows, set_amounts, short, tilt, whiskers
from belated.report.palette import Palette
from belated.report.time_axis import day_of, days_of, set_time_axis, step_of
from belated.typing import Floats

_SHADES = (0.14, 0.3, 0.45)  # from the widest band to the narrowest
MOST_GROUPS = 25


def worth(settings: dict[str, Any]) -> str:
    """What is added up."""
    return short(settings["value"] or "positives")


def paint_cumulated(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """The fan chart: what there is so far, and how it will grow."""
    total, steps = summary["total"], summary["by_outcome"]
    history = summary.get("history", [])
    now = float(days_of([total["as_of"]])[0])
    ends = _ends(summary, steps)
    if history:
        axes.plot(
            np.minimum(_ends(summary, history), now),
            [row["cumulated"] for row in history],
            color=look.ink,
            linewidth=1.6,
            label="so far",
        )
    if "all_cumulated" in steps[0]:
        _fan(axes, now, ends, summary, "all_cumulated", look.series[1], "with what arrives next", {})
    _fan(axes, now, ends, summary, "cumulated", look.accent, "of what has arrived", style)
    axes.plot([now], [total["so_far"]], "o", color=look.ink, markersize=5, label="so far" if not history else None)
    axes.axvline(now, color=look.muted, linestyle="--", linewidth=1)
    if total["came"] is not None:
        axes.plot(ends[-1:], [total["so_far"] + total["came"]], "D", color=look.good, markersize=5, label="what came")
    axes.set_ylabel(worth(summary["settings"]), parse_math=False)
    from_zero(axes)
    set_amounts(axes.yaxis)
    set_time_axis(axes, "time", total["as_of"])


def _fan(
    axes: Any, now: float, ends: Floats, summary: dict[str, Any], name: str, colour: str, label: str, style: Any
) -> None:
    steps, so_far = summary["by_outcome"], summary["total"]["so_far"]
    when = np.append(now, ends)
    levels = levels_of(steps[0][f"{name}_bands"])
    for k, level in enumerate(levels):
        low, high = (np.append(0.0, [row[f"{name}_bands"][level][end] for row in steps]) + so_far for end in (0, 1))
        named = band_label(levels) if name == "cumulated" and k == len(levels) - 1 else None
        axes.fill_between(when, low, high, color=colour, alpha=_SHADES[min(k, 2)], linewidth=0, label=named)
    mean = np.append(0.0, [row[name] for row in steps]) + so_far
    axes.plot(when, mean, **{"color": colour, "linewidth": 1.6, "label": label, **style})


def _ends(summary: dict[str, Any], steps: list[dict[str, Any]]) -> Floats:
    """When each step ends. Steps are named by the day that they are, or begin with."""
    total, unit = summary["total"], summary["settings"]["unit"]
    now, step = float(days_of([total["as_of"]])[0]), step_of(unit)
    # Hours and days end when the clock says so; the name of a day that was stamped at its end is that end.
    first = (np.floor(now / step + 1e-9) + 1) * step if unit in ("hour", "day") else now + step
    named, first_named = (days_of([row["day"] for row in some]) for some in (steps, summary["by_outcome"][:1]))
    found: Floats = named + (first - first_named[0])
    return found


def paint_by_outcome(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """What comes on each day."""
    steps, unit = summary["by_outcome"], summary["settings"]["unit"]
    place, width = days_of([row["day"] for row in steps]), 0.8 * step_of(unit)
    expected = np.array([row["to_come"] for row in steps])
    whole = "all" in steps[0]
    label = "of what has arrived" if whole else "expected"
    axes.bar(place, expected, width, **{"color": look.accent, "alpha": 0.75, "label": label, **style})
    if whole:
        new = [row["new"] for row in steps]
        axes.bar(place, new, width, bottom=expected, color=look.series[1], alpha=0.6, label="of what arrives next")
    whiskers(axes, place, [row["all_bands" if whole else "bands"] for row in steps], 0.0, look, width)
    each = "an hour" if unit == "hour" else f"a {unit}" if unit[0].isalpha() else unit
    axes.set_ylabel(f"{worth(summary['settings'])}, {each}", parse_math=False)
    axes.grid(axis="x", visible=False)
    set_amounts(axes.yaxis)
    from_zero(axes)
    set_time_axis(axes, f"{unit} of the outcome", steps[0]["day"])


def paint_by_arrival(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """For each day of arrival: what there is, and what is to come on top of it."""
    cohorts, unit = summary["by_arrival"], summary["settings"]["arrival_unit"]
    place, width = days_of([row["name"] for row in cohorts]), 0.8 * step_of(unit)
    so_far, to_come = (np.array([row[name] for row in cohorts]) for name in ("so_far", "to_come"))
    axes.bar(place, so_far, width, color=look.accent, alpha=0.85, label="so far")
    axes.bar(
        place,
        to_come,
        width,
        bottom=so_far,
        **{"color": look.accent, "alpha": 0.35, "label": _to_come(summary), **style},
    )
    whiskers(axes, place, [row["bands"] for row in cohorts], so_far, look, width)
    axes.set_ylabel(worth(summary["settings"]), parse_math=False)
    axes.grid(axis="x", visible=False)
    set_amounts(axes.yaxis)
    from_zero(axes)
    set_time_axis(axes, f"{unit} of arrival", cohorts[0]["name"])


def ends_before_all_is_final(summary: dict[str, Any]) -> bool:
    """Whether the forecast looks less far ahead than the horizon."""
    settings = summary["settings"]
    return bool(settings["ahead"] < settings["horizon"] * (1 - 1e-12))


def _to_come(summary: dict[str, Any]) -> str:
    """What is to come is all of it, or that by a day."""
    return f"to come by {summary['total']['until']}" if ends_before_all_is_final(summary) else "still to come"


def paint_by_group(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """For each group: so far, and when what is to come has come."""
    rows = summary["by_group"][:MOST_GROUPS]
    place = name_rows(axes, [row["name"] for row in rows])
    so_far = np.array([row["so_far"] for row in rows])
    whiskers(axes, place, [row["bands"] for row in rows], so_far, look)
    axes.plot(so_far, place, "o", markersize=5, markerfacecolor=look.paper, color=look.muted, label="so far")
    label = f"by {summary['total']['until']}" if ends_before_all_is_final(summary) else "in the end"
    style = {"color": look.accent, "markersize": 6, "label": label, **style}
    axes.plot([row["so_far"] + row["to_come"] for row in rows], place, "o", zorder=4, **style)
    axes.set_xlabel(worth(summary["settings"]), parse_math=False)
    set_amounts(axes.xaxis)
    axes.set_xlim(0, None)


def paint_past(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """Forecasts at dates of the past, and what came."""
    past = summary["past"]
    place = np.arange(len(past))
    labels = past_dates(summary)
    axes.vlines(
        place, [row["came"] for row in past], [row["forecast"] for row in past], color=look.grid, linewidth=2, zorder=1
    )
    if summary["settings"]["method"] != "chain-ladder":
        ladder = [row["chain_ladder"] for row in past]
        axes.plot(place, ladder, "s", markersize=6, color=look.bad, markerfacecolor=look.paper, label="chain ladder")
    axes.plot(
        place,
        [row["forecast"] for row in past],
        "o",
        **{"color": look.accent, "markersize": 7, "label": "forecast", **style},
    )
    axes.plot(
        place, [row["came"] for row in past], "_", markersize=18, markeredgewidth=2.5, color=look.ink, label="what came"
    )
    axes.set_xticks(place, labels)
    tilt(axes, labels)
    axes.set(xlabel="date of the forecast", xlim=(-0.5, len(past) - 0.5))
    from_zero(axes)
    axes.set_ylabel(worth(summary["settings"]), parse_math=False)
    set_amounts(axes.yaxis)
    axes.grid(axis="x", visible=False)


def past_dates(summary: dict[str, Any]) -> list[str]:
    """When past forecasts were made; the day alone where that tells them apart."""
    dates = [row["as_of"] for row in summary["past"]]
    days = [day_of(date) for date in dates]
    return days if len(set(days)) == len(days) else [date.removesuffix("+00:00") for date in dates]
