"""The page of a comparison: which method to use, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from belated.report.backtest_pictures import (
    grid_of,
    paint_ages,
    paint_calibrations,
    paint_cutoffs,
    paint_methods,
    paint_values,
    shown_values,
    special,
)
from belated.report.diagnosis_page import diagnosis_charts
from belated.report.drawing import Chart, draw, draw_figure
from belated.report.palette import IN_PAGE
from belated.report.template import by_loss, fill


def render(summary: dict[str, Any]) -> str:
    """A self-contained page of HTML for a summary, as ``Backtest.summary()`` and the CLI make it."""
    return fill(
        "page.html", summary, _charts(summary), d=summary["diagnosis"], methods=by_loss(summary), lead=_lead(summary)
    )


def _lead(summary: dict[str, Any]) -> str:
    """What it means for somebody who does not know the methods."""
    best, methods = summary["recommended"], summary["methods"]
    plain = _off(methods["bl"]["calibration_ratio"])
    if best == "bl":
        return f"No correction is better on average than labels as they stand, which predicted {plain}."
    return f"Trained on labels as they stand, a model predicted {plain}; with {best}, {_off(methods[best]['calibration_ratio'])}."


def _charts(summary: dict[str, Any]) -> dict[str, Chart]:
    """All charts of a summary, by name."""
    grouped = summary["settings"]["group"] is not None
    found = {
        **diagnosis_charts(summary["diagnosis"]),
        "methods": _methods(summary),
        "cutoffs": _cutoffs(summary),
        "calibration": _calibration(summary),
        "ages": _ages(summary, wide=not grouped),
    }
    if grouped:
        found["groups"] = _groups(summary)
    return found


def _methods(summary: dict[str, Any]) -> Chart:
    methods, best = summary["methods"], summary["recommended"]
    title = f"{best} has the lowest log loss of {len(methods) - 1} methods"
    if methods[best]["log_loss"] > min(row["log_loss"] for name, row in methods.items() if name != "oracle"):
        title = "Log loss by method"
    text = "Mean log loss over the cut-offs, with 95% intervals from how they differ; lower is better. The oracle knew the final labels."
    tall = 1.0 + 0.24 * max(len(methods), 8)
    return draw("methods", title, text, lambda axes, look: paint_methods(axes, summary, look), lambda _: tall)


def _cutoffs(summary: dict[str, Any]) -> Chart:
    best = summary["recommended"]
    losses = {name: [c["log_loss"] for c in summary["methods"][name]["cutoffs"]] for name in special(summary)}
    wins = sum(mine < other for mine, other in zip(losses[best], losses["bl"], strict=True))
    title = f"{best} is ahead of bl at {wins} of {len(losses['bl'])} cut-offs"
    if best == "bl":
        title = "No method is ahead of bl on average"
    parts = [f"{name} {', '.join(f'{v:.3f}' for v in values)}" for name, values in losses.items()]
    text = f"Log loss of the period after each cut-off: {'; '.join(parts)}."
    return draw("cutoffs", title, text, lambda axes, look: paint_cutoffs(axes, summary, look))


def _calibration(summary: dict[str, Any]) -> Chart:
    best, methods = summary["recommended"], summary["methods"]
    title = f"bl predicts {_off(methods['bl']['calibration_ratio'])}"
    if best != "bl":
        title += f", {best} {_off(methods[best]['calibration_ratio'])}"
    text = "Rate of positives against mean prediction in ten bins for each method, with 95% intervals; on the diagonal both agree."

    def paint(figure: Figure) -> None:
        paint_calibrations(figure, summary, IN_PAGE)

    def height(width: float) -> float:
        lines, columns = grid_of(len(methods), width)
        return min(width / columns, 2.4) * lines + 0.3

    return draw_figure("calibration", title, text, paint, height, wide=True)


def _off(ratio: float | None) -> str:
    if ratio is None:
        return "without positives to compare with"
    if abs(ratio - 1) < 0.005:
        return "the right number"
    return f"{abs(ratio - 1):.0%} too {'many' if ratio > 1 else 'few'}"


def _ages(summary: dict[str, Any], wide: bool) -> Chart:
    best = summary["recommended"]
    rows = summary["methods"][best]["by_days_since_cutoff"]
    known = [row["calibration_ratio"] for row in rows if row["calibration_ratio"] is not None]
    title = "No positives"
    if known:
        title = f"{best} stays between {min(known):.2f} and {max(known):.2f} of the actual number"
    text = "Predicted over actual positives by days since the cut-off, up to: " + ", ".join(
        f"{row['group']:.3g}: {'none' if row['calibration_ratio'] is None else format(row['calibration_ratio'], '.2f')}"
        for row in rows
    )
    return draw("ages", title, text + ".", lambda axes, look: paint_ages(axes, summary, look), 2.9, wide)


def _groups(summary: dict[str, Any]) -> Chart:
    best, group = summary["recommended"], summary["settings"]["group"]
    bl = {row["group"]: row["calibration_ratio"] for row in summary["methods"]["bl"]["by_group"]}
    shown = shown_values(summary)
    pairs = [(row["calibration_ratio"], bl[row["group"]]) for row in shown]
    closer = sum(abs(np.log(mine)) < abs(np.log(other)) for mine, other in pairs if mine and other)
    title = f"{best} is closer than bl for {closer} of {len(shown)} values of {group}"
    if best == "bl":
        title = f"bl, by {group}"
    text = f"Predicted over actual positives for the {len(shown)} most frequent values of {group}."
    tall = max(2.9, 1.0 + 0.24 * len(shown))
    return draw("groups", title, text, lambda axes, look: paint_values(axes, summary, look), lambda _: tall)
