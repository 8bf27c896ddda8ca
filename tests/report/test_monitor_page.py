"""The page of a monitor: text that cannot become markup, gaps, and the page in a real browser where there is one."""

from __future__ import annotations

import copy
from datetime import datetime

import pyarrow.compute as pc
import pytest
from pages import (
    EVIL,
    FORMULA,
    SCREENS,
    check_fills,
    check_pictures,
    check_print,
    check_sorting,
    check_stands_alone,
    opened,
)

from belated.datasets import simulate_scores
from belated.monitoring.monitor import monitor
from belated.monitoring.verdicts import finding
from belated.report.monitor_page import render_monitor

METRICS = ("rate", "log_loss", "brier", "auc", "oe")


def make_summary(evil=False, **asked):
    scores, outcomes = simulate_scores(20_000, rate_change=0.6)
    scores = scores.to_pandas()
    by = "segment"
    if evil:
        by = f"{EVIL}$x^2$"
        scores = scores.rename(columns={"segment": by})
        scores[by] = scores[by].replace({"social": FORMULA})
        scores["version"] = scores["version"].replace({"v1": FORMULA})
    columns = {"key": "id", "time": "scored_at", "score": "p", "outcome": "converted_at", "horizon": "30d"}
    found = monitor(scores, outcomes.to_pandas(), **columns, by=by, version="version", **asked)
    return {**found.summary(), "name": EVIL if evil else "scores", "command": EVIL if evil else "belated monitor"}


@pytest.fixture(scope="module")
def summary():
    return make_summary(fail_on=["calibration=0.9..1.1", "auc=0.5.."])


@pytest.fixture(scope="module")
def file(summary, tmp_path_factory):
    file = tmp_path_factory.mktemp("monitor") / "monitor.html"
    file.write_text(render_monitor(summary))
    return file


def test_it_stands_alone(file):
    check_stands_alone(file.read_text(), 9)


def test_it_opens_with_the_verdict_and_the_limits(summary, no_pictures):
    page = render_monitor(summary)
    assert not summary["ok"]
    assert '<div class="verdict bad">' in page and "Limit broken: calibration=0.9..1.1" in page
    assert page.index("too high") < page.index("<figure")
    kept = copy.deepcopy(summary) | {"ok": True, "failed": []}
    page = render_monitor(kept)
    assert '<div class="verdict good">' in page and "No limit is clearly broken" in page
    kept["settings"]["fail_on"] = []
    page = render_monitor(kept)
    assert '<div class="verdict ">' in page and 'class="status"' not in page


def test_names_and_values_cannot_become_markup(evil):
    page = evil.read_text()
    assert EVIL not in page
    assert "&lt;script&gt;document.title" in page


def emptied(summary, but=()):
    """With None wherever there may be None."""
    other = copy.deepcopy(summary)
    for row in (*other["periods"], *other["segments"]):
        for name in {*METRICS, "calibration", "delay"} & set(row) - set(but):
            row[name] = [None, None, None]
        if "same_age" in row:
            row["same_age"] = None
    for row in other["check"]:
        for name in METRICS:
            row[name] = {"said": [None, None, None], "truth": None, "inside": None}
    return other


@pytest.mark.parametrize("but", [(), ("oe", "calibration"), ("rate",)])
def test_gaps_in_the_data_are_no_problem(summary, but, one_width):
    other = emptied(summary, but)
    assert "<svg" in render_monitor(other)
    other |= {"judged": None, "headline": finding(None), "failed": [], "segments": [], "check": []}
    page = render_monitor(other)
    assert "nothing can be said yet" in page


def test_intervals_may_have_no_end(summary, one_width):
    open_ended = copy.deepcopy(summary)
    for row in open_ended["periods"]:
        row["rate"][2] = row["calibration"][2] = None
    open_ended["judged"]["calibration"] = [1.2, 1.1, None]
    open_ended["headline"] = finding(open_ended["judged"])
    assert "nothing is clear about the predictions" in render_monitor(open_ended)


def test_the_headline_says_what_the_verdict_says(no_pictures):
    scores, outcomes = simulate_scores(20_000)
    early = scores.filter(pc.less(scores["scored_at"], datetime(2024, 3, 18)))
    some = outcomes.filter(pc.is_in(outcomes["id"], early["id"]))
    columns = {"key": "id", "time": "scored_at", "score": "p", "outcome": "converted_at", "horizon": "30d"}
    found = monitor(scores, some, until=datetime(2024, 3, 31), lags=(), **columns)
    page = render_monitor({**found.summary(), "name": "scores", "command": ""})
    assert found.headline.startswith("no positives yet, where") and found.headline in found.verdict
    assert f"scores: {found.headline}" in page


def test_one_version_and_times_that_are_no_dates(summary, one_width):
    other = copy.deepcopy(summary)
    other["settings"] |= {"version": None, "by": None}
    other["segments"] = []
    for k, row in enumerate(other["periods"]):
        row |= {"version": None, "period": f"{604800 * k} s", "final_on": f"{604800 * (k + 5)} s"}
    other["judged"] = other["periods"][-1]
    for row in other["check"]:
        row |= {"version": None, "period": "0 s"}
    page = render_monitor(other)
    assert "time of the score, days" in page and ">version v" not in page


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    file = tmp_path_factory.mktemp("evil") / "monitor.html"
    file.write_text(render_monitor(make_summary(evil=True)))
    return file


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_monitor_in_a_browser(browser, file, width, scheme):
    with opened(browser, file, width, scheme) as page:
        check_pictures(page, 9)
        check_sorting(page, ((1, str), (3, float), (7, float)), "segments")
        check_sorting(page, ((1, str), (3, float), (8, float)), "periods")
        if width == 1440:
            check_fills(page)


def test_evil_names_in_a_browser(browser, evil):
    with opened(browser, evil, 375, "light") as page:
        check_pictures(page, 9)


def test_the_monitor_on_paper(browser, file):
    check_print(browser, file, 9)
