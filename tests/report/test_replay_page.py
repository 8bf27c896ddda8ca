"""The page of a replay: text that cannot become markup, and the page in a real browser where there is one."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from pages import EVIL, SCREENS, check_fills, check_pictures, check_print, check_sorting, check_stands_alone, opened

from belated.report.replay_page import render_replay
from belated.streaming.replay_results import Replay, ReplaySettings


@pytest.fixture(scope="module")
def summary():
    rng = np.random.default_rng(0)
    names, steps = ("pretrained", "vanilla", "es-dfm", "dfm-piecewise", "oracle"), 96
    level = {"pretrained": 0.45, "vanilla": 0.6, "es-dfm": 0.43, "dfm-piecewise": 0.432, "oracle": 0.42}
    scores = {
        name: {
            "log_loss": level[name] + rng.normal(0, 0.01, steps),
            "roc_auc": rng.uniform(0.6, 0.8, steps),
            "pr_auc": np.where(rng.uniform(size=steps) < 0.1, np.nan, 0.3),
            "prediction": rng.uniform(0.15, 0.25, steps),
        }
        for name in names
    }
    times = [f"2024-01-{1 + k // 24:02d} {k % 24:02d}:00:00+00:00" for k in range(steps)]
    settings = ReplaySettings(30.0, 1 / 24, 0.01, 30.0, 1.0, names, "OnlineLinearModel()")
    begins = np.arange(steps) * 3_600_000_000
    found = Replay(
        settings,
        times,
        begins,
        np.full(steps, 100.0),
        np.full(steps, 20.0),
        scores,
        {"arrivals": 9600},
        dict.fromkeys(names, 1.5),
    )
    return {**found.summary(), "name": "clicks", "command": "belated replay clicks"}


@pytest.fixture(scope="module")
def file(summary, tmp_path_factory):
    file = tmp_path_factory.mktemp("replay") / "replay.html"
    file.write_text(render_replay(summary))
    return file


def test_it_says_what_was_found(file, summary):
    page = file.read_text()
    check_stands_alone(page, 2)
    assert summary["best"] == "es-dfm" and "clicks as a stream: es-dfm" in page
    improved = summary["methods"]["es-dfm"]["relative_improvement"]
    assert f"Learning pays: es-dfm gets {improved:.0%} of what knowing all labels at once would gain" in page
    assert "Not shown, being far worse: vanilla" in page
    assert summary["methods"]["oracle"]["relative_improvement"] == 1.0
    assert "The best on the stream (es-dfm) does not clearly differ from dfm-piecewise" in summary["verdict"]
    other = copy.deepcopy(summary)
    other["name"] = other["command"] = EVIL
    page = render_replay(other)
    assert EVIL not in page and "&lt;script&gt;document.title" in page


def test_seconds_from_zero_and_missing_numbers(summary):
    other = copy.deepcopy(summary)
    other["steps"]["time"] = [f"second {3600 * k}" for k in range(96)]
    for row in other["methods"].values():
        row |= {"pr_auc": None, "relative_improvement": None, "calibration_ratio": None, "seconds": None}
    assert "<svg" in render_replay(other)


@pytest.mark.parametrize(("gained", "lead"), [(None, "there is little to gain"), (-0.1, "did not pay")])
def test_it_opens_with_whether_learning_pays(summary, gained, lead, no_pictures):
    other = copy.deepcopy(summary)
    other["methods"]["es-dfm"]["relative_improvement"] = gained
    page = render_replay(other)
    assert lead in page and page.index(lead) < page.index(summary["verdict"][:40])


@pytest.mark.parametrize(("width", "scheme"), [*SCREENS, (320, "dark")])
def test_the_replay_in_a_browser(browser, file, width, scheme):
    with opened(browser, file, width, scheme) as page:
        check_pictures(page, 2)
        check_sorting(page, ((1, str), (2, float), (4, float)))
        if width == 1440:
            check_fills(page)


def test_the_replay_on_paper(browser, file):
    check_print(browser, file, 2)
