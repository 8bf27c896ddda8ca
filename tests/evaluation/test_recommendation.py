"""Sentences of a recommendation that warn."""

from __future__ import annotations

import pytest

from belated import EventLog, backtest
from belated.datasets import simulate_clicks
from belated.evaluation.recommendation import _cancelling


@pytest.mark.parametrize(
    ("bl", "oracle", "best", "warned", "advised"),
    [
        (1.02, 1.15, "bl", True, True),
        (1.02, 1.15, "boost:bl", True, True),
        (0.98, 1.15, "tw", True, False),
        (0.85, 1.00, "bl", False, False),
        (1.04, 1.06, "bl", False, False),
        (0.80, 1.15, "bl", False, False),
    ],
)
def test_labels_that_look_good_because_two_errors_cancel(bl, oracle, best, warned, advised):
    """Final labels would have predicted too much, and labels as they stand are right by luck."""
    text = _cancelling(bl, oracle, best)
    assert ("two errors cancel" in text) == warned and ("Prefer a method" in text) == advised


def test_falling_rates_are_told_where_nothing_else_shows_them():
    """Simulated: later campaigns convert far worse, and conversions are late."""
    log = EventLog.from_frame(
        simulate_clicks(60, 400, drift=-4.0), arrival="click_time", outcome="conversion_time", until="2024-03-14"
    )
    found = backtest(log, horizon="14d", cutoffs=3, methods=["tw"], progress=False, n_jobs=1)
    scores = found.summary()["methods"]
    assert scores["oracle"]["calibration_ratio"] > 1.05 > scores["bl"]["calibration_ratio"] > 0.95
    assert "two errors cancel" in found.recommend().why
