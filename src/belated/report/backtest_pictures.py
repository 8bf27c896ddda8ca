"""Pictures of a backtest: how good methods are, at each cut-off and on average, and whether their probabilities can be believed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from belated.report.marks import as_written, lengths, name_rows, numbers, set_percent, set_ratios, tilt
from belated.report.palette import Palette
from belated.report.template import by_loss
from belated.report.time_axis import day_of

MOST_VALUES = 20


def special(summary: dict[str, Any]) -> list[str]:
    """The methods that are always told apart: the one recommended, no correction, and the oracle."""
    return [n for n in dict.fromkeys((summary["recommended"], "bl", "oracle")) if n in summary["methods"]]


def paint_methods(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """The log loss of each method with its interval, the best on top."""
    methods = by_loss(summary)
    place = name_rows(axes, [name for name, _ in methods])
    ends = [[row["log_loss"], *(row["intervals"]["log_loss"] or (None, None))] for _, row in methods]
    for spot, (name, row), interval in zip(place, methods, ends, strict=True):
        error = lengths(*(numbers([end]) for end in interval))
        colour = look.of_method(name, summary["recommended"])
        axes.errorbar(
            row["log_loss"],
            spot,
            xerr=error,
            **{"fmt": "o", "color": colour, "markersize": 6, "elinewidth": 1.4, **style},
        )
    axes.set_xlabel("log loss, with 95% intervals")


def paint_cutoffs(axes: Any, summary: dict[str, Any], look: Palette) -> None:
    """The log loss of each method at each cut-off."""
    labels = [day_of(c["as_of"]) for c in summary["cutoffs"]]
    losses = {name: [c["log_loss"] for c in row["cutoffs"]] for name, row in summary["methods"].items()}
    place = np.arange(len(labels))
    others = [name for name in losses if name not in special(summary)]
    for name in others:
        label = "other methods" if name == others[0] else None
        axes.plot(place, losses[name], color=look.muted, alpha=0.4, linewidth=1, marker=".", zorder=1, label=label)
    for name in special(summary):
        colour = look.of_method(name, summary["recommended"])
        axes.plot(place, losses[name], color=colour, marker="o", markersize=4, label=name)
    top = max(max(losses[name]) for name in special(summary))
    low = min(min(values) for values in losses.values())
    room = 0.1 * (top - low) + 1e-9
    axes.set(xlabel="cut-off", ylabel="log loss", ylim=(low - room, top + room))
    axes.set_xticks(place, labels)
    tilt(axes, labels)


def paint_calibration(axes: Any, curve: list[dict[str, Any]], colour: str, look: Palette, **style: Any) -> None:
    """The rate of positives against the mean prediction, in bins."""
    predicted, rate, low, high = (numbers([b[key] for b in curve]) for key in ("predicted", "rate", "low", "high"))
    top = 1.05 * max(np.nanmax(high, initial=0.0), np.nanmax(predicted, initial=0.0), 1e-3)
    axes.plot([0, top], [0, top], color=look.muted, linewidth=1, linestyle=":")
    how = {"color": colour, "marker": "o", "markersize": 4, "linewidth": 1.2}
    axes.errorbar(predicted, rate, lengths(rate, low, high), **{**how, **style})
    axes.set(xlabel="mean prediction", ylabel="rate of positives", xlim=(0, top), ylim=(0, top))
    for axis in (axes.xaxis, axes.yaxis):
        set_percent(axis)


def paint_calibration_of(axes: Any, summary: dict[str, Any], names: Sequence[str], look: Palette, **style: Any) -> None:
    """The same for several methods on one pair of axes."""
    methods = summary["methods"]
    others = cycle(look.series[1:])
    for name in names:
        colour = look.of_method(name, summary["recommended"])
        colour = next(others) if colour == look.muted else colour
        paint_calibration(axes, methods[name]["calibration_curve"], colour, look, **{"label": name, **style})
    top = max(b[end] for name in names for b in methods[name]["calibration_curve"] for end in ("high", "predicted"))
    axes.set(xlim=(0, 1.05 * top), ylim=(0, 1.05 * top))


def paint_calibrations(figure: Figure, summary: dict[str, Any], look: Palette) -> None:
    """The same for all methods, on axes of one size."""
    methods = by_loss(summary)
    lines, columns = grid_of(len(methods), figure.get_figwidth())
    grid = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    top = 1.05 * max(max(b["high"], b["predicted"]) for _, row in methods for b in row["calibration_curve"])
    for axes, (name, row) in zip(grid.ravel(), methods, strict=False):
        colour = look.of_method(name, summary["recommended"])
        paint_calibration(axes, row["calibration_curve"], colour, look)
        as_written([axes.set_title(name, loc="left")])
        axes.set(xlim=(0, top), ylim=(0, top), xlabel="", ylabel="")
    for k, axes in enumerate(grid.ravel()):
        axes.set_visible(k < len(methods))
        axes.tick_params(labelbottom=k + columns >= len(methods))
    figure.supxlabel("mean prediction", fontsize="medium")
    figure.supylabel("rate of positives", fontsize="medium")


def grid_of(count: int, width: float) -> tuple[int, int]:
    """How many lines and columns of small charts there are; the last line is about as long as the others."""
    most = 6 if width > 8 else 3 if width > 4 else 2
    lines = -(-count // most)
    return lines, -(-count // lines)


def paint_ages(axes: Any, summary: dict[str, Any], look: Palette) -> None:
    """Predicted over actual positives by days since the cut-off."""
    key = "by_days_since_cutoff"
    names = special(summary)
    labels = [f"{row['group']:.3g}" for row in summary["methods"][names[0]][key]]
    for name in names:
        values = numbers([row["calibration_ratio"] for row in summary["methods"][name][key]])
        colour = look.of_method(name, summary["recommended"])
        axes.plot(labels, values, marker="o", markersize=4, color=colour, label=name)
    axes.axhline(1.0, color=look.ink, linewidth=1)
    axes.set(xlabel="days since the cut-off, up to", ylabel="predicted / actual")


def paint_values(axes: Any, summary: dict[str, Any], look: Palette) -> None:
    """Predicted over actual positives for the most frequent values of the group."""
    best = summary["recommended"]
    shown = shown_values(summary)
    bl = {row["group"]: row["calibration_ratio"] for row in summary["methods"]["bl"]["by_group"]}
    mine = numbers([row["calibration_ratio"] for row in shown])
    theirs = numbers([bl[row["group"]] for row in shown])
    place = name_rows(axes, [row["group"] for row in shown])
    axes.hlines(place, mine, theirs, color=look.grid, linewidth=2)
    axes.plot(theirs, place, "o", markersize=5, color=look.bad, label="bl")
    if best != "bl":
        axes.plot(mine, place, "o", markersize=6, color=look.accent, label=best)
    axes.axvline(1.0, color=look.ink, linewidth=1)
    axes.set_xlabel("predicted / actual positives")
    known = [value for value in (*mine, *theirs) if value > 0]
    set_ratios(axes.xaxis, min(known, default=0.5), max(known, default=2.0))


def shown_values(summary: dict[str, Any]) -> list[dict[str, Any]]:
    rows = sorted(summary["methods"][summary["recommended"]]["by_group"], key=lambda row: -row["rows"])
    return [row for row in rows if row["calibration_ratio"] is not None][:MOST_VALUES]
