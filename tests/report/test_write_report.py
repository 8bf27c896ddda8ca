"""Pages from Python: every result that has one, and what has none."""

from __future__ import annotations

import pytest

from belated import backtest, diagnose, forecast, monitor, replay, write_report
from belated.datasets import example_log, simulate_scores

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


def results():
    log = example_log()
    quick = {"n_jobs": 1, "progress": False}
    yield backtest(log, horizon="7d", methods=["tw"], cutoffs=2, group="device", l2=[1e-3], **quick)
    yield diagnose(log, horizon="7d")
    yield forecast(log, horizon="7d", as_of="2024-01-24", method="chain-ladder", cutoffs=0)
    names = {"key": "id", "time": "scored_at", "score": "p", "outcome": "converted_at"}
    yield monitor(*simulate_scores(5000), **names, horizon="30d")
    yield replay(log, horizon="5d", warmup="20d", step="1d", methods=["fnw"], **quick)


def test_every_result_has_a_page(tmp_path, one_width, no_pictures):
    for found in results():
        file = tmp_path / f"{type(found).__name__}.html"
        write_report(found, file, name="my <log>")
        text = file.read_text()
        assert "my &lt;log&gt;" in text and "<pre></pre>" not in text, file.name
    assert len(list(tmp_path.iterdir())) == 5


def test_what_has_no_page_is_refused(tmp_path):
    with pytest.raises(TypeError, match="no page for a dict; give one of Backtest, Diagnosis, Forecast"):
        write_report({}, tmp_path / "x.html")
    assert not list(tmp_path.iterdir())
