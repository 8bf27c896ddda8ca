"""The page of a forecast: text that cannot become markup, gaps, and the page in a real browser where there is one."""

from __future__ import annotations

import copy

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

from belated import EventLog, forecast
from belated.datasets import simulate_campaigns
from belated.report.forecast_page import render_forecast


def make_summary(evil=False, **asked):
    frame = simulate_campaigns(12000).to_pandas()
    group = "campaign"
    if evil:
        group = f"{EVIL}$x^2$"
        frame = frame.rename(columns={"campaign": group, "pages_viewed": EVIL})
        frame[group] = frame[group].where(frame[group] != "campaign 01", FORMULA)
        asked["value"] = EVIL
    log = EventLog.from_frame(frame, arrival="click_time", outcome="conversion_time", until="2024-03-01")
    found = forecast(log, horizon="10d", method="chain-ladder", group=group, cutoffs=6, **asked)
    summary = copy.deepcopy(found.summary())
    summary["settings"]["method"] = "dfm-piecewise"  # with the chain ladder beside it
    return {**summary, "name": EVIL if evil else "clicks", "command": EVIL if evil else "belated forecast"}


@pytest.fixture(scope="module")
def summary():
    return make_summary(arrivals="repeat")


@pytest.fixture(scope="module")
def file(summary, tmp_path_factory):
    file = tmp_path_factory.mktemp("forecast") / "forecast.html"
    many = [row | {"name": f"{row['name']}, part {k}"} for k in range(4) for row in summary["by_group"]]
    file.write_text(render_forecast(summary | {"by_group": many}))  # more than fit on a screen
    return file


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    file = tmp_path_factory.mktemp("evil") / "forecast.html"
    file.write_text(render_forecast(make_summary(evil=True, arrivals="repeat")))
    return file


def test_it_opens_with_what_comes_and_when(file, summary):
    page = file.read_text()
    check_stands_alone(page, 5)
    assert summary["verdict"] in page
    assert f"clicks: {summary['total']['to_come']:,.0f} more to come by" in page
    assert page.index(summary["verdict"]) < page.index("<figure")


def test_names_and_values_cannot_become_markup(evil):
    page = evil.read_text()
    assert EVIL not in page
    assert "&lt;script&gt;document.title" in page


@pytest.mark.parametrize("levels", [(0.9,), (0.95, 0.8, 0.5)])
def test_any_levels_will_do(levels, one_width):
    page = render_forecast(make_summary(levels=levels))
    assert f"Small print: {max(levels):.0%} bands" in page


def test_gaps_in_the_data_are_no_problem(summary, one_width):
    other = copy.deepcopy(make_summary())
    other |= {"past": [], "errors": {}, "by_group": [], "notes": [EVIL]}
    other["total"] |= {"half_by": None, "came": None, "to_come": 0.0}
    other["settings"] |= {"model": None, "group": None}
    for row in (*other["by_outcome"], *other["by_arrival"]):
        for key, value in row.items():
            if isinstance(value, float):
                row[key] = 0.0
    page = render_forecast(other)
    assert "Nothing more is expected" in page and page.count("<figure") == 3
    came = copy.deepcopy(summary)
    came["total"]["came"] = 12.0
    assert "In fact 12 came" in render_forecast(came)
    alone = copy.deepcopy(summary)
    alone["settings"]["method"] = "chain-ladder"
    assert ">chain ladder<" not in render_forecast(alone)


def test_what_has_come_so_far_is_drawn_where_it_is_known(summary, one_width):
    other = copy.deepcopy(summary)
    other["history"] = [{"day": "2024-02-25", "cumulated": 100.0}, {"day": "2024-02-27", "cumulated": 200.0}]
    assert render_forecast(other) != render_forecast(summary)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_forecast_in_a_browser(browser, file, width, scheme):
    with opened(browser, file, width, scheme) as page:
        check_pictures(page, 5)
        check_sorting(page, ((1, str), (2, float), (4, float)), "groups")
        box = page.locator(".scroll.long").first
        assert box.evaluate("one => one.scrollHeight > one.clientHeight")
        box.evaluate("one => one.scrollTop = 500")
        tops = [box.evaluate(f"one => one{what}.getBoundingClientRect().top") for what in ("", ".querySelector('th')")]
        assert abs(tops[0] - tops[1]) < 2  # the headings stay in sight
        if width == 1440:
            check_fills(page)


def test_evil_names_in_a_browser(browser, evil):
    with opened(browser, evil, 375, "light") as page:
        check_pictures(page, 5)


def test_the_forecast_on_paper(browser, file):
    check_print(browser, file, 5)
