"""Durations: everything that people write, in one place, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

from belated import DelayedFeedbackClassifier, EventLog, backtest, diagnose, train
from belated.data.durations import DAY, duration_text, parse_age, parse_duration
from belated.datasets import simulate_campaigns

HOUR = DAY // 24


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        ("21d", 21 * DAY),
        ("1.5 days", 36 * HOUR),
        ("1d12h", 36 * HOUR),
        ("2 weeks", 14 * DAY),
        ("1W", 7 * DAY),
        ("90min", 90 * 60 * 10**6),
        ("30 minutes", 30 * 60 * 10**6),
        ("45s", 45 * 10**6),
        (timedelta(hours=36), 36 * HOUR),
        (np.timedelta64(36, "h"), 36 * HOUR),
        (pd.Timedelta(days=1.5), 36 * HOUR),
    ],
)
def test_what_people_write(value, micros):
    assert parse_duration(value, "horizon") == micros


@pytest.mark.parametrize("value", [3600, 3600.0, np.int64(3600), np.float32(3600), "3600"])
def test_numbers_are_seconds_where_the_log_counts_seconds(value):
    assert parse_duration(value, "horizon", "seconds") == HOUR
    if not isinstance(value, str):
        with pytest.raises(ValueError, match="has no unit, and this log holds datetimes"):
            parse_duration(value, "horizon")


@pytest.mark.parametrize("value", ["6m", "6M", "1d6m", "6 m"])
def test_months_or_minutes(value):
    with pytest.raises(
        ValueError, match=r"m may mean minutes or months\. Write '6min' for minutes, or '180d' for months"
    ):
        parse_duration(value, "horizon")


@pytest.mark.parametrize(("value", "days"), [("6 months", "180d"), ("1mo", "30d"), ("2 years", "730d")])
def test_months_and_years_have_no_length(value, days):
    with pytest.raises(ValueError, match=f"months and years differ in length. Write days, as in '{days}'"):
        parse_duration(value, "horizon")


@pytest.mark.parametrize(
    "value",
    [
        *("", "d", "21", "21x", "21d?", "-3d", "0d", "9999999w", True, None, [1], float("nan")),
        *(np.timedelta64("NaT"), pd.NaT, np.timedelta64(2, "M"), np.timedelta64(2)),
    ],
    ids=repr,
)
def test_what_is_no_duration(value):
    with pytest.raises(ValueError, match="horizon"):
        parse_duration(value, "horizon")


@pytest.mark.parametrize("value", [7, 7.0, np.int64(7), np.float32(7)])
def test_the_classifier_takes_numbers(value):
    assert parse_age(value, "window") == 7.0


@pytest.mark.parametrize(
    "value", ["7d", timedelta(days=7), True, 0, -1.0, float("inf"), np.timedelta64(7, "D")], ids=repr
)
def test_the_classifier_takes_nothing_else(value):
    with pytest.raises(ValueError, match=r"window=.* must be a positive number, in the unit of elapsed\."):
        DelayedFeedbackClassifier("tw", window=value).fit(np.eye(4), [0, 1, 0, 1], elapsed=[9.0] * 4)


@pytest.mark.parametrize(("value", "days"), [("36h", "1.5"), (timedelta(weeks=1), "7")])
def test_the_classifier_says_what_a_duration_is_in_days(value, days):
    with pytest.raises(ValueError, match=f"Where that is days, write {days}"):
        parse_age(value, "window")


def test_signs_and_ambiguous_units():
    with pytest.raises(ValueError, match="horizon=-3 must be longer than zero"):
        parse_duration(-3, "horizon")
    with pytest.raises(ValueError, match=r"in the unit of elapsed\. Write it without a unit"):
        parse_age("6m", "horizon")


def test_every_door_takes_the_same():
    """Whatever is asked of a log goes through one reader: text and timedeltas give the same."""
    clicks = simulate_campaigns(3000)
    log = EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01")
    week, month = timedelta(days=7), np.timedelta64(30, "D")
    for text, other in (("7d", week), ("168 hours", "1w")):
        a = log.snapshot("2024-02-10", lookback=text, horizon=text)
        b = log.snapshot("2024-02-10", lookback=other, horizon=other)
        assert len(a) == len(b) and a.horizon == b.horizon and (a.y == b.y).all()
        assert len(a.rewind("72h")) == len(a.rewind(timedelta(days=3))) == len(a.rewind(3.0))
        assert diagnose(log, horizon=text, window=other).window == 7.0
    ask = {"methods": ["tw"], "cutoffs": 1, "l2": [1e-3], "n_jobs": 1, "progress": False}
    for lookback in ("30d", month):
        settings = backtest(log, horizon=week, window="2d", lookback=lookback, period="5d", **ask).settings
        assert (settings.horizon, settings.window, settings.lookback, settings.period) == (7.0, 2.0, 30.0, 5.0)
    assert train(log, horizon=week, window="2d", lookback=month, method="bl", l2=1e-3).about["window"] == 2.0


def test_a_duration_in_words_is_read_as_the_same():
    rng = np.random.default_rng(0)
    for micros in [*rng.integers(1, 400 * DAY, 500).tolist(), DAY, 14 * DAY // 24, 50_401_000_000, 1]:
        text = duration_text(micros / DAY)
        assert parse_duration(text, "horizon") == micros, text
