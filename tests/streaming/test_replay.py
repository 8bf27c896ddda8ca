"""Replay: nothing of the future is learned, an interrupted one goes on, and the table says what it should."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal

from belated import EventLog
from belated.cli import main
from belated.data.durations import DAY
from belated.datasets import simulate_campaigns
from belated.streaming import replay as module
from belated.streaming.replay import REPLAYED, replay
from belated.streaming.replay_results import Replay, ReplaySettings

ASK = {"horizon": "5d", "warmup": "20d", "step": "1d", "wait": "6h", "progress": False}


@pytest.fixture(scope="module")
def clicks():
    return simulate_campaigns(15_000)


def log_of(table):
    return EventLog.from_frame(table, arrival="click_time", outcome="conversion_time", until="2024-03-01")


@pytest.fixture(scope="module")
def result(clicks):
    return replay(log_of(clicks), refit="5d", n_jobs=1, **ASK)


def test_the_table(result):
    summary = result.summary()
    assert set(summary["methods"]) == {*REPLAYED, "dfm-piecewise"}
    keys = {"log_loss", "roc_auc", "pr_auc", "calibration_ratio", "relative_improvement"}
    assert all(keys <= set(row) for row in summary["methods"].values())
    losses = {name: row["log_loss"] for name, row in summary["methods"].items()}
    assert losses["oracle"] < losses["pretrained"] < losses["vanilla"]
    assert summary["methods"]["oracle"]["relative_improvement"] == 1
    assert summary["methods"]["pretrained"]["relative_improvement"] == 0
    for name in ("es-dfm", "hazard-heads", "dfm-stream", "defuse", "fnw"):
        assert 0.85 < summary["methods"][name]["calibration_ratio"] < 1.2
        assert losses[name] < losses["pretrained"] + 0.002
    best = min((name for name in losses if name not in ("oracle", "pretrained", "dfm-piecewise")), key=losses.get)
    by = losses[best] - losses["dfm-piecewise"]
    how = f"its log loss is {'lower' if by <= 0 else 'higher'} by {abs(by):.4f}"
    assert "fitted again every 5 days" in summary["verdict"] and how in summary["verdict"]
    json.dumps(summary, allow_nan=False)
    mean = np.average(result.scores["es-dfm"]["log_loss"], weights=result.rows)
    assert_allclose(mean, losses["es-dfm"])


def test_what_comes_later_has_no_influence(clicks, result):
    """The predictions of the first steps are the same where every later outcome is another."""
    change = pa.scalar(np.datetime64("2024-02-01", "s"))
    late = pc.greater(clicks["conversion_time"], change)
    other = pc.if_else(
        pc.fill_null(late, False), pa.scalar(None, clicks["conversion_time"].type), clicks["conversion_time"]
    )
    table = clicks.set_column(clicks.column_names.index("conversion_time"), "conversion_time", other)
    again = replay(log_of(table), refit="5d", n_jobs=1, **ASK)
    before = np.array(result.times) <= "2024-02-01"
    assert 5 < before.sum() < len(before) - 5
    for name in result.scores:
        if name == "oracle":
            continue
        assert_array_equal(
            again.scores[name]["prediction"][before], result.scores[name]["prediction"][before], err_msg=name
        )
        if name != "pretrained":
            assert (again.scores[name]["prediction"][~before] != result.scores[name]["prediction"][~before]).any()


def test_processes_and_the_order_of_rows_change_nothing(clicks, result):
    shuffled = clicks.take(np.random.default_rng(0).permutation(len(clicks)))
    methods = ["es-dfm", "hazard-heads", "dfm-piecewise"]
    again = replay(log_of(shuffled), refit="5d", n_jobs=2, methods=methods, **ASK)
    assert list(again.scores) == ["pretrained", *methods, "oracle"]
    for name in again.scores:
        assert_allclose(again.scores[name]["log_loss"], result.scores[name]["log_loss"], rtol=1e-4, err_msg=name)


def test_an_interrupted_replay_goes_on(clicks, tmp_path, monkeypatch):
    log, methods = log_of(clicks), ["defer"]
    whole = replay(log, methods=methods, n_jobs=1, **ASK)
    monkeypatch.setattr(module, "_BETWEEN", 0.0)
    monkeypatch.setattr(module, "_SHARE", 1e9)
    steps, one_step = [], module._Run._one_step

    def stops(self, k):
        steps.append(k)
        if len(steps) == 12:
            raise KeyboardInterrupt
        one_step(self, k)

    monkeypatch.setattr(module._Run, "_one_step", stops)
    with pytest.raises(KeyboardInterrupt):
        replay(log, methods=methods, n_jobs=1, cache=tmp_path, **ASK)
    again = replay(log, methods=methods, n_jobs=1, cache=tmp_path, **ASK)
    assert steps[11:13] == [11, 11] and len(steps) == len(whole.times) + 1
    for name in whole.scores:
        for measure in ("log_loss", "prediction"):
            assert_array_equal(again.scores[name][measure], whole.scores[name][measure])


def test_a_cache_with_batch_methods(clicks, tmp_path):
    """What is finished is read again."""
    ask = {**ASK, "methods": ["fnw", "dfm-piecewise"], "refit": "5d", "n_jobs": 1, "cache": tmp_path}
    first, again = (replay(log_of(clicks), **ask) for _ in range(2))
    for name in first.scores:
        assert_array_equal(again.scores[name]["prediction"], first.scores[name]["prediction"])
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".json", ".json"]  # states go, scores stay


def test_a_fit_that_fails_is_said(clicks):
    """Nothing turns positive after the warm-up, so the last refit has nothing to learn from."""
    early = pc.less(clicks["conversion_time"], pa.scalar(np.datetime64("2024-01-22", "us")))
    table = clicks.set_column(
        clicks.column_names.index("conversion_time"),
        "conversion_time",
        pc.if_else(early, clicks["conversion_time"], None),
    )
    found = replay(log_of(table), **ASK, methods=["fnw", "tw"], refit="7d", n_jobs=1)
    (note,) = (note for note in found.summary()["notes"] if note.startswith("tw could not be fitted again"))
    assert "went on as it was; first at 2024-02-" in note


def test_what_cannot_be_replayed_is_said(clicks):
    log = log_of(clicks)
    for more, message in (
        ({"methods": ["banana"]}, "'banana' is not known"),
        ({"methods": "fnw"}, "must be a list"),
        ({"warmup": "58d"}, "the log is too short"),
        ({"refit": "6h"}, "no more often than once a step"),
        ({"wait": "6d"}, "must be shorter than horizon"),
    ):
        with pytest.raises(ValueError, match=message):
            replay(log, **{**ASK, **more})


def test_the_command(clicks, tmp_path):
    pq.write_table(clicks, tmp_path / "clicks.parquet")
    files = [str(tmp_path / name) for name in ("clicks.parquet", "r.html", "r.json")]
    arguments = [
        "replay",
        files[0],
        "--horizon",
        "5d",
        "--warmup",
        "20d",
        "--step",
        "1d",
        "--wait",
        "6h",
        "--jobs",
        "1",
    ]
    done = CliRunner().invoke(
        main, [*arguments, "--methods", "es-dfm,hazard-heads", "--report", files[1], "--json", files[2]]
    )
    assert done.exit_code == 0, done.output
    assert "hazard-heads" in done.output and "the lowest of 2 " in done.output
    summary = json.loads((tmp_path / "r.json").read_text())
    assert set(summary["methods"]) == {"pretrained", "es-dfm", "hazard-heads", "oracle"}
    page = (tmp_path / "r.html").read_text()
    assert "clicks.parquet as a stream" in page and page.count("<figure") == 2
    wrong = CliRunner().invoke(main, [*arguments, "--methods", "es-dmf"])
    assert wrong.exit_code == 2 and "'es-dmf' is not known" in wrong.output


def test_help_comes_without_numerical_libraries():
    code = "import sys; from click.testing import CliRunner; from belated.cli import main; print(CliRunner().invoke(main, ['replay', '--help']).exit_code, 'numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == [
        "0",
        "False",
    ]


def test_the_interval_of_a_gain_covers_it():
    """Days of very different size, each with a gain of its own: of the mean over rows, 95% of intervals hold the truth."""
    rng, inside = np.random.default_rng(0), []
    for _ in range(400):
        days, per_day = 30, 24
        of_day, size = rng.normal(0.01, 0.02, days), rng.lognormal(3.0, 0.7, days)
        gain = np.repeat(of_day, per_day) + rng.normal(0, 0.05, days * per_day)
        rows = np.repeat(size, per_day)
        scores = {"pretrained": {"log_loss": np.full(len(rows), 0.5)}, "it": {"log_loss": 0.5 - gain}}
        settings = ReplaySettings(1.0, 1 / 24, 0.1, 1.0, None, (), "")
        begins = np.arange(len(rows)) * 3_600_000_000
        found = Replay(settings, [], begins, rows, rows, scores, {}, {})
        low, high = found.gain_interval("it", "pretrained")[0]
        inside.append(low <= 0.01 <= high)
    assert 0.91 < np.mean(inside) <= 0.99


@pytest.mark.slow
def test_areas_do_not_depend_on_how_often_is_scored(clicks):
    """Within steps of a few rows an area would mean little: it is that of enough rows together."""
    areas = [
        replay(log_of(clicks), **{**ASK, "step": step}, methods=["vanilla"], n_jobs=1).mean("pretrained", "pr_auc")
        for step in ("1h", "1d")
    ]
    assert_allclose(*areas, rtol=0.1)


def test_improvement_needs_a_difference_to_be_a_share_of():
    rng = np.random.default_rng(0)
    rows, begins = np.full(30, 40.0), np.arange(30) * DAY
    settings = ReplaySettings(1, 1, 1, 1, None, ("pretrained", "fnw", "oracle"), "")
    for gap, known in ((0.0, False), (0.1, True)):
        scores = {
            name: {"log_loss": 0.4 + away + rng.normal(0, 0.01, 30), "prediction": np.full(30, 0.1)}
            | {area: np.full(30, 0.7) for area in ("roc_auc", "pr_auc")}
            for name, away in (("pretrained", gap), ("fnw", gap / 2), ("oracle", 0.0))
        }
        found = Replay(settings, ["t"] * 30, begins, rows, rows / 20, scores, {}, {}).summary()
        assert (found["methods"]["fnw"]["relative_improvement"] is not None) == known
        assert any("would not clearly have beaten" in note for note in found["notes"]) != known
    few = Replay(settings, ["t"] * 30, begins, rows, rows / 40, scores, {}, {}).summary()
    assert few["notes"][0].startswith("Too little to go by: 1,200 rows were scored, 30 of them positive.")
