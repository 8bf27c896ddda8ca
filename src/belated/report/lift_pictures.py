"""A picture of a lift: what each way of reading an experiment says of the effect."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.report.marks import figures, lengths, name_rows, set_ratios
from belated.report.palette import Palette

_WAYS = (
    ("effects", "corrected for delays"),
    ("dropped", "final labels alone"),
    ("as_they_stand", "labels as they stand"),
)


def paint_lift(axes: Any, summary: dict[str, Any], look: Palette, **style: Any) -> None:
    """The ratio of rates for each arm, with an interval for each way to come by it."""
    arms = [row["arm"] for row in summary["effects"]]
    place = name_rows(axes, arms)
    ends: list[float] = []
    for k, (way, label) in enumerate(_WAYS):
        value, low, high = figures(summary[way], "ratio")
        colour = (look.accent, look.good, look.bad)[k]
        how = {"fmt": "osD"[k], "color": colour, "markersize": 6, "elinewidth": 1.4, "label": label}
        axes.errorbar(value, place + 0.2 * (1 - k), xerr=lengths(value, low, high), **{**how, **style})
        ends += [end for end in (*value, *low, *high) if end > 0 and np.isfinite(end)]
    axes.axvline(1.0, color=look.ink, linewidth=1, zorder=1)
    control = summary["settings"]["control"]
    axes.set_xlabel(f"rate / rate of {control}, with {summary['settings']['level']:.0%} intervals", parse_math=False)
    set_ratios(axes.xaxis, min(ends, default=0.5), max(ends, default=2.0))
