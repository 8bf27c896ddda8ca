"""The page of a diagnosis: how late labels are, before anything is fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.report.delay_pictures import paint_delay_curve, paint_maturity
from belated.report.drawing import Chart, draw
from belated.report.template import fill


def render_diagnosis(summary: dict[str, Any]) -> str:
    """A self-contained page of HTML for the summary of a diagnosis, with its ``name`` and ``command``."""
    return fill("diagnosis.html", summary, diagnosis_charts(summary), lead=diagnosis_in_brief(summary))


def diagnosis_in_brief(summary: dict[str, Any]) -> str:
    """One sentence: how much is missing today."""
    days = summary["days"]
    rows, rate, seen = (np.array([day[key] for day in days]) for key in ("rows", "rate_so_far", "positives_seen"))
    young = seen < 0.9
    if not young.any():
        return "Labels are nearly complete: every day of arrival has at least nine in ten of its positives."
    missing = 1.0 - float(np.average(seen[young], weights=rows[young]))
    so_far = float(np.average(rate[young], weights=rows[young]))
    return f"The newest {int(young.sum())} days show {so_far:.1%} positive, and about {missing:.0%} of their positives are still to come."


def diagnosis_charts(diagnosis: dict[str, Any]) -> dict[str, Chart]:
    return {"delays": _delays(diagnosis), "maturity": _maturity(diagnosis)}


def _delays(diagnosis: dict[str, Any]) -> Chart:
    curve, window = diagnosis["curve"], diagnosis["window"]
    ages, share = (np.append(0.0, curve[key]) for key in ("ages", "share"))
    half, ninety = (float(ages[min(int(np.searchsorted(share, s)), len(ages) - 1)]) for s in (0.5, 0.9))
    title = f"Half of the positives come within {half:.2g} days, nine in ten within {ninety:.2g}"
    after = diagnosis["after_window"]["share"]
    text = f"Share of positives seen by age, with a 95% band. At the window of {window:.3g} days, {after:.0%} are still to come."
    return draw("delays", title, text, lambda axes, look: paint_delay_curve(axes, diagnosis, look))


def _maturity(diagnosis: dict[str, Any]) -> Chart:
    rows, seen = (np.array([d[key] for d in diagnosis["days"]]) for key in ("rows", "positives_seen"))
    young = seen < 0.9
    title = "Every day of arrival has at least nine in ten of its positives by now"
    if young.any():
        missing = 1.0 - float(np.average(seen[young], weights=rows[young]))
        title = f"The last {int(young.sum())} days lack {missing:.0%} of their positives"
    text = "Rate by time of arrival so far, and as expected in the end."
    return draw("maturity", title, text, lambda axes, look: paint_maturity(axes, diagnosis, look))
