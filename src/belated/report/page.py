"""The page: a template filled with a summary and its charts."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from belated.report.charts import Chart, charts


def render(summary: dict[str, Any]) -> str:
    """A self-contained page of HTML for a summary, as ``Backtest.summary()`` and the CLI make it."""
    return fill("page.html", summary, charts(summary), d=summary["diagnosis"])


def fill(name: str, summary: dict[str, Any], charts: dict[str, Chart], **more: Any) -> str:
    """A template of this room filled with a summary, its charts, and its methods, the best first."""
    from jinja2 import Environment
    from markupsafe import Markup

    here = files("belated.report")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"percent": _percent, "number": _number, "interval": _interval, "instant": _instant}
    environment.filters["duration"] = _duration
    template = environment.from_string((here / name).read_text())
    drawn = {key: (chart, Markup(chart.svg)) for key, chart in charts.items()}
    methods = sorted(summary["methods"].items(), key=lambda item: item[1]["log_loss"])
    parts = {part: Markup((here / part).read_text()) for part in ("style.css", "sorting.js")}
    return template.render(
        s=summary, charts=drawn, methods=methods, style=parts["style.css"], sorting=parts["sorting.js"], **more
    )


def _percent(value: float | None, digits: int = 0) -> str:
    return "\u2013" if value is None else f"{value:.{digits}%}".replace("-", "\u2212")


def _number(value: float | None, digits: int = 3) -> str:
    return "\u2013" if value is None else f"{value:.{digits}f}"


def _duration(days: float) -> str:
    """In words: 1 hour, 30 days."""
    for size, unit in ((1.0, "day"), (24.0, "hour"), (1440.0, "minute")):
        value = days * size
        if value >= 1 and abs(value - round(value)) < 1e-6:
            return f"{round(value)} {unit}{'s' if round(value) != 1 else ''}"
    return f"{days:.3g} days"


def _instant(text: str) -> str:
    """To the second, and only the day where that is all there is to say."""
    return re.sub(r"( 00:00:00)?(\.\d+)?\+00:00$", "", text)


def _interval(values: list[float] | None, form: str) -> str:
    return "" if values is None else f"{format(values[0], form)} to {format(values[1], form)}".replace("-", "\u2212")
