"""Charts as SVG that takes its colours from the page around it, drawn once for each width that a page may have.

A drawing that is shrunk to a phone shrinks its letters as well, so there is one that is narrow to begin with. A chart has a title that states what it shows, axes with units, and a text
alternative.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from belated.report.palette import IN_PAGE, VARIABLES, Palette

WIDTHS = {"narrow": 3.4, "regular": 6.2, "wide": 12.8}  # inches; the style sheet shows one of them
_FONT = 9.5
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": _FONT,
    "axes.edgecolor": IN_PAGE.muted,
    "axes.labelcolor": IN_PAGE.ink,
    "axes.titlesize": _FONT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": IN_PAGE.grid,
    "grid.linewidth": 0.6,
    "text.color": IN_PAGE.ink,
    "xtick.color": IN_PAGE.muted,
    "ytick.color": IN_PAGE.muted,
    "xtick.labelcolor": IN_PAGE.ink,
    "ytick.labelcolor": IN_PAGE.ink,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}

Paint = Callable[[Any, Palette], None]


@dataclass(frozen=True)
class Chart:
    """``drawings`` by the names of widths."""

    title: str
    alternative: str
    drawings: dict[str, str]

    @property
    def wide(self) -> bool:
        """Whether it takes all columns of a page."""
        return "wide" in self.drawings


def draw(
    name: str,
    title: str,
    alternative: str,
    paint: Paint,
    height: float | Callable[[float], float] = 3.0,
    wide: bool = False,
) -> Chart:
    """A chart that ``paint`` puts on axes. ``height`` in inches may depend on the width."""

    def on_axes(figure: Figure) -> None:
        axes = figure.subplots()
        paint(axes, IN_PAGE)
        add_legend(figure, axes)

    return draw_figure(name, title, alternative, on_axes, height, wide)


def draw_figure(
    name: str,
    title: str,
    alternative: str,
    paint: Callable[[Figure], None],
    height: float | Callable[[float], float] = 3.0,
    wide: bool = False,
) -> Chart:
    """The same where there are several axes."""
    drawings = {}
    for kind, width in WIDTHS.items():
        if kind != "wide" or wide:
            tall = height(width) if callable(height) else height * {"narrow": 0.9, "regular": 1.0, "wide": 1.1}[kind]
            drawings[kind] = _svg(paint, (width, tall), f"{name}-{kind}", kind)
    return Chart(title, alternative, drawings)


def _svg(paint: Callable[[Figure], None], size: tuple[float, float], name: str, kind: str) -> str:
    # The salt goes into names of clip paths: two alike would be one to the browser, and hidden where one of them is.
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=size)
        paint(figure)
        file = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].replace("<svg ", f'<svg class="{kind}" ', 1)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return svg


def add_legend(figure: Figure, axes: Any) -> None:
    """What the artists on some axes are, above everything else, in as many columns as fit."""
    found = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda pair: "band" in pair[1])
    if not found:
        return
    handles, labels = zip(*found, strict=True)
    room = 72 * figure.get_figwidth() - 2 * _FONT
    columns = next((n for n in range(len(labels), 1, -1) if _width(labels, n) <= room), 1)
    how = {"handlelength": 1.4, "handletextpad": 0.5, "columnspacing": 1.2, "borderaxespad": 0.2}
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, **how)


def _width(labels: Sequence[str], columns: int) -> float:
    """About how wide a legend would be, in points; it is filled column by column."""
    tall = -(-len(labels) // columns)
    longest = [max(map(len, labels[k : k + tall])) for k in range(0, len(labels), tall)]
    return sum(0.56 * _FONT * letters + 3.2 * _FONT for letters in longest)
