"""Pictures say what the numbers say."""

from __future__ import annotations

import re
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from belated import EventLog, forecast
from belated.datasets import simulate_clicks, simulate_scores
from belated.monitoring.monitor import monitor
from belated.report.drawing import draw
from belated.report.forecast_pictures import paint_by_arrival, paint_by_group, paint_by_outcome, paint_cumulated
from belated.report.marks import set_ratios, short
from belated.report.monitor_pictures import paint_metric, paint_share_in
from belated.report.palette import IN_PAGE, ON_WHITE, VARIABLES
from belated.report.time_axis import days_of


@pytest.fixture(scope="module")
def log():
    clicks = simulate_clicks(40, 300)
    return EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time")


def painted(paint, *more):
    axes = Figure().subplots()
    paint(axes, *more, ON_WHITE)
    return axes


def labelled(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def stamped(step):
    """The same log, stamped by the hour or the day."""
    frame = simulate_clicks(40, 300).to_pandas()
    for name in ("click_time", "conversion_time"):
        frame[name] = frame[name].dt.floor(step)
    return EventLog.from_frame(frame, arrival="click_time", outcome="conversion_time")


@pytest.mark.parametrize("step", ["us", "h", "D"])
@pytest.mark.parametrize(("horizon", "unit"), [(3, "hour"), (10, "day"), (10, "week")])
def test_a_fan_ends_when_the_horizon_does(step, horizon, unit):
    """Whatever the grid of the log, and whatever a step is called."""
    ahead = "140d" if unit == "week" else None
    log = stamped(step)
    found = forecast(
        log, horizon=f"{horizon}d", ahead=ahead, as_of="2024-02-05", method="chain-ladder", cutoffs=0
    ).summary()
    assert found["settings"]["unit"] == ("day" if (unit, step) == ("hour", "D") else unit)
    line = labelled(painted(paint_cumulated, found), "of what has arrived")
    now = days_of(["2024-02-05"])[0]
    assert line.get_xdata()[0] == now
    assert line.get_xdata()[-1] == pytest.approx(now + (140 if ahead else horizon), abs=1e-9)
    assert (np.diff(line.get_xdata()) > 0).all()
    np.testing.assert_allclose(line.get_ydata()[[0, -1]], [found["total"]["so_far"], found["total"]["final"]])


def test_bars_add_up(log):
    found = forecast(
        log, horizon="10d", as_of="2024-02-05", method="chain-ladder", cutoffs=0, group="device", arrivals="repeat"
    ).summary()
    total = found["total"]
    heights = {
        bars.get_label(): sum(bar.get_height() for bar in bars)
        for paint in (paint_by_outcome, paint_by_arrival)
        for bars in painted(paint, found).containers
    }
    assert heights["of what has arrived"] == pytest.approx(total["to_come"])
    both = heights["of what has arrived"] + heights["of what arrives next"]
    assert both == pytest.approx(total["all_to_come"])
    assert heights["so far"] == pytest.approx(total["so_far"])
    assert heights["still to come"] == pytest.approx(total["to_come"])
    assert labelled(painted(paint_by_group, found), "in the end").get_xdata().sum() == pytest.approx(total["final"])


@pytest.fixture(scope="module")
def monitored():
    scores, outcomes = simulate_scores(20_000)
    columns = {"key": "id", "time": "scored_at", "score": "p", "outcome": "converted_at", "horizon": "30d"}
    return monitor(scores, outcomes, **columns, version="version", lags=()).summary()


def test_versions_are_never_mixed_in_one_line(monitored):
    """Each point of a line is of its version, and no two versions lie on each other in a period they share."""
    axes = painted(lambda axes, look: paint_metric(axes, monitored, "calibration", look))
    lines = [line for line in axes.lines if line.get_linestyle() == "-" and len(line.get_xdata()) > 2]
    versions = ["v1", "v2"]
    assert len(lines) == len(versions)
    for line, version in zip(lines, versions, strict=True):
        mine = [row["calibration"][0] for row in monitored["periods"] if row["version"] == version]
        np.testing.assert_allclose(line.get_ydata(), mine)
    places = np.concatenate([line.get_xdata() for line in lines])
    assert len(np.unique(places)) == len(monitored["periods"])
    assert lines[0].get_color() != lines[1].get_color()


def test_hollow_means_not_final(monitored):
    axes = painted(lambda axes, look: paint_metric(axes, monitored, "rate", look))
    dots = [line for line in axes.lines if line.get_linestyle() == "None" and line.get_marker() in "os"]
    hollow = sum(len(line.get_xdata()) for line in dots if line.get_markerfacecolor() == ON_WHITE.paper)
    full = sum(len(line.get_xdata()) for line in dots if line.get_markerfacecolor() != ON_WHITE.paper)
    final = sum(row["final"] for row in monitored["periods"])
    assert (hollow, full) == (len(monitored["periods"]) - final, final) and final > 0


def test_the_mean_prediction_of_final_periods_is_the_mean_score(monitored):
    axes = painted(lambda axes, look: paint_metric(axes, monitored, "rate", look))
    scores = simulate_scores(20_000)[0].to_pandas()
    week = scores.scored_at.dt.to_period("W-SUN").dt.start_time.astype(str)
    means = scores.groupby([scores.version, week]).p.mean()
    drawn = labelled(axes, "mean prediction").get_ydata()
    final = np.array([row["final"] for row in monitored["periods"]])
    expected = [means[row["version"], row["period"]] for row in monitored["periods"]]
    np.testing.assert_allclose(drawn[final], np.array(expected)[final], rtol=1e-9)
    np.testing.assert_allclose(drawn, expected, rtol=0.03)


def test_bars_of_versions_that_share_a_period_stand_side_by_side(monitored):
    bars = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in painted(paint_share_in, monitored).patches)
    assert all(left[1] < right[0] for left, right in pairwise(bars))


@pytest.mark.parametrize(("low", "high"), [(0.99, 1.01), (0.5, 2.2), (1e-6, 1e6)])
@pytest.mark.parametrize("width", [2, 12])
def test_an_axis_of_ratios_always_names_1(low, high, width):
    axes = Figure(figsize=(width, 3)).subplots()
    set_ratios(axes.xaxis, low, high)
    ticks = axes.get_xticks()
    assert 1.0 in ticks and 1 <= len(ticks) <= 4 * width
    assert axes.get_xlim()[0] < 1 < axes.get_xlim()[1]


def test_names_are_cut_at_the_end():
    assert short("a" * 20) == "a" * 20 and short("a" * 21) == "a" * 19 + "…"


def test_each_drawing_has_names_of_its_own():
    """Clip paths or marks with one name would be one to the browser, hidden where the drawing that is not shown has it."""

    def paint(axes, look):
        axes.plot([0, 2], [0, 2], color=look.accent, marker="o")
        axes.set_xlim(0, 1)

    chart = draw("a", "A title", "Words.", paint, wide=True)
    names = [set(re.findall(r'<(?:clipPath|path) id="(\w+)"', svg)) for svg in chart.drawings.values()]
    assert len(names) == 3 and all(names) and len(set.union(*names)) == sum(map(len, names))
    assert draw("a", "A title", "Words.", paint, wide=True) == chart  # and the same every time


def test_placeholders_are_told_apart():
    assert len(VARIABLES) == 7 + len(IN_PAGE.series) - 1
    assert all(matplotlib.colors.is_color_like(colour) for colour in VARIABLES)
