"""``train``: what the command does, as a function."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from belated import DelayedFeedbackClassifier, EventLog, FieldMatrix, LinearModel, TrainedModel, train
from belated.datasets import simulate_campaigns


def make_log(rows=4000, frame=None, **options):
    table = simulate_campaigns(rows)
    table = table if frame is None else frame(table)
    return EventLog.from_frame(table, arrival="click_time", outcome="conversion_time", until="2024-03-01", **options)


def test_it_is_a_fit_on_the_last_snapshot():
    log = make_log()
    trained = train(log, horizon="14d", method="convdf", window="7d", lookback="30d", l2=1e-3)
    last = log.last
    snap = log.snapshot_at(log.until, 30 * 86_400_000_000 + log.until - last, 14 * 86_400_000_000)
    clf = DelayedFeedbackClassifier("convdf", 7.0, 14.0, LinearModel(l2=1e-3)).fit_snapshot(snap)
    assert_array_equal(trained.predict(snap.X), clf.predict_proba(snap.X)[:, 1])
    assert trained.about["rows"] == len(snap) < 4000
    assert trained.features["pages_viewed"] == "number" and trained.features["campaign"] == "text"


def test_what_is_not_said_is_chosen():
    log = make_log()
    trained = train(log, horizon="14d", method="tw")
    assert trained.classifier.model_.l2 in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    assert 5.0 < trained.about["window"] <= 14.0
    assert trained.classifier.horizon_ == 14.0
    with pytest.warns(UserWarning, match="no longer than the horizon of 14: no label is final"):
        short = train(log, horizon="14d", method="rescale", lookback="10d", l2=1e-3)
    assert short.about["window"] <= 5.0  # methods that set the clock back need twice the window


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_any_table(kind, tmp_path):
    frame = pytest.importorskip(kind)
    convert = (lambda t: t.to_pandas()) if kind == "pandas" else frame.from_arrow
    expected = train(make_log(), horizon="14d", method="bl", l2=1e-3)
    log = make_log(frame=convert)
    trained = train(log, horizon="14d", method="bl", l2=1e-3)
    assert_allclose(trained.predict(log.frame), expected.predict(make_log().frame), atol=1e-8)
    assert trained.features == expected.features
    trained.save(tmp_path / "m.skops")
    assert_array_equal(TrainedModel.load(tmp_path / "m.skops").predict(log.frame), trained.predict(log.frame))


def test_hashed_fields():
    log = make_log(features=["campaign", "device"])
    fields = FieldMatrix.from_frame(log.frame, n_columns=5000)
    hashed = EventLog(fields, log._arrival, log._outcome, "datetime", False, log.until)
    trained = train(hashed, horizon="14d", method="bl", l2=1e-3)
    assert trained.features == {"campaign": "text", "device": "text"}
    assert_allclose(trained.predict(fields).mean(), trained.about["mean_prediction"])


def test_complaints():
    log = make_log()
    with pytest.raises(ValueError, match="method='best' is not known"):
        train(log, horizon="14d", method="best", l2=1e-3)
    with pytest.raises(ValueError, match="horizon=14 has no unit"):
        train(log, horizon=14)
    none = EventLog(log.frame, log._arrival, np.full(len(log), np.iinfo(np.int64).max), "datetime", False, log.until)
    with pytest.raises(ValueError, match="none of the 4000 rows is positive"):
        train(none, horizon="14d")


def test_a_window_that_nobody_set_fits_the_horizon_whatever_the_history():
    """Of a log of many horizons, and after one stray arrival a century ago."""
    clicks = simulate_campaigns(4000).to_pandas()
    stray = pd.concat([clicks, clicks.iloc[:1]], ignore_index=True)
    stray.loc[len(clicks), "click_time"], stray.loc[len(clicks), "conversion_time"] = pd.Timestamp("1900-01-01"), pd.NaT
    for frame in (clicks, stray):
        log = EventLog.from_frame(frame, arrival="click_time", outcome="conversion_time", until="2024-03-01")
        for horizon, longest in (("14d", 10.0), ("12h", 0.5)):
            about = train(log, horizon=horizon, method="tw", l2=1e-3).about
            assert 0 < about["window"] <= longest


def test_a_model_of_an_earlier_day_is_the_one_of_that_day():
    """Nothing that came later has any influence."""
    table = simulate_campaigns(6000)
    whole = EventLog.from_frame(table, arrival="click_time", outcome="conversion_time", until="2024-03-01")
    now = pa.scalar(np.datetime64("2024-02-10", "s"))
    arrived = table.filter(pc.less_equal(table["click_time"], now))
    later = pc.greater(arrived["conversion_time"], now)
    came = pc.if_else(
        pc.fill_null(later, False), pa.scalar(None, arrived["conversion_time"].type), arrived["conversion_time"]
    )
    known = arrived.set_column(1, "conversion_time", came)
    then = EventLog.from_frame(known, arrival="click_time", outcome="conversion_time", until="2024-02-10")
    ask = {"horizon": "14d", "method": "dfm-piecewise", "l2": 1e-4}
    one, other = train(whole, as_of="2024-02-10", **ask), train(then, **ask)
    np.testing.assert_allclose(one.predict(table), other.predict(table), rtol=1e-9)
    assert one.about["rows"] == other.about["rows"] < len(table) and one.about["as_of"].startswith("2024-02-10")
    with pytest.raises(ValueError, match="outside the log"):
        train(whole, as_of="2023-01-01", **ask)
