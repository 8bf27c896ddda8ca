"""The experiments at tiny sizes: facts that hold at any size, determinism, and going on after an interrupt."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from belated.datasets.yasui_kato import simulate_paper
from belated.reproduce.drift_figure import reproduce_synthetic, trial
from belated.reproduce.toy_campaign import reproduce_toy, run_once

pytest.importorskip("optuna")

FIRST = "hours, tau 3 d, equal traffic"


def test_the_generator_is_the_papers():
    data = simulate_paper(2.0, seed=1, per_day=20_000)
    assert data.X.shape == (160_000, 27) and ((data.X == 0) | (data.X == 1)).all()
    assert_array_equal(data.X[:, 20:].sum(axis=1), 1)
    for d in range(7):  # campaign d enters on day d
        assert np.floor(data.arrival[data.X[:, 20 + d] == 1].min()) == d
    means = data.X[:, :20].mean(axis=0)
    assert (means[:5] < 0.31).all() and (means[5:] > 0.29).all()
    assert_allclose(data.converts.mean(), data.probability.mean(), atol=0.005)
    last = data.arrival > 7
    shares = data.X[last][:, 20:].mean(axis=0)
    assert_allclose(shares, 1 / 7, atol=0.02)
    rare = simulate_paper(2.0, seed=1, per_day=20_000, traffic=0.03)
    assert_allclose(rare.X[rare.arrival > 7][:, 26].mean(), 0.03, atol=0.005)


def test_delays_do_not_depend_on_campaigns_and_labels_are_those_known_then():
    data = simulate_paper(4.0, seed=0)
    by_campaign = [data.delay[data.X[:, 20 + d] == 1].mean() for d in range(7)]
    assert_allclose(by_campaign, data.delay.mean(), rtol=0.15)
    rows, y, elapsed, delay = data.known(7.0)
    assert (data.arrival[rows] <= 7).all() and (delay[y] <= elapsed[y]).all()
    assert y.sum() < data.converts[rows].sum()


def test_a_trial_is_deterministic_and_ordered():
    first = trial(FIRST, 0.0, 0, "corrected", per_day=1500, tries=2)
    second = trial(FIRST, 0.0, 0, "corrected", per_day=1500, tries=2)
    assert first == second
    loss = {row["method"]: row["log_loss"] for row in first}
    ratio = {row["method"]: row["calibration_ratio"] for row in first}
    assert loss["Oracle"] <= min(v for k, v in loss.items() if k != "Oracle") * 1.01
    corrections = ("TW", "ConvDF", "ConvDF, 1/M", "FSIW", "DFM", "DFM, Weibull", "DFM, piecewise")
    assert ratio["BL"] < min(ratio[name] for name in corrections)


@pytest.mark.slow
def test_the_synthetic_experiment_goes_on(tmp_path):
    ask = {"trials": 2, "etas": (0.0, 3.0), "more_trials": 0, "per_day": 300, "jobs": 1, "progress": False}
    whole = reproduce_synthetic(tmp_path / "a", **ask)
    for name in ("synthetic.csv", "synthetic.png", "synthetic.svg"):
        assert (tmp_path / "a" / name).stat().st_size > 500
    lines = (tmp_path / "a" / "synthetic.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "synthetic.jsonl").write_text("".join(lines[:3]) + lines[3][:40])  # interrupted while writing
    assert reproduce_synthetic(tmp_path / "b", **ask) == whole
    assert (tmp_path / "a" / "synthetic.csv").read_text() == (tmp_path / "b" / "synthetic.csv").read_text()


@pytest.mark.slow
def test_toy_example():
    rows = {(r["day"], r["method"]): r["rate"] for r in run_once(0, days=12, per_day=2000)}
    assert rows[12, "bl"] < 0.085 < rows[12, "dfm"]
    assert_allclose(rows[12, "dfm"], 0.1, atol=0.015)


def test_toy_experiment_writes_its_table(tmp_path):
    table = reproduce_toy(tmp_path, runs=2, jobs=1, progress=False, days=3, per_day=300)
    assert table == reproduce_toy(tmp_path, runs=2, jobs=1, progress=False, days=3, per_day=300)
    assert {r["day"] for r in table} == {1, 2, 3}
    assert (tmp_path / "toy.csv").exists() and (tmp_path / "toy.png").exists()
