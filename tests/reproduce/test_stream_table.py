"""The streaming experiment at a tiny size."""

from __future__ import annotations

import csv

import pytest
from click.testing import CliRunner

from belated.cli import main
from belated.datasets.criteo_simulator import simulate_criteo
from belated.reproduce import stream_table as experiment


def test_the_table_beside_the_published_one(tmp_path, monkeypatch):
    simulate_criteo(tmp_path / "data.txt", rows=15_000, progress=False)
    monkeypatch.setattr(experiment, "STEP", 86400.0)
    monkeypatch.setattr(experiment, "COLUMNS_OF_FILE", 2**12)
    out = tmp_path / "out"
    arguments = ["reproduce", "streaming", "--data", str(tmp_path / "data.txt"), "--out", str(out), "--jobs", "1"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "SIMULATED data" in done.output and "hazard-heads" in done.output
    with (out / "streaming-linear-simulated.csv").open() as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    assert len(rows) == 14 and all(row["data"] == "simulated" for row in rows.values())
    assert rows["es-dfm"]["published_roc_auc"] == "0.8402" and rows["defer"]["published_roc_auc"] == ""
    assert float(rows["oracle"]["log_loss"]) < float(rows["vanilla"]["log_loss"])
    with pytest.raises(ValueError, match="sample=2"):
        experiment.reproduce_streaming(tmp_path / "data.txt", out, sample=2)
    wrong = CliRunner().invoke(main, ["reproduce", "streaming", "--out", str(out)])
    assert wrong.exit_code == 2 and "say which data" in wrong.output
