"""Pictures of how late labels are: when positives come, and which days of arrival lack some."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.report.marks import from_zero, set_percent
from belated.report.palette import Palette
from belated.report.time_axis import days_of, is_dated, set_time_axis
from belated.typing import Floats

_MOST = 100  # days that are shown one by one


def paint_delay_curve(axes: Any, diagnosis: dict[str, Any], look: Palette, **style: Any) -> None:
    """The share of positives seen by each age."""
    curve, window = diagnosis["curve"], diagnosis["window"]
    ages = np.append(0.0, curve["ages"])
    share, low, high = (np.append(0.0, curve[key]) for key in ("share", "share_low", "share_high"))
    axes.fill_between(ages, low, high, step="post", color=look.accent, alpha=0.2, linewidth=0, label="95% band")
    axes.step(ages, share, **{"where": "post", "color": look.accent, "label": "share of positives seen", **style})
    axes.axvline(window, color=look.muted, linestyle="--", linewidth=1, label=f"window, {window:.3g} days")
    axes.set(xlabel="age, days", ylabel="share of positives seen", ylim=(0, 1.02), xlim=(0, None))
    set_percent(axes.yaxis)


def paint_seen(axes: Any, delays: dict[str, Any], look: Palette) -> None:
    """The same from the delays that a monitor goes by."""
    axes.plot(delays["ages"], delays["seen"], color=look.accent)
    axes.set(xlabel="age, days", ylabel="share of positives seen", ylim=(0, 1.02), xlim=(0, None))
    set_percent(axes.yaxis)


def paint_maturity(axes: Any, diagnosis: dict[str, Any], look: Palette, **style: Any) -> None:
    """The rate by day of arrival so far, and as expected in the end."""
    days = diagnosis["days"]
    rows, so_far, seen = (np.array([d[key] for d in days]) for key in ("rows", "rate_so_far", "positives_seen"))
    # In a long log, single days would be noise: show weeks or longer.
    together = 1 if len(days) <= _MOST else 7 * -(-len(days) // (7 * _MOST))
    first = np.arange(0, len(days), together)
    rows_of = np.add.reduceat(rows, first)
    so_far, seen = (np.add.reduceat(rows * values, first) / rows_of for values in (so_far, seen))
    expected: Floats = np.where(seen > 0.05, so_far / np.maximum(seen, 1e-300), np.nan)
    when = days_of([days[k]["day"] for k in first])
    axes.plot(when, so_far, color=look.bad, linewidth=1.4, label="positive so far")
    axes.plot(when, expected, **{"color": look.accent, "linewidth": 1.4, "label": "expected in the end", **style})
    axes.set_ylabel("share of rows")
    from_zero(axes)
    set_percent(axes.yaxis)
    unit = "day" if together == 1 else f"{together} days"
    set_time_axis(axes, f"time of arrival, by {unit}", days[0]["day"])
    if not is_dated(days[0]["day"]):
        axes.set_xlim(when[0], None)
