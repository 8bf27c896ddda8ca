"""Pictures of a monitor: figures by period, a line for each version of the model; segments; and the monitor checked on its own past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from belated.report.marks import figures, lengths, name_rows, numbers, set_percent, set_ratios, short, span_of
from belated.report.palette import MARKERS, Palette
from belated.report.time_axis import day_of, days_of, set_time_axis
from belated.typing import Bools, Floats

MOST_SEGMENTS = 25
CLEAR = 0.05  # of an adjusted p
NAMES = {
    "calibration": "predicted / actual",
    "oe": "observed / expected",
    "rate": "final rate",
    "log_loss": "log loss",
    "auc": "AUC",
    "brier": "Brier score",
    "delay": "delay / usual delay",
    "same_age": "rate / rate before",
    "share_in": "share of labels in",
}
_RATIOS = ("calibration", "oe", "delay", "same_age")


def paint_metric(axes: Any, summary: dict[str, Any], name: str, look: Palette, **style: Any) -> None:
    """A figure by period with its intervals; hollow where labels are still to come."""
    periods = [row for row in summary["periods"] if row[name] is not None]
    rows = [{**row, name: row[name]["ratio"]} for row in periods] if name == "same_age" else periods
    place, _, which = _places(summary, rows)
    limits = _limits(summary, name)
    if name == "rate":
        so_far = numbers([row["rate_so_far"] for row in rows])
        axes.plot(place, so_far, "x", markersize=4, color=look.bad, label="rate so far", zorder=2)
        said = numbers([_mean_prediction(row) for row in rows])
        axes.plot(
            place, said, "_", markersize=10, markeredgewidth=1.8, color=look.ink, label="mean prediction", zorder=4
        )
    for k, version in enumerate(_versions(summary)):
        mine: Bools = which == k
        chosen = [row for row, is_mine in zip(rows, mine, strict=True) if is_mine]
        if not chosen:
            continue
        colour, marker = look.series[k % len(look.series)], MARKERS[k % len(MARKERS)]
        label = f"version {short(version)}" if version is not None else NAMES[name]
        _dots(axes, place[mine], chosen, name, colour, marker, look, {"label": label, **style})
    if name in _RATIOS:
        axes.axhline(1.0, color=look.ink, linewidth=1, zorder=1)
        set_ratios(axes.yaxis, *span_of(rows, name, *limits))
    elif name in ("rate", "share_in"):
        set_percent(axes.yaxis)
        axes.set_ylim(0, min(1.02, 1.1 * span_of(rows, name)[1]))
    else:
        low, high = span_of(rows, name)
        axes.set_ylim(low - 0.08 * (high - low) - 1e-3, high + 0.08 * (high - low) + 1e-3)
    for end in limits:
        if end is not None:
            axes.axhline(end, color=look.bad, linestyle="--", linewidth=1.2, zorder=1)
    if any(end is not None for end in limits):
        axes.plot([], [], color=look.bad, linestyle="--", linewidth=1.2, label="limit")
    if any(not row["final"] for row in rows):
        axes.plot([], [], "o", color=look.muted, markerfacecolor=look.paper, label="not final yet")
    axes.set_ylabel(NAMES[name])
    _set_periods(axes, summary)


def _mean_prediction(row: dict[str, Any]) -> float | None:
    """Each row counts as much as its label is in: positives expected by now over labels that are in."""
    return row["expected"] / (row["rows"] * row["share_in"]) if row["share_in"] > 0 else None


def _dots(
    axes: Any,
    place: Floats,
    rows: Sequence[dict[str, Any]],
    name: str,
    colour: str,
    marker: str,
    look: Palette,
    style: Any,
) -> None:
    value, low, high = figures(rows, name)
    final = np.array([row["final"] for row in rows])
    axes.plot(place, value, color=colour, linewidth=0.8, alpha=0.5)
    axes.errorbar(place, value, lengths(value, low, high), fmt="none", ecolor=colour, elinewidth=1.2)
    style = {"linestyle": "none", "color": colour, "marker": marker, "markersize": 5, **style}
    axes.plot(place[~final], value[~final], **{**style, "markerfacecolor": look.paper, "label": None})
    axes.plot(place[final], value[final], **style)


def paint_share_in(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """How many of the labels of each period are in."""
    rows = summary["periods"]
    place, width, which = _places(summary, rows)
    share = numbers([row["share_in"] for row in rows])
    for k, version in enumerate(_versions(summary)):
        mine = which == k
        label = f"version {short(version)}" if version is not None else NAMES["share_in"]
        colour = look.series[k % len(look.series)]
        axes.bar(
            place[mine], share[mine], 0.8 * width[mine], **{"color": colour, "alpha": 0.75, "label": label, **style}
        )
    set_percent(axes.yaxis)
    axes.set(ylabel=NAMES["share_in"], ylim=(0, 1.02))
    axes.grid(axis="x", visible=False)
    _set_periods(axes, summary)


def paint_segments(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """Predicted over actual by segment, the most striking on top."""
    rows = shown_segments(summary)
    several = len({row["version"] for row in rows}) > 1
    place = name_rows(axes, [f"{row['segment']} ({row['version']})" if several else row["segment"] for row in rows])
    value, low, high = figures(rows, "calibration")
    clear = np.array([row["adjusted_p"] < CLEAR for row in rows], dtype=bool)
    none = np.isnan(value)  # no positives yet: more than the lower end
    for some, colour, label in ((clear, look.bad, "clearly off"), (~clear, look.muted, "not clearly off")):
        if some.any():
            ends = lengths(value[some], low[some], high[some])
            how = {"fmt": "o", "markersize": 5, "elinewidth": 1.2, "color": colour, "label": label, **style}
            axes.errorbar(value[some], place[some], xerr=ends, **how)
            axes.plot(low[some & none], place[some & none], ">", markersize=6, color=colour)
    axes.axvline(1.0, color=look.ink, linewidth=1, zorder=1)
    axes.set_xlabel(NAMES["calibration"])
    set_ratios(axes.xaxis, *span_of(rows, "calibration"))


def shown_segments(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that a picture has room for, of which something is known."""
    return [row for row in summary["segments"] if row["calibration"][1] is not None][:MOST_SEGMENTS]


