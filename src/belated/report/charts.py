"""Charts of a summary, as SVG that takes its colours from the page around it.

A chart has a title that states what it shows, axes with units, and a text alternative.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import matplotlib
import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

# Placeholders: the style sheet of the page replaces them by the colours of its light or dark theme.
INK, MUTED, GRID, ACCENT, BAD, GOOD = "#101112", "#707172", "#d0d1d2", "#1060d3", "#c03234", "#208245"
_COLOURS = {INK: "--ink", MUTED: "--muted", GRID: "--grid", ACCENT: "--accent", BAD: "--bad", GOOD: "--good"}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Chart:
    title: str
    alternative: str
    svg: str


def draw(title: str, alternative: str, size: tuple[float, float], paint: Callable[[Figure], None], name: str) -> Chart:
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=size)
        paint(figure)
        file = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, f"var({variable})")
    return Chart(title, alternative, svg)


def _colour(name: str, summary: dict[str, Any]) -> str:
    return {summary["recommended"]: ACCENT, "bl": BAD, "oracle": GOOD}.get(name, MUTED)


def charts(summary: dict[str, Any]) -> dict[str, Chart]:
    """All charts of a summary, by name."""
    found = {
        "delays": _delays(summary["diagnosis"]),
        "maturity": _maturity(summary["diagnosis"]),
        "cutoffs": _cutoffs(summary),
        "calibration": _calibration(summary),
        "ages": _ratios(summary, "by_days_since_cutoff", "days since the cut-off, up to"),
    }
    if summary["settings"]["group"] is not None:
        found["groups"] = _groups(summary)
    return found


def _delays(diagnosis: dict[str, Any]) -> Chart:
    curve, window = diagnosis["curve"], diagnosis["window"]
    ages = np.append(0.0, curve["ages"])
    share, low, high = (np.append(0.0, curve[key]) for key in ("share", "share_low", "share_high"))
    half, ninety = (float(ages[min(int(np.searchsorted(share, s)), len(ages) - 1)]) for s in (0.5, 0.9))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.fill_between(ages, low, high, step="post", color=ACCENT, alpha=0.2, linewidth=0)
        axes.step(ages, share, where="post", color=ACCENT)
        axes.axvline(window, color=MUTED, linestyle="--", linewidth=1)
        axes.annotate(f"window {window:.3g} days", (window, 0.04), xytext=(4, 0), textcoords="offset points", color=INK)
        axes.set(xlabel="age, days", ylabel="share of positives seen", ylim=(0, 1.02), xlim=(0, None))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))

    title = f"Half of the positives come within {half:.2g} days, nine in ten within {ninety:.2g}"
    after = diagnosis["after_window"]["share"]
    text = f"Share of positives seen by age, with a 95% band. At the window of {window:.3g} days, {after:.0%} are still to come."
    return draw(title, text, (5.6, 2.9), paint, "delays")


def _maturity(diagnosis: dict[str, Any]) -> Chart:
    days = diagnosis["days"]
    rows, so_far, seen = (np.array([d[key] for d in days]) for key in ("rows", "rate_so_far", "positives_seen"))
    unripe = int((seen < 0.9).sum())
    missing = 1.0 - float(np.average(seen[seen < 0.9], weights=rows[seen < 0.9])) if unripe else 0.0
    # In a long log, single days would be noise: show weeks or longer.
    first = np.arange(0, len(days), 1 if len(days) <= 100 else 7 * -(-len(days) // 700))
    rows_of = np.add.reduceat(rows, first)
    so_far, seen = (np.add.reduceat(rows * values, first) / rows_of for values in (so_far, seen))
    expected = np.where(seen > 0.05, so_far / np.maximum(seen, 1e-300), np.nan)
    dated = days[0]["day"][0].isdigit()
    x: Any = [date.fromisoformat(days[i]["day"]) for i in first] if dated else first

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        axes.plot(x, expected, color=ACCENT, linewidth=1.2, label="expected in the end")
        axes.plot(x, so_far, color=BAD, linewidth=1.2, label="positive so far")
        unit = "day" if len(first) == len(days) else f"{first[1]} days"
        axes.set(xlabel=f"time of arrival, by {unit}", ylabel="share of rows", ylim=(0, None))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0))
        if dated:
            locator = AutoDateLocator(maxticks=7)
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        axes.legend(loc="lower left", ncols=2)

    if unripe:
        title = f"The last {unripe} days lack {missing:.0%} of their positives"
    else:
        title = "Every day of arrival has at least nine in ten of its positives by now"
    return draw(title, "Rate by time of arrival so far, and as expected in the end.", (5.6, 2.9), paint, "maturity")


def _cutoffs(summary: dict[str, Any]) -> Chart:
    methods, best = summary["methods"], summary["recommended"]
    labels = [
        c["as_of"][:10] if c["as_of"][:1].isdigit() and "-" in c["as_of"] else c["as_of"] for c in summary["cutoffs"]
    ]
    losses = {name: [c["log_loss"] for c in row["cutoffs"]] for name, row in methods.items()}
    wins = sum(mine < other for mine, other in zip(losses[best], losses["bl"], strict=True))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        special = [name for name in dict.fromkeys((best, "bl", "oracle")) if name in losses]
        for name, values in losses.items():
            if name not in special:
                axes.plot(labels, values, color=GRID, linewidth=1, marker=".", zorder=1)
        for name in special:
            axes.plot(labels, losses[name], color=_colour(name, summary), marker="o", markersize=4, label=name)
        top = max(max(losses[name]) for name in special)
        low = min(min(values) for values in losses.values())
        axes.set(
            xlabel="cut-off",
            ylabel="log loss of the period after",
            ylim=(low - 0.1 * (top - low), top + 0.4 * (top - low)),
        )
        axes.tick_params(axis="x", rotation=0 if len(labels) <= 7 else 45)
        axes.legend(loc="upper left", ncols=3)

    title = (
        f"{best} is ahead of bl at {wins} of {len(labels)} cut-offs"
        if best != "bl"
        else "No method is ahead of bl on average"
    )
    parts = [f"{name} {', '.join(f'{v:.3f}' for v in losses[name])}" for name in dict.fromkeys((best, "bl", "oracle"))]
    return draw(title, f"Log loss at each cut-off: {'; '.join(parts)}.", (5.6, 2.9), paint, "cutoffs")


def _calibration(summary: dict[str, Any]) -> Chart:
    methods = sorted(summary["methods"].items(), key=lambda item: item[1]["log_loss"])
    columns = min(3, len(methods))
    lines = -(-len(methods) // columns)
    top = max(max(b["high"], b["predicted"]) for _, row in methods for b in row["calibration_curve"])

    def paint(figure: Figure) -> None:
        grid = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
        for axes, (name, row) in zip(grid.ravel(), methods, strict=False):
            curve = row["calibration_curve"]
            predicted, rate = ([b[key] for b in curve] for key in ("predicted", "rate"))
            bars = [[b["rate"] - b["low"] for b in curve], [b["high"] - b["rate"] for b in curve]]
            axes.plot([0, top], [0, top], color=GRID, linewidth=1)
            axes.errorbar(
                predicted,
                rate,
                np.maximum(bars, 0.0),
                color=_colour(name, summary),
                marker="o",
                markersize=3,
                linewidth=1,
            )
            axes.set_title(name, fontsize=9)
            axes.set(xlim=(0, top), ylim=(0, top))
        for axes in grid.ravel()[len(methods) :]:
            axes.set_visible(False)
        for axes in grid[:, 0]:
            axes.set_ylabel("rate")
        for axes in grid[-1]:
            axes.set_xlabel("predicted")

    ratio = summary["methods"][summary["recommended"]]["calibration_ratio"]
    bl = summary["methods"]["bl"]["calibration_ratio"]
    title = f"bl predicts {_off(bl)}, {summary['recommended']} {_off(ratio)}"
    if summary["recommended"] == "bl":
        title = f"bl predicts {_off(bl)}"
    text = "Rate of positives against mean prediction in ten bins for each method, with 95% intervals; on the diagonal both agree."
    return draw(title, text, (5.6, 1.75 * lines + 0.3), paint, "calibration")


def _off(ratio: float | None) -> str:
    if ratio is None:
        return "without positives to compare with"
    if abs(ratio - 1) < 0.005:
        return "the right number"
    return f"{abs(ratio - 1):.0%} too {'many' if ratio > 1 else 'few'}"


def _ratios(summary: dict[str, Any], key: str, label: str) -> Chart:
    names = [n for n in dict.fromkeys((summary["recommended"], "bl", "oracle")) if n in summary["methods"]]
    groups = [g["group"] for g in summary["methods"][names[0]][key]]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name in names:
            values = [
                np.nan if g["calibration_ratio"] is None else g["calibration_ratio"]
                for g in summary["methods"][name][key]
            ]
            axes.plot(
                [f"{g:.3g}" for g in groups], values, marker="o", markersize=4, color=_colour(name, summary), label=name
            )
        axes.axhline(1.0, color=MUTED, linewidth=1)
        axes.set(xlabel=label, ylabel="predicted / actual")
        axes.legend(ncols=3)

    last = [g["calibration_ratio"] for g in summary["methods"][names[0]][key]]
    known = [v for v in last if v is not None]
    title = (
        f"{names[0]} stays between {min(known):.2f} and {max(known):.2f} of the actual number"
        if known
        else "No positives"
    )
    text = f"Predicted over actual positives by {label}: " + ", ".join(
        f"{g:.3g}: {'none' if v is None else format(v, '.2f')}" for g, v in zip(groups, last, strict=True)
    )
    return draw(title, text + ".", (5.6, 2.6), paint, key)


def _groups(summary: dict[str, Any]) -> Chart:
    best, group = summary["recommended"], summary["settings"]["group"]
    rows = sorted(summary["methods"][best]["by_group"], key=lambda g: -g["rows"])
    bl = {g["group"]: g["calibration_ratio"] for g in summary["methods"]["bl"]["by_group"]}
    shown = [g for g in rows if g["calibration_ratio"] is not None][:20]
    labels = [str(g["group"])[:24] for g in shown]
    mine, theirs = [g["calibration_ratio"] for g in shown], [bl[g["group"]] for g in shown]
    closer = sum(abs(np.log(m)) < abs(np.log(t)) for m, t in zip(mine, theirs, strict=True) if m and t)

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        place = np.arange(len(shown))[::-1]
        axes.hlines(place, mine, theirs, color=GRID, linewidth=1)
        axes.plot(theirs, place, "o", markersize=4, color=BAD, label="bl")
        if best != "bl":
            axes.plot(mine, place, "o", markersize=5, color=ACCENT, label=best)
        axes.axvline(1.0, color=MUTED, linewidth=1)
        axes.set_yticks(place, labels, fontsize=8)
        axes.set(xlabel="predicted / actual positives", ylim=(-0.7, len(shown) + 0.8))
        axes.legend(ncols=2, loc="upper center")

    title = (
        f"{best} is closer than bl for {closer} of {len(shown)} values of {group}"
        if best != "bl"
        else f"bl, by {group}"
    )
    text = f"Predicted over actual positives for the {len(shown)} most frequent values of {group}."
    return draw(title, text, (5.6, 0.9 + 0.22 * len(shown)), paint, "groups")
