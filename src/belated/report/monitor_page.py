"""The page of a monitor: whether scores are right, how sure that is, where they are not, and whether the monitor itself can be believed."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from belated.report.delay_pictures import paint_seen
from belated.report.drawing import Chart, add_legend, draw, draw_figure
from belated.report.monitor_pictures import (
    CLEAR,
    NAMES,
    checked_periods,
    paint_check,
    paint_metric,
    paint_segments,
    paint_share_in,
    shown_segments,
)
from belated.report.palette import IN_PAGE
from belated.report.template import fill
from belated.report.time_axis import day_of

_QUALITY = ("log_loss", "auc", "brier")


def render_monitor(summary: dict[str, Any]) -> str:
    """A self-contained page of HTML for the summary of a monitor, with its ``name`` and ``command``."""
    return fill("monitor.html", summary, _charts(summary), clear=CLEAR, digits=_digits(summary))


def _digits(summary: dict[str, Any]) -> int:
    """How many digits of a percentage tell rates apart; more where rates are low."""
    rows = sum(row["rows"] for row in summary["periods"])
    rate = sum(row["positive"] for row in summary["periods"]) / max(rows, 1)
    return 1 if rate >= 0.02 or not rate else 2 if rate >= 0.002 else 4


def _charts(summary: dict[str, Any]) -> dict[str, Chart]:
    periods, judged = summary["periods"], summary["judged"]
    found: dict[str, Chart] = {}
    if periods:
        found["calibration"] = _by_period(
            summary, "calibration", _said_of(judged, "calibration", ".2f", "Predicted over actual"), 3.3, wide=True
        )
        segments = shown_segments(summary)
        found["rate"] = _by_period(
            summary, "rate", _said_of(judged, "rate", f".{_digits(summary)}%", "The final rate"), wide=not segments
        )
        if segments:
            found["segments"] = _segments(summary)
        found["quality"] = _quality(summary)
        found["share_in"] = _share_in(summary)
        found["seen"] = _seen(summary)
        found["delay"] = _delay(summary)
        if any(row["same_age"] is not None for row in periods):
            found["same_age"] = _same_age(summary)
    if any(row["oe"]["said"][0] is not None for row in summary["check"]):
        found["check"] = _check(summary)
    return found


def _said_of(judged: dict[str, Any] | None, name: str, form: str, what: str) -> str:
    if judged is None or judged[name][0] is None:
        return f"{what} by period"
    value, *ends = judged[name]
    between = f" ({format(ends[0], form)} to {format(ends[1], form)})" if None not in ends else ""
    return f"{what} is {format(value, form)}{between} in the period from {judged['period']}"


def _by_period(summary: dict[str, Any], name: str, title: str, height: float = 3.0, wide: bool = False) -> Chart:
    texts = {
        "calibration": "Predicted over actual positives by period, with 95% intervals; 1 is right, above 1 predictions are too high.",
        "rate": "Rate so far (crosses), expected final rate with 95% intervals, and mean prediction (bars) by period.",
        "delay": "How many times as long as usual positives of a period take, with 95% intervals; above 1 they come later.",
        "same_age": "Rate so far over that of earlier periods when they were as old, with 95% intervals; it assumes nothing about delays.",
    }
    text = texts[name] + (
        " Hollow: labels are still to come." if any(not p["final"] for p in summary["periods"]) else ""
    )
    return draw(name, title, text, lambda axes, look: paint_metric(axes, summary, name, look), height, wide)


def _segments(summary: dict[str, Any]) -> Chart:
    rows, by = summary["segments"], summary["settings"]["by"]
    off = [row for row in rows if row["adjusted_p"] < CLEAR]
    title = f"{len(off)} of {len(rows)} values of {by} {'is' if len(off) == 1 else 'are'} clearly off"
    shown = len(shown_segments(summary))
    text = f"Predicted over actual positives by {by}, of rows that are not final, with 95% intervals; the most striking on top."
    if shown < len(rows):
        text += f" {shown} of {len(rows)}."
    return draw(
        "segments",
        title,
        text,
        lambda axes, look: paint_segments(axes, summary, look),
        lambda _: max(2.9, 1.0 + 0.24 * shown),
    )


def _quality(summary: dict[str, Any]) -> Chart:
    def paint(figure: Figure) -> None:
        columns = 3 if figure.get_figwidth() > 8 else 1
        grid = figure.subplots(3 // columns, columns, squeeze=False)
        for axes, name in zip(grid.ravel(), _QUALITY, strict=True):
            paint_metric(axes, summary, name, IN_PAGE)
            if columns == 1 and name != _QUALITY[-1]:
                axes.set_xlabel("")
            axes.set_title(NAMES[name], loc="left")
            axes.set_ylabel("")
        add_legend(figure, grid[0, 0])

    judged = summary["judged"]
    parts = [f"{NAMES[n]} {judged[n][0]:.3f}" for n in _QUALITY if judged is not None and judged[n][0] is not None]
    title = (
        f"Of the period from {judged['period']}: {', '.join(parts)}"
        if judged and parts
        else "Log loss, AUC and Brier score"
    )
    text = "Log loss and Brier score (lower is better) and area under the ROC curve (higher is better) by period, with 95% intervals."
    return draw_figure("quality", title, text, paint, lambda width: 3.2 if width > 8 else 5.6, wide=True)


def _share_in(summary: dict[str, Any]) -> Chart:
    waiting = [row for row in summary["periods"] if not row["final"]]
    last = waiting[-1] if waiting else None
    title = f"{len(waiting)} of {len(summary['periods'])} periods wait for labels" if waiting else "All labels are in"
    text = "Share of labels that are in, by period."
    if last is not None:
        text += f" The last period's will be final on {day_of(last['final_on'])}."
    return draw("share-in", title, text, lambda axes, look: paint_share_in(axes, summary, look))


def _seen(summary: dict[str, Any]) -> Chart:
    delays = summary["delays"]
    title = f"Half of the positives come within {delays['median']:.2g} days, nine in ten within {delays['ninety']:.2g}"
    text = "Share of positives seen by age, learned from all periods together."
    return draw("seen", title, text, lambda axes, look: paint_seen(axes, delays, look))


def _delay(summary: dict[str, Any]) -> Chart:
    changed = [row for row in summary["periods"] if row["delays"] != "unchanged"]
    title = "Delays are the same in all periods, as far as one can tell"
    if changed:
        title = f"Delays clearly differ in {len(changed)} of {len(summary['periods'])} periods"
    lone = all(row["same_age"] is None for row in summary["periods"])
    return _by_period(summary, "delay", title, wide=lone)


def _same_age(summary: dict[str, Any]) -> Chart:
    known = [row["same_age"]["ratio"] for row in summary["periods"] if row["same_age"] is not None]
    clear = sum(low is not None and high is not None and (low > 1 or high < 1) for _, low, high in known)
    title = f"At the same age, {clear} of {len(known)} periods {'differs' if clear == 1 else 'differ'} clearly from those before"
    return _by_period(summary, "same_age", title)


def _check(summary: dict[str, Any]) -> Chart:
    inside = [row["oe"]["inside"] for row in summary["check"] if row["oe"]["inside"] is not None]
    title = f"Of {len(inside)} judgements of the past, the interval held the truth in {sum(inside)}"
    text = "Observed over expected of periods that are final now: what the monitor would have said some days after their end, with 95% intervals, and the truth."
    tall = 1.1 + 0.5 * len(checked_periods(summary))
    return draw("check", title, text, lambda axes, look: paint_check(axes, summary, look), lambda _: tall, wide=True)
