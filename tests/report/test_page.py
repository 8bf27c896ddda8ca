"""The report: text that cannot become markup, and the page in a real browser where there is one."""

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

from belated import EventLog, backtest, diagnose
from belated.datasets import simulate_campaigns
from belated.report.page import render


def make_summary(evil=False):
    frame = simulate_campaigns(3000).to_pandas().drop(columns="hour")
    group = "campaign"
    if evil:
        group = f"{EVIL}$x^2$"
        frame = frame.rename(columns={"campaign": group})
        frame[group] = frame[group].where(frame[group] != "campaign 01", FORMULA)
    log = EventLog.from_frame(frame, arrival="click_time", outcome="conversion_time", until="2024-03-01")
    methods = ["tw", "fsiw", "rescale", "pu", "dfm-piecewise"]
    found = backtest(log, horizon="10d", methods=methods, cutoffs=3, l2=[1e-3], group=group, n_jobs=1, progress=False)
    diagnosis = diagnose(log, horizon="10d", group=group).summary()
    return {
        **found.summary(),
        "name": EVIL if evil else "clicks",
        "command": "belated compare",
        "train": None,
        "diagnosis": diagnosis,
    }


@pytest.fixture(scope="module")
def summary():
    return make_summary()


@pytest.fixture(scope="module")
def file(summary, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_text(render(summary))
    return file


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    file = tmp_path_factory.mktemp("evil") / "report.html"
    file.write_text(render(make_summary(evil=True)))
    return file


def test_page_stands_alone(file, summary):
    page = file.read_text()
    check_stands_alone(page, 7)
    assert summary["recommendation"]["why"][:40] in page


def test_names_and_values_cannot_become_markup(evil):
    page = evil.read_text()
    assert EVIL not in page
    assert "&lt;script&gt;document.title" in page


def test_it_opens_with_what_labels_as_they_stand_would_have_done(summary, no_pictures):
    other = copy.deepcopy(summary)
    best = other["recommended"] = "tw"
    other["methods"]["bl"]["calibration_ratio"], other["methods"][best]["calibration_ratio"] = 0.8, 1.001
    page = render(other)
    lead = "Trained on labels as they stand, a model predicted 20% too few; with tw, the right number."
    assert lead in page and page.index(lead) < page.index(other["recommendation"]["why"][:40])
    other["recommended"] = "bl"
    assert "No correction is better on average than labels as they stand, which predicted 20% too few." in render(other)


@pytest.mark.parametrize("best", ["bl", "tw"])
def test_the_page_follows_the_verdict(summary, best, one_width):
    other = copy.deepcopy(summary)
    other["recommended"] = best
    page = render(other)
    assert ("no correction is better" in page) == (best == "bl")


def test_gaps_in_the_data_are_no_problem(summary, one_width):
    other = copy.deepcopy(summary)
    for row in other["methods"].values():
        row |= {"pr_auc": None, "roc_auc": None, "gap_closed": None}
        row["intervals"]["gap_closed"] = None
        row["by_days_since_cutoff"][0]["calibration_ratio"] = None
    other["failed"] = {"nndf": "at 2024-01-01: no"}
    assert "could not be fitted" in render(other)


def test_without_groups_no_half_of_the_page_is_empty(summary, no_pictures):
    other = copy.deepcopy(summary)
    other["settings"]["group"] = None
    page = render(other)
    assert page.count("<figure") == 6 and page.count('class="wide"') == 2


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_in_a_browser(browser, file, width, scheme):
    with opened(browser, file, width, scheme) as page:
        check_pictures(page, 7)
        check_sorting(page, ((1, str), (2, float), (5, float)))
        if width == 1440:
            check_fills(page)


@pytest.mark.parametrize(("width", "scheme"), [(1440, "dark"), (375, "light"), (320, "dark")])
def test_evil_names_in_a_browser(browser, evil, width, scheme):
    with opened(browser, evil, width, scheme) as page:
        check_pictures(page, 7, smallest=9.0)
        check_sorting(page, ((1, str), (2, float), (5, float)))


def test_on_paper(browser, file):
    check_print(browser, file, 7)