def paint_check(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """Observed over expected of periods that are final now: what was said some days after, and the truth."""
    rows = [row for row in summary["check"] if row["oe"]["said"][0] is not None]
    lags = sorted({row["lag"] for row in rows})
    names = checked_periods(summary)
    spots = dict(zip(names, name_rows(axes, [f"{day} {version or ''}".strip() for day, version in names]), strict=True))
    for j, lag in enumerate(lags):
        mine = [row for row in rows if row["lag"] == lag]
        place = np.array([spots[_period_of(row)] for row in mine]) - 0.22 * (j - (len(lags) - 1) / 2)
        value, low, high = figures([row["oe"] for row in mine], "said")
        colour = look.series[j % len(look.series)]
        how = {"fmt": MARKERS[j % len(MARKERS)], "markersize": 5, "elinewidth": 1.2, "color": colour}
        label = f"said after {lag:.3g} day{'s' if lag != 1 else ''}"
        axes.errorbar(value, place, xerr=lengths(value, low, high), **{**how, "label": label, **style})
    truth = {spots[_period_of(row)]: row["oe"]["truth"] for row in rows if row["oe"]["truth"] is not None}
    ends = np.array(list(truth)) if truth else np.zeros(0)
    axes.vlines(list(truth.values()), ends - 0.38, ends + 0.38, color=look.ink, linewidth=2, label="truth")
    axes.set(xlabel=NAMES["oe"], ylabel="period that is final now")
    known = [end for row in rows for end in (*row["oe"]["said"], row["oe"]["truth"]) if end]
    set_ratios(axes.xaxis, min(known, default=0.5), max(known, default=2.0))


def checked_periods(summary: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Periods and versions that the monitor is checked on."""
    return list(dict.fromkeys(_period_of(row) for row in summary["check"] if row["oe"]["said"][0] is not None))


def _period_of(row: dict[str, Any]) -> tuple[str, str | None]:
    return day_of(row["period"]), row["version"]


def _versions(summary: dict[str, Any]) -> list[str | None]:
    """In the order in which they appear."""
    ordered = sorted(summary["periods"], key=lambda row: days_of([row["period"]])[0])
    return list(dict.fromkeys(row["version"] for row in ordered))


def _places(summary: dict[str, Any], rows: Sequence[dict[str, Any]]) -> tuple[Floats, Floats, Any]:
    """The middle of each row's period, or of its part where versions share one; how wide that is; and the number of its version."""
    versions, size = _versions(summary), summary["settings"]["period"]
    which = np.array([versions.index(row["version"]) for row in rows], dtype=np.int64)
    in_period: dict[str, list[int]] = {}
    for row, version in zip(rows, which.tolist(), strict=True):
        in_period.setdefault(row["period"], []).append(version)
    begin = days_of([row["period"] for row in rows])
    parts = np.array([len(in_period[row["period"]]) for row in rows], dtype=np.float64)
    part = np.array([sorted(in_period[r["period"]]).index(v) for r, v in zip(rows, which.tolist(), strict=True)])
    return begin + size * (part + 0.5) / parts, size / parts, which


def _set_periods(axes: Any, summary: dict[str, Any]) -> None:
    periods = summary["periods"]
    if not periods:
        return
    begin = days_of([row["period"] for row in periods])
    axes.set_xlim(begin.min(), begin.max() + summary["settings"]["period"])
    set_time_axis(axes, "time of the score", periods[0]["period"])


def _limits(summary: dict[str, Any], name: str) -> tuple[float | None, float | None]:
    """Those asked for, as ``calibration=0.9..1.1``."""
    for text in summary["settings"]["fail_on"]:
        which, _, ends = text.partition("=")
        if which == name:
            low, _, high = ends.partition("..")
            return (float(low) if low else None, float(high) if high else None)
    return None, None
