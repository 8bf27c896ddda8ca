"""The report: text that cannot become markup, and the page in a real browser where there is one."""

from __future__ import annotations

import copy

import pytest
from pages import check_sorting, opened

from belated import EventLog, backtest, diagnose
from belated.datasets import simulate_campaigns
from belated.report.page import render

EVIL = "<script>document.title='pwned'</script>"


def make_summary(evil=False):
    frame = simulate_campaigns(3000).to_pandas().drop(columns="hour")
    group = "campaign"
    if evil:
        group = f"{EVIL}$x^2$"
        frame = frame.rename(columns={"campaign": group})
        frame[group] = frame[group].where(frame[group] != "campaign 01", f"$\\frac{EVIL}")
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


def test_page_stands_alone(summary):
    page = render(summary)
    assert len(page.encode()) < 3_000_000
    for word in ("src=", "@import", "url(http", "<link"):
        assert word not in page
    assert page.count("<figure") == page.count('role="img"') == 6
    assert summary["recommendation"]["why"][:40] in page
    assert "var(--accent)" in page and "#1060d3" not in page


def test_names_and_values_cannot_become_markup():
    page = render(make_summary(evil=True))
    assert EVIL not in page
    assert "&lt;script&gt;document.title" in page


@pytest.mark.parametrize("best", ["bl", "tw"])
def test_the_page_follows_the_verdict(summary, best):
    other = copy.deepcopy(summary)
    other["recommended"] = best
    page = render(other)
    assert ("no correction is better" in page) == (best == "bl")


def test_gaps_in_the_data_are_no_problem(summary):
    other = copy.deepcopy(summary)
    for row in other["methods"].values():
        row |= {"pr_auc": None, "roc_auc": None, "gap_closed": None}
        row["intervals"]["gap_closed"] = None
        row["by_days_since_cutoff"][0]["calibration_ratio"] = None
    other["failed"] = {"nndf": "at 2024-01-01: no"}
    assert "could not be fitted" in render(other)


@pytest.mark.parametrize("evil", [False, True])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (375, "light"), (320, "dark")])
def test_in_a_browser(browser, summary, tmp_path, width, scheme, evil):
    file = tmp_path / "report.html"
    file.write_text(render(make_summary(evil=True) if evil else summary))
    with opened(browser, file, width, scheme) as page:
        assert page.locator("figure svg").count() == 6
        check_sorting(page, ((1, str), (2, float), (5, float)))
