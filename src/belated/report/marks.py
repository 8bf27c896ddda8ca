"""What several pictures draw: bands, bars of uncertainty, names on axes as they were written, and an axis of ratios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from belated.report.palette import Palette
from belated.typing import Floats

# The first ones matter most where not all fit.
_RATIOS = (1.0, 0.5, 2.0, 0.2, 5.0, 0.1, 10.0, 0.8, 1.25, 0.9, 1.1, 0.7, 1.4, 0.6, 1.6, 3.0, 0.3, 4.0, 0.4, 8.0)
_LONGEST = 28  # letters of a name
_MANY = 40  # bands side by side


def levels_of(bands: dict[str, Any]) -> list[str]:
    """The names of bands, the widest first."""
    return sorted(bands, key=lambda name: -float(name.rstrip("%")))


def numbers(values: Sequence[float | None]) -> Floats:
    """With NaN for what is not known."""
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def figures(rows: Sequence[dict[str, Any]], name: str) -> tuple[Floats, Floats, Floats]:
    """Of rows with (value, low, high) each: three arrays."""
    value, low, high = (numbers([row[name][k] for row in rows]) for k in range(3))
    return value, low, high


def lengths(value: Floats, low: Floats, high: Floats) -> Floats:
    """What error bars want; nothing where an end is not known."""
    found: Floats = np.nan_to_num(np.maximum(np.stack([value - low, high - value]), 0.0))
    return found


def whiskers(
    axes: Any, place: Any, bands: Sequence[dict[str, Any]], offset: Any, look: Palette, width: float | None = None
) -> None:
    """Thin for the widest band, thick for the others. They lie on rows, or stand on bars of a ``width``; where there are too many of these, they are as wide."""
    lines = axes.hlines if width is None else axes.vlines
    levels = levels_of(bands[0]) if bands else []
    for k, level in enumerate(levels):
        low, high = (np.array([row[level][end] for row in bands]) + offset for end in (0, 1))
        label = band_label(levels) if k == len(levels) - 1 else None
        if width is not None and len(bands) > _MANY:
            axes.bar(place, high - low, width, bottom=low, color=look.ink, alpha=0.2, linewidth=0, label=label)
        else:
            lines(place, low, high, color=look.ink, linewidth=0.8 if k == 0 else 2.4, label=label, zorder=3)


def band_label(levels: Sequence[str]) -> str:
    """What the legend calls bands, the widest of which is the first."""
    return f"{' and '.join(reversed(levels))} band{'s' if len(levels) > 1 else ''}"


def from_zero(axes: Any) -> None:
    """An upright axis from 0 to a little more than the highest mark."""
    top = axes.dataLim.ymax
    axes.set_ylim(0, 1.07 * top if np.isfinite(top) and top > 0 else 1.0)


def set_amounts(axis: Any) -> None:
    """Round numbers, written out."""
    axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def set_percent(axis: Any) -> None:
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}%"))


def name_rows(axes: Any, names: Sequence[Any]) -> Floats:
    """Names on the upright axis, the first on top; the places of their rows."""
    place = np.arange(len(names), dtype=np.float64)[::-1]
    room = int(7 * axes.bbox.width / axes.figure.dpi)  # letters: a good third of the width
    axes.set_yticks(place, [short(name, min(room, _LONGEST)) for name in names])
    as_written(axes.get_yticklabels())
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.grid(axis="y", visible=False)
    return place


def short(name: Any, letters: int = 20) -> str:
    text = str(name)
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def as_written(texts: Any) -> None:
    """A name with dollar signs is no formula."""
    for text in texts:
        text.set_parse_math(False)


def tilt(axes: Any, labels: Sequence[str]) -> None:
    """Turn names below an axis where they would touch each other."""
    as_written(axes.get_xticklabels())
    each = max((len(line) for label in labels for line in label.splitlines()), default=0)
    if each * len(labels) * 0.085 > axes.bbox.width / axes.figure.dpi:
        for text in axes.get_xticklabels():
            text.set(rotation=35, horizontalalignment="right", rotation_mode="anchor")


def set_ratios(axis: Any, low: float, high: float) -> None:
    """A logarithmic axis around 1, with as many of the usual ratios as fit."""
    low, high = min(max(low, 0.1), 0.9) / 1.04, max(min(high, 10.0), 1.1) * 1.04
    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    box = axis.axes.bbox
    inches = (box.width if axis.axis_name == "x" else box.height) / axis.axes.figure.dpi
    apart = (0.5 if axis.axis_name == "x" else 0.3) * np.log(high / low) / inches
    shown: list[float] = []
    for ratio in _RATIOS:
        if low <= ratio <= high and all(abs(np.log(ratio / other)) >= apart for other in shown):
            shown.append(ratio)
    axis.set_major_locator(FixedLocator(sorted(shown)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))


def span_of(rows: Sequence[dict[str, Any]], name: str, *more: float | None) -> tuple[float, float]:
    """From the lowest to the highest of figures and their intervals; those of which little is known would squeeze all others."""
    known = [row for row in rows if row.get("share_in", 1.0) >= 0.2] or list(rows)
    ends = [end for row in known for end in row[name] if end] + [end for end in more if end]
    return (min(ends), max(ends)) if ends else (0.5, 2.0)
