"""Scores of probabilities, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss

from belated.evaluation.metrics import calibration_by, calibration_curve, expected_calibration_error, log_losses, scores


def sample(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.01, 0.99, n)
    return rng.uniform(size=n) < p, p


def test_log_loss_equals_sklearn():
    y, p = sample()
    assert_allclose(log_losses(y, p).mean(), log_loss(y, p))
    assert np.isfinite(log_losses(np.array([True, False]), np.array([0.0, 1.0]))).all()


def test_a_calibrated_prediction_has_ratio_one_and_a_small_error():
    y, p = sample(200_000)
    found = scores(y, p)
    assert_allclose(found["calibration_ratio"], 1.0, atol=0.02)
    assert found["ece"] < 0.01
    assert_allclose(scores(y, p / 2)["calibration_ratio"], 0.5, atol=0.02)
    assert expected_calibration_error(y, p / 2) == pytest.approx(p.mean() / 2, rel=0.05)


def test_scores_without_positives_say_nothing_of_areas():
    found = scores(np.zeros(5, dtype=bool), np.full(5, 0.2))
    assert found["pr_auc"] is None and found["roc_auc"] is None and found["calibration_ratio"] is None
    assert_allclose(found["log_loss"], -np.log(0.8))


def test_curve_has_all_rows_once_and_intervals_around_the_rate():
    y, p = sample(1003)
    curve = calibration_curve(y, p)
    assert sum(b["rows"] for b in curve) == 1003
    assert_allclose(sum(b["rows"] * b["rate"] for b in curve), y.sum())
    assert all(b["low"] <= b["rate"] <= b["high"] for b in curve)


def test_intervals_of_the_curve_cover():
    covered = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y = rng.uniform(size=400) < 0.1
        (bin_,) = calibration_curve(y, np.full(400, 0.1), bins=1)
        covered.append(bin_["low"] <= 0.1 <= bin_["high"])
    assert 0.9 <= np.mean(covered) <= 0.99


def test_groups():
    y, p = np.array([1, 0, 1, 1], dtype=bool), np.array([0.5, 0.5, 0.2, 0.4])
    a, b = calibration_by(np.array(["a", "a", "b", "b"]), y, p)
    assert (a["group"], a["rows"], a["calibration_ratio"]) == ("a", 2, 1.0)
    assert_allclose(b["calibration_ratio"], 0.3)


def test_row_order_does_not_matter_where_predictions_tie():
    y, p = sample(2000)
    p = np.round(p, 1)
    order = np.argsort(~y, kind="stable")
    assert_allclose(expected_calibration_error(y, p), expected_calibration_error(y[order], p[order]))
