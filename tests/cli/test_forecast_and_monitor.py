"""``belated forecast`` and ``belated monitor``: what they print and write, when they fail, and what they refuse."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from belated.cli import main
from belated.datasets import simulate_clicks, simulate_scores


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "clicks.parquet"
    pq.write_table(simulate_clicks(40, 150), path)
    return path


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    scores, outcomes = simulate_scores(20_000, rate_change=0.6)
    pq.write_table(scores, folder / "scores.parquet")
    pa_csv.write_csv(outcomes, folder / "outcomes.csv")
    return folder


MONITOR = ["--key", "id", "--score", "p", "--horizon", "30d"]


def test_forecast_prints_and_writes_the_same_numbers(clicks, tmp_path):
    files = {"--json": tmp_path / "f.json", "--csv": tmp_path / "f.csv", "--report": tmp_path / "f.html"}
    ask = ["--horizon", "14d", "--as-of", "2024-02-05", "--group", "device", "--arrivals", "repeat", "--cutoffs", "2"]
    done = run("forecast", clicks, *ask, "--level", "0.9", *[word for pair in files.items() for word in pair])
    assert done.exit_code == 0, done.output
    found = json.loads(files["--json"].read_text())
    assert found["verdict"] in done.output.replace("\n", " ").replace("  ", " ") or found["verdict"][:60] in done.output
    assert list(found["total"]["bands"]) == ["90%"] and found["command"].startswith("belated forecast")
    assert "--level 0.9" in found["command"] and found["settings"]["group"] == "device"
    rows = list(csv.DictReader(files["--csv"].read_text().splitlines()))
    assert {row["by"] for row in rows} == {"total", "outcome", "arrival", "group"}
    for by in ("outcome", "arrival", "group"):
        total = sum(float(row["to_come"]) for row in rows if row["by"] == by)
        assert total == pytest.approx(found["total"]["to_come"])
    assert float(rows[0]["low_90"]) == found["total"]["bands"]["90%"][0]
    assert found["verdict"][:40] in files["--report"].read_text()
    for word in ("What comes, by day", "By device", "The same from dates of the past", "chain ladder"):
        assert word in done.output


def test_forecast_by_chain_ladder_and_without_a_past(clicks):
    done = run(
        "forecast", clicks, "--horizon", "14d", "--as-of", "2024-02-05", "--method", "chain-ladder", "--cutoffs", "0"
    )
    assert done.exit_code == 0 and "more will come" in done.output and "The same from" not in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--horizon", "400d"], "the oldest row is"),
        (["--horizon", "soon"], "horizon='soon'"),
        (["--horizon", "14d", "--level", "80"], "80"),
        (["--horizon", "14d", "--method", "magic"], "method='magic' is not known"),
        (["--horizon", "14d", "--group", "shop"], "shop"),
        (["--horizon", "14d", "--csv", "nowhere/f.csv"], "there is no folder nowhere"),
    ],
)
def test_forecast_refuses_in_one_sentence(clicks, words, message):
    done = run("forecast", clicks, *words)
    assert done.exit_code == 2 and message in done.output and "Traceback" not in done.output


def test_monitor_prints_writes_and_fails(scored, tmp_path):
    files = {"--json": tmp_path / "m.json", "--report": tmp_path / "m.html"}
    words = [
        scored / "scores.parquet",
        "--outcomes",
        scored / "outcomes.csv",
        *MONITOR,
        "--by",
        "segment",
        "--version",
        "version",
    ]
    limits = ["--fail-on", "calibration=0.9..1.1", "--fail-on", "auc=0.5.."]
    done = run("monitor", *words, *limits, *[word for pair in files.items() for word in pair])
    assert done.exit_code == 1, done.output
    found = json.loads(files["--json"].read_text())
    assert not found["ok"] and found["failed"][0].startswith("calibration=0.9..1.1")
    assert found["settings"]["fail_on"] == ["calibration=0.9..1.1", "auc=0.5.."]
    assert f"--json {files['--json']}" in found["command"]
    assert "too high" in done.output and "Taking scored_at as the time of scoring" in done.output
    assert "too high" in files["--report"].read_text()
    assert run("monitor", *words, "--fail-on", "calibration=..5").exit_code == 0


def test_monitor_reads_one_table_too(scored, tmp_path):
    scores, outcomes = simulate_scores(20_000, rate_change=0.6)
    when = np.full(len(scores), None, dtype=object)
    when[outcomes["id"].to_numpy()] = outcomes["converted_at"].to_pylist()
    one = scores.drop(["id"]).append_column("converted_at", pa.array(when.tolist(), pa.timestamp("us")))
    pa_csv.write_csv(one, tmp_path / "one.csv")
    verdicts = []
    for words in (
        [tmp_path / "one.csv", *MONITOR[2:]],
        [scored / "scores.parquet", "--outcomes", scored / "outcomes.csv", *MONITOR],
    ):
        done = run("monitor", *words, "--json", tmp_path / "m.json")
        assert done.exit_code == 0, done.output
        verdicts.append(json.loads((tmp_path / "m.json").read_text())["verdict"])
    assert verdicts[0] == verdicts[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "shop"], "--by shop: no such column; the columns of scores.parquet are id, scored_at, p"),
        (["--fail-on", "luck=1..2"], "'luck' is not a figure of a monitor"),
        (["--horizon", "300d"], "the oldest score is 90 days old"),
        (["--score", "id"], "column 'id' cannot be a score"),
        (["--period", "weekly"], "period='weekly'"),
        (["--time-format", "%d.%m.%Y"], "scored_at"),
    ],
)
def test_monitor_refuses_in_one_sentence(scored, words, message):
    done = run("monitor", scored / "scores.parquet", "--outcomes", scored / "outcomes.csv", *MONITOR, *words)
    assert done.exit_code == 2 and message in done.output and "Traceback" not in done.output, done.output


def test_monitor_wants_a_key_for_two_files(scored):
    done = run("monitor", scored / "scores.parquet", "--outcomes", scored / "outcomes.csv", *MONITOR[2:])
    assert done.exit_code == 2 and "--outcomes and --key go together" in done.output
