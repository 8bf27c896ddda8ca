"""Pictures of a replay: a line for each method over time, with its name at the end."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np

from belated.report.palette import Palette
from belated.report.time_axis import set_time_axis
from belated.typing import Floats

_DASHES = ("-", (0, (1, 1)), (0, (4, 1)), (0, (4, 1, 1, 1)), (0, (7, 2)), (0, (1, 3)), (0, (6, 1, 1, 1, 1, 1)))


def paint_lines(
    axes: Any,
    curves: dict[str, Floats],
    when: Floats,
    best: str | None,
    label: str,
    level: float,
    first: str,
    look: Palette,
) -> None:
    """``curves`` of methods at times ``when``, the first of which is called ``first``; at ``level`` all would be well."""
    last = []
    dashes = cycle(_DASHES)  # what is neither best, oracle nor vanilla is told apart by these
    for name, curve in curves.items():
        colour = look.bad if name == "vanilla" != best else look.of_method(name, best)
        style = next(dashes) if colour == look.muted else "-"
        axes.plot(when, curve, color=colour, linestyle=style, linewidth=1.8 if name == best else 1.0)
        last.append((float(curve[-1]), name, colour))
    axes.axhline(level, color=look.ink, linewidth=0.8, linestyle="--")
    axes.set_ylabel(label)
    axes.margins(x=0.01)
    set_time_axis(axes, "time", first)
    # Single days that are far off would squeeze all the others.
    every = np.concatenate(list(curves.values()))
    low, high = np.quantile(every, [0.02, 0.98])
    room = 0.15 * max(high - low, 1e-9)
    low, high = min(low, level) - room, max(high, level) + room
    axes.set_ylim(low, high)
    places = _apart([value for value, _, _ in sorted(last)], low, high)
    for place, (value, name, colour) in zip(places, sorted(last), strict=True):
        axes.annotate(
            name,
            (when[-1], min(max(value, low), high)),
            (1.04, place),
            textcoords=axes.get_yaxis_transform(),
            color=colour,
            va="center",
            fontsize="medium",
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
