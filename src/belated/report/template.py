"""Templates of pages, filled: one base, with a style and a script, and how numbers are written."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from belated.report.drawing import Chart
from belated.report.time_axis import day_of


def fill(name: str, summary: dict[str, Any], charts: dict[str, Chart], **more: Any) -> str:
    """A template of this room, filled with a summary and its charts."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("belated.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "percent": _percent,
        "number": _number,
        "interval": _interval,
        "instant": _instant,
        "duration": _duration,
        "amount": amount,
        "count": lambda value: f"{value:,}",
        "svg": Markup,
        "dates": _dates,
        "day": day_of,
    }
    here = files("belated.report")
    parts = {part: Markup((here / f"{part}").read_text()) for part in ("style.css", "sorting.js")}
    return environment.get_template(name).render(
        s=summary, charts=charts, style=parts["style.css"], sorting=parts["sorting.js"], **more
    )


def by_loss(summary: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The methods of a summary, the best first."""
    return sorted(summary["methods"].items(), key=lambda item: item[1]["log_loss"])


def amount(value: float | None) -> str:
    """A count or a sum of money, of which nobody wants fractions unless it is small.

    >>> amount(1234.5), amount(7.25), amount(0.0), amount(None)
    ('1,234', '7.2', '0', '–')
    """
    if value is None:
        return "\u2013"
    return f"{value:,.1f}" if 0 < abs(value) < 10 and value != round(value) else f"{value:,.0f}".replace("-", "\u2212")


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
    return re.sub(r"( 00:00:00)?(\.\d+)?(\+00:00)?$", "", text)


def _dates(text: Any) -> Any:
    """Text whose dates are not broken in two."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"\d{4}-\d\d-\d\d", r'<span class="date">\g<0></span>', str(escape(text))))


def _interval(values: list[float | None] | None, form: str) -> str:
    if values is None or all(value is None for value in values):
        return ""
    low, high = ("?" if value is None else format(value, form) for value in values)
    return f"{low} to\u00a0{high}".replace("-", "\u2212")
