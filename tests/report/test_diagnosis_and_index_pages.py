"""The page of a diagnosis, and the first page of a folder of pages: in words, and in a real browser where there is one."""

from __future__ import annotations

import pytest
from pages import EVIL, SCREENS, check_pictures, check_print, check_stands_alone, opened

from belated import EventLog, diagnose
from belated.datasets import simulate_campaigns
from belated.report.diagnosis_page import diagnosis_in_brief, render_diagnosis
from belated.report.index_page import render_index


@pytest.fixture(scope="module")
def summary():
    log = EventLog.from_frame(simulate_campaigns(6000), arrival="click_time", outcome="conversion_time")
    return {**diagnose(log, horizon="10d").summary(), "name": EVIL, "command": EVIL}


def index(**changed):
    page = {"name": "a-monitor", "command": "monitor", "source": "a", "code": 0, "sentence": EVIL}
    page |= {"warnings": [EVIL], "page_code": changed.get("code", 0), "has_limits": True}
    page |= {"ran": "2024-03-01T00:00:00+00:00", "page_of": "2024-03-01T00:00:00+00:00", **changed}
    return render_index({"title": EVIL, "written": "2024-03-01T10:00:00+00:00", "pages": [page]})


def test_a_diagnosis_opens_with_what_is_missing(summary):
    page = render_diagnosis(summary)
    check_stands_alone(page, 2)
    assert EVIL not in page and diagnosis_in_brief(summary) in page
    complete = summary | {"days": [day | {"positives_seen": 1.0} for day in summary["days"]]}
    assert "nearly complete" in diagnosis_in_brief(complete)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "No monitor&#39;s limit is broken."),
        ({"code": 1}, "Broken limits: a."),
        ({"code": 2}, "Could not be run: a-monitor."),
        ({"code": 2, "page_of": None}, "No page yet."),
        ({"code": 2, "page_code": 1}, "Broken limits: a. Could not be run: a-monitor."),
        ({"has_limits": False}, "1 page is up to date."),
    ],
)
def test_the_first_page_says_what_is_wrong(changed, said):
    page = index(**changed)
    assert said in page and EVIL not in page
    assert ("No monitor&#39;s limit is broken." in page) == (not changed)
    assert ("a-monitor.html" in page) == (changed.get("page_of", "") is not None)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_in_a_browser(browser, summary, tmp_path, width, scheme):
    diagnosis, first = tmp_path / "a-monitor.html", tmp_path / "index.html"
    diagnosis.write_text(render_diagnosis(summary))
    first.write_text(index())
    with opened(browser, diagnosis, width, scheme) as page:
        check_pictures(page, 2)
    with opened(browser, first, width, scheme) as page:
        assert page.locator("a").first.get_attribute("href") == "a-monitor.html"
    check_print(browser, diagnosis, 2)
