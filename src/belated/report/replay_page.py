"""The page of a replay: its table, and curves over time."""

from __future__ import annotations

from datetime import datetime
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure

from belated.report.charts import ACCENT, BAD, GOOD, INK, MUTED, Chart, draw
from belated.report.page import fill
from belated.typing import Floats

_START, _ORACLE = "pretrained", "oracle"
_DASHES = ("-", (0, (1, 1)), (0, (4, 1)), (0, (4, 1, 1, 1)), (0, (7, 2)), (0, (1, 3)), (0, (6, 1, 1, 1, 1, 1)))


def render_replay(summary: dict[str, Any]) -> str:
    """A self-contained page of HTML for the summary of a replay."""
    return fill("replay.html", summary, {"gains": _gains(summary), "calibration": _calibration(summary)})


def _days(summary: dict[str, Any]) -> tuple[Any, Any, Floats]:
    """The first time of each day, the number of each step's day, and the rows of each day."""
    times, rows = summary["steps"]["time"], np.array(summary["steps"]["rows"])
    _, first_of, day = np.unique(np.floor(summary["steps"]["day"]), return_index=True, return_inverse=True)
    first = [times[k] for k in first_of]
    dated = first[0][:4].isdigit() and "-" in first[0]
    when: Any = [datetime.fromisoformat(text) for text in first] if dated else np.arange(len(first))
    return when, day, np.bincount(day, rows).astype(np.float64)


def _lines(
    figure: Figure, summary: dict[str, Any], curves: dict[str, Floats], when: Any, label: str, level: float
) -> None:
    axes = figure.subplots()
    last = []
    dashes = cycle(_DASHES)  # what is neither best, oracle nor vanilla is told apart by these
    for name, curve in curves.items():
        colour = {summary["best"]: ACCENT, "vanilla": BAD, _ORACLE: GOOD}.get(name, MUTED)
        style = next(dashes) if colour == MUTED else "-"
        axes.plot(when, curve, color=colour, linestyle=style, linewidth=1.6 if name == summary["best"] else 0.9)
        last.append((float(curve[-1]), name, colour))
    axes.axhline(level, color=INK, linewidth=0.8, linestyle="--")
    if not isinstance(when, np.ndarray):
        locator = AutoDateLocator(minticks=3, maxticks=8)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.set(ylabel=label, xlabel="time" if not isinstance(when, np.ndarray) else "days since the warm-up")
    # Single days that are far off would squeeze all the others.
    every = np.concatenate(list(curves.values()))
    low, high = np.quantile(every, [0.02, 0.98])
    room = 0.15 * max(high - low, 1e-9)
    low, high = min(low, level) - room, max(high, level) + room
    axes.set_ylim(low, high)
    for place, (value, name, colour) in zip(
        _apart([v for v, _, _ in sorted(last)], low, high), sorted(last), strict=True
    ):
        end = min(max(value, low), high)
        axes.annotate(
            name,
            (when[-1], end),
            (1.06, place),
            textcoords=axes.get_yaxis_transform(),
            color=colour,
            va="center",
            fontsize=8,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "shrinkA": 2,
                "shrinkB": 1,
                "relpos": (0, 0.5),
            },
        )


def _apart(values: list[float], low: float, high: float) -> Floats:
    """Places for names at the ends of lines, in ascending order: near their values, and not on each other."""
    gap = (high - low) / max(14, len(values))
    places = np.clip(values, low, high)
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + gap)
    if len(places):
        places[-1] = min(places[-1], high)
    for k in range(len(places) - 2, -1, -1):
        places[k] = min(places[k], places[k + 1] - gap)
    return places


def _gains(summary: dict[str, Any]) -> Chart:
    when, day, rows_of = _days(summary)
    rows = np.array(summary["steps"]["rows"])

    def mean(name: str) -> Floats:
        return np.bincount(day, np.array(summary["methods"][name]["log_losses"]) * rows) / rows_of

    start, methods = mean(_START), summary["methods"]
    # A method that is far off altogether is named and not drawn.
    far = 3 * abs(methods[_START]["log_loss"] - methods[_ORACLE]["log_loss"]) + 1e-9
    shown = {
        n: start - mean(n)
        for n in methods
        if n != _START and methods[n]["log_loss"] < methods[_START]["log_loss"] + far
    }
    left = [n for n in methods if n not in shown and n != _START]
    best = summary["best"]
    gain = methods[_START]["log_loss"] - methods[best]["log_loss"] if best else 0.0
    title = f"{best} gains {gain:.4f} of log loss on the model that never learns again"
    text = "Log loss of the first model less that of each method, by day: above the line is better."
    text += " Days that are far off are cut."
    if left:
        text += f" Not shown, being far worse: {', '.join(left)}."
    return draw(title, text, (6.4, 3.4), lambda f: _lines(f, summary, shown, when, "gain of log loss", 0.0), "gains")


def _calibration(summary: dict[str, Any]) -> Chart:
    when, day, _ = _days(summary)
    rows, positive = (np.array(summary["steps"][name], dtype=float) for name in ("rows", "positive"))
    came = np.maximum(np.bincount(day, positive), 1.0)
    curves = {
        name: np.bincount(day, np.array(row["predictions"]) * rows) / came for name, row in summary["methods"].items()
    }
    best = summary["best"]
    ratio = summary["methods"][best]["calibration_ratio"] if best else None
    title = "Predicted over actual positives" if ratio is None else f"{best} predicts {ratio:.2f} times what comes"
    text = "Predicted over actual positives, by day of arrival; 1 is right."
    return draw(
        title,
        text,
        (6.4, 3.4),
        lambda f: _lines(f, summary, curves, when, "predicted / actual", 1.0),
        "replay-calibration",
    )
