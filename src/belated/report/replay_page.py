"""The page of a replay: its table, and curves over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.report.drawing import Chart, draw
from belated.report.replay_pictures import paint_lines
from belated.report.template import by_loss, fill
from belated.report.time_axis import days_of, is_dated
from belated.typing import Floats, Ints

_START, _ORACLE = "pretrained", "oracle"


def render_replay(summary: dict[str, Any]) -> str:
    """A self-contained page of HTML for the summary of a replay."""
    charts = {"gains": _gains(summary), "calibration": _calibration(summary)}
    return fill("replay.html", summary, charts, methods=by_loss(summary), lead=_lead(summary))


def _lead(summary: dict[str, Any]) -> str:
    """What it means for somebody who does not know the methods."""
    best = summary["best"]
    if best is None:
        return "No method was replayed, so there is nothing to choose."
    gained = summary["methods"][best]["relative_improvement"]
    if gained is None:
        return f"{best} did best, but there is little to gain: knowing all labels at once would not clearly have beaten a model that never learns again."
    if gained <= 0:
        return "Learning from the stream did not pay: the model that never learns again did best."
    return f"Learning pays: {best} gets {gained:.0%} of what knowing all labels at once would gain over a model that never learns again."


def _days(summary: dict[str, Any]) -> tuple[Floats, str, Ints, Floats]:
    """The first time of each day, the first of them in words, the number of each step's day, and the rows of each day."""
    times, rows = summary["steps"]["time"], np.array(summary["steps"]["rows"])
    _, first_of, day = np.unique(np.floor(summary["steps"]["day"]), return_index=True, return_inverse=True)
    first = [times[k] for k in first_of]
    when = days_of(first) if is_dated(first[0]) else np.arange(len(first), dtype=np.float64)
    return when, first[0], day, np.bincount(day, rows).astype(np.float64)


def _gains(summary: dict[str, Any]) -> Chart:
    when, first, day, rows_of = _days(summary)
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
    return _over_time("gains", title, text, shown, when, best, "gain of log loss", 0.0, first)


def _calibration(summary: dict[str, Any]) -> Chart:
    when, first, day, _ = _days(summary)
    rows, positive = (np.array(summary["steps"][name], dtype=float) for name in ("rows", "positive"))
    came = np.maximum(np.bincount(day, positive), 1.0)
    curves = {
        name: np.bincount(day, np.array(row["predictions"]) * rows) / came for name, row in summary["methods"].items()
    }
    best = summary["best"]
    ratio = summary["methods"][best]["calibration_ratio"] if best else None
    title = "Predicted over actual positives" if ratio is None else f"{best} predicts {ratio:.2f} times what comes"
    text = "Predicted over actual positives, by day of arrival; 1 is right."
    return _over_time("replay-calibration", title, text, curves, when, best, "predicted / actual", 1.0, first)


def _over_time(name: str, title: str, text: str, curves: dict[str, Floats], *more: Any) -> Chart:
    when, best, label, level, first = more
    return draw(
        name,
        title,
        text,
        lambda axes, look: paint_lines(axes, curves, when, best, label, level, first, look),
        lambda width: max(3.0 if width < 4 else 3.4, 0.8 + 0.19 * len(curves)),
        wide=True,
    )
