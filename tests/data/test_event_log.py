"""EventLog and Snapshot: what is known when, from any kind of table and clock."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from packaging.version import Version

from belated import EventLog, OutcomeWarning
from belated.datasets import simulate_clicks

KINDS = {"pandas": lambda t: t.to_pandas(), "polars": pl.from_arrow, "pyarrow": lambda t: t}


@pytest.fixture(scope="module")
def clicks():
    return simulate_clicks(days=30, clicks_per_day=100, seed=1)


def make(table):
    return EventLog.from_frame(table, arrival="click_time", outcome="conversion_time")


@pytest.mark.parametrize("kind", KINDS)
def test_tables_come_back_as_what_they_were(clicks, kind):
    table = KINDS[kind](clicks)
    snap = make(table).snapshot("2024-01-20", lookback="10d", horizon="7d")
    assert type(snap.X) is type(table)
    reference = make(clicks).snapshot("2024-01-20", lookback="10d", horizon="7d")
    for name in ("y", "elapsed", "delay"):
        assert_array_equal(getattr(snap, name), getattr(reference, name))
    rows = pa.Table.from_pandas(snap.X, preserve_index=False) if kind == "pandas" else pa.table(snap.X)
    assert rows.to_pylist() == reference.X.to_pylist()
    assert list(snap.X.columns if kind != "pyarrow" else snap.X.column_names) == [
        "campaign",
        "device",
        "country",
        "price",
    ]


def test_snapshot_by_hand():
    frame = pd.DataFrame({"x": list("abcdef"), "at": [0, 10, 50, 50, 90, 101], "out": [30, None, 100, 101, 95, None]})
    snap = EventLog.from_frame(frame, arrival="at", outcome="out").snapshot(as_of=100, lookback=95, horizon="60s")
    assert list(snap.X["x"]) == ["b", "c", "d", "e"]  # a is too old, f has not arrived
    assert snap.y.tolist() == [0, 1, 0, 1]  # c happened at this very instant, d a second later
    assert_allclose(snap.elapsed * 86400, [90, 50, 50, 10])
    assert_allclose(snap.delay * 86400, [np.nan, 50, np.nan, 5])


def test_outcomes_past_the_horizon_are_negative():
    frame = pd.DataFrame({"at": [0, 0], "out": [86400, 86401]})
    assert EventLog.from_frame(frame, arrival="at", outcome="out").snapshot(86401, horizon="1d").y.tolist() == [1, 0]


def test_the_future_has_no_influence(clicks):
    """Move, drop and invent outcomes after as_of, and shuffle later arrivals: the snapshot stays the same to the bit."""
    as_of = datetime(2024, 1, 20)
    frame = clicks.to_pandas()
    changed = frame.copy()
    rng = np.random.default_rng(0)
    later = ~(changed["conversion_time"] <= as_of)
    new = pd.Series(as_of + pd.to_timedelta(rng.uniform(0.001, 9, len(changed)), unit="D"), index=changed.index).astype(
        "datetime64[us]"
    )
    changed.loc[later, "conversion_time"] = new.where(rng.uniform(size=len(changed)) < 0.5)[later]
    changed["conversion_time"] = changed["conversion_time"].where(
        ~(changed["conversion_time"] < changed["click_time"]), changed["click_time"]
    )
    future = changed["click_time"] > as_of
    changed.loc[future, ["campaign", "price"]] = ["new", -1.0]
    assert (changed["conversion_time"] != frame["conversion_time"]).sum() > 100
    before, after = (make(f).snapshot(as_of, lookback="15d", horizon="14d") for f in (frame, changed))
    pd.testing.assert_frame_equal(before.X, after.X)
    for name in ("y", "elapsed", "delay"):
        assert_array_equal(getattr(before, name), getattr(after, name))


@pytest.mark.parametrize("window", ["5d", 5, 5.0, timedelta(days=5)])
def test_rewinding_is_an_earlier_snapshot(clicks, window):
    log = make(clicks)
    now = log.snapshot("2024-01-25T06:00", horizon="14d")
    then = log.snapshot("2024-01-20T06:00", horizon="14d")
    rewound = now.rewind(window)
    assert rewound.X.equals(then.X)
    assert rewound.as_of == then.as_of
    for name in ("y", "elapsed", "delay"):
        assert_array_equal(getattr(rewound, name), getattr(then, name))


def test_rewinding_too_far(clicks):
    with pytest.raises(ValueError, match="window=40 rewinds past the first arrival"):
        make(clicks).snapshot("2024-01-25").rewind(40)


def test_unsorted_logs_are_fine(clicks):
    order = np.random.default_rng(0).permutation(clicks.num_rows)
    shuffled = make(clicks.take(order)).snapshot("2024-01-20", lookback="10d", horizon="7d")
    sorted_ = make(clicks).snapshot("2024-01-20", lookback="10d", horizon="7d")
    assert_array_equal(np.sort(shuffled.elapsed), np.sort(sorted_.elapsed))
    assert shuffled.y.sum() == sorted_.y.sum()


def test_matured_labels(clicks):
    log = make(clicks)
    test = log.matured("2024-01-05", "2024-01-08", horizon="14d")
    frame = clicks.to_pandas()
    inside = (frame["click_time"] >= "2024-01-05") & (frame["click_time"] < "2024-01-08")
    assert len(test) == inside.sum()
    assert test.y.sum() == (frame["conversion_time"][inside].notna()).sum()
    with pytest.raises(
        ValueError, match=r"rows between .* arrived less than horizon='14d' before the log ends .* labels are not final"
    ):
        log.matured("2024-01-05", "2024-02-08", horizon="14d")
    with pytest.raises(ValueError, match="must be before end"):
        log.matured("2024-01-08", "2024-01-05", horizon="14d")
    with pytest.raises(ValueError, match="no rows of the log arrived within start='2023-01-01'"):
        log.matured("2023-01-01", "2023-01-05", horizon="14d")


def stamps(*hours):
    return [datetime(2024, 3, 1) + timedelta(hours=h) for h in hours]


CLOCKS = {
    "datetime": lambda t: t,
    "iso": lambda t: [None if v is None else v.isoformat() for v in t],
    "iso with Z": lambda t: [None if v is None else v.isoformat() + "Z" for v in t],
    "iso with offset": lambda t: [
        None if v is None else v.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=9))).isoformat() for v in t
    ],
    "iso, mixed precision": lambda t: [
        None if v is None else v.isoformat(timespec=p) for v, p in zip(t, ["minutes", "seconds", "hours"], strict=True)
    ],
    "empty text": lambda t: ["" if v is None else v.isoformat() for v in t],
    "zoned": lambda t: pd.Series(t).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
    "nanoseconds": lambda t: pd.Series(t).astype("datetime64[ns]"),
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_clocks_mean_the_same(clock):
    frame = pd.DataFrame({"at": CLOCKS[clock](stamps(0, 30, 50)), "out": CLOCKS[clock]([*stamps(40), None, None])})
    log = EventLog.from_frame(frame, arrival="at", outcome="out", until="2024-04-01")
    snap = log.snapshot("2024-03-03T04:00:00+00:00")
    assert_allclose(snap.elapsed * 24, [52, 22, 2])
    assert_allclose(snap.delay * 24, [40, np.nan, np.nan])
    naive = clock not in ("iso with Z", "iso with offset", "zoned")
    assert ("read as UTC" in repr(log)) == naive


@pytest.mark.parametrize(
    "as_of",
    [
        "2024-03-04",
        date(2024, 3, 4),
        datetime(2024, 3, 4),
        np.datetime64("2024-03-04"),
        pd.Timestamp("2024-03-04T09:00+09:00"),
    ],
)
@pytest.mark.parametrize(
    "lookback", ["2d", "48h", "1d 24h", timedelta(days=2), np.timedelta64(2, "D"), pd.Timedelta(days=2)]
)
def test_what_people_write(as_of, lookback):
    frame = pl.DataFrame({"at": [date(2024, 3, d) for d in (1, 2, 3)], "out": [None, None, date(2024, 3, 5)]})
    assert EventLog.from_frame(frame, arrival="at", outcome="out").snapshot(as_of, lookback).elapsed.tolist() == [
        2.0,
        1.0,
    ]


def test_two_tables():
    arrivals = pd.DataFrame({"id": [7, 8, 9], "x": [1.0, 2.0, 3.0], "at": stamps(0, 0, 10)})
    outcomes = pl.DataFrame({"id": [9, 7, 7, 9, 5, 7], "out": stamps(12, 30, 20, 5, 1, 25)})
    with pytest.warns(OutcomeWarning) as caught:
        log = EventLog.from_frames(arrivals, outcomes, key="id", arrival="at", outcome="out")
    assert [str(w.message) for w in caught] == [
        "1 of 6 outcomes matches no arrival and was left out, the first at row 4 of the outcomes (id=5).",
        "1 of 6 outcomes comes before its arrival and was left out, the first at row 3 of the outcomes (id=9).",
    ]
    assert log.features == ["x"]
    snap = log.snapshot(datetime(2024, 3, 2, 6))
    assert_allclose(snap.delay * 24, [20, np.nan, 2])


def test_two_tables_equal_one(clicks):
    arrivals = clicks.drop_columns("conversion_time").append_column("id", pa.array(range(clicks.num_rows)))
    outcomes = pa.table({"id": arrivals["id"], "conversion_time": clicks["conversion_time"]}).drop_null()
    log = EventLog.from_frames(arrivals, outcomes, key="id", arrival="click_time", outcome="conversion_time")
    both = [source.snapshot("2024-01-20", horizon="14d") for source in (log, make(clicks))]
    assert_array_equal(both[0].delay, both[1].delay)
    assert both[0].X.equals(both[1].X)


def test_text_keys_and_no_outcomes():
    arrivals = pd.DataFrame({"id": ["a", "b"], "at": stamps(0, 1)})
    outcomes = pl.DataFrame({"id": ["b"], "out": stamps(2)})
    assert EventLog.from_frames(arrivals, outcomes, key="id", arrival="at", outcome="out").snapshot(
        "2024-03-01T02:00"
    ).y.tolist() == [0, 1]
    none = EventLog.from_frames(arrivals, outcomes.clear(), key="id", arrival="at", outcome="out")
    assert none.snapshot("2024-03-01T01:00").y.tolist() == [0, 0]


def test_until_says_how_far_the_log_reaches():
    frame = pd.DataFrame({"at": stamps(0, 1), "out": [None, None]})
    log = EventLog.from_frame(frame, arrival="at", outcome="out", until="2024-06-01")
    assert log.snapshot("2024-05-01").y.tolist() == [0, 0]
    assert len(log.matured("2024-03-01", "2024-03-02", horizon="30d")) == 2


def test_outcomes_that_do_not_count_do_not_stretch_the_log():
    arrivals = pd.DataFrame({"id": [1, 2], "at": stamps(0, 1)})
    outcomes = pd.DataFrame({"id": [1, 9], "out": [*stamps(2), datetime(2030, 1, 1)]})
    with pytest.warns(OutcomeWarning, match="matches no arrival"):
        log = EventLog.from_frames(arrivals, outcomes, key="id", arrival="at", outcome="out")
    with pytest.raises(ValueError, match="labels are not final"):
        log.matured("2024-03-01", "2024-03-02", horizon="30d")


@pytest.mark.parametrize(
    "keys", [["a", "b"], [uuid.UUID(int=1), uuid.UUID(int=2)], np.array([2**64 - 1, 5], np.uint64)]
)
def test_kinds_of_keys(keys):
    if isinstance(keys[0], uuid.UUID) and Version(pa.__version__) < Version("21"):
        pytest.skip("this pyarrow does not know what a UUID is")
    arrivals = pd.DataFrame({"id": keys, "at": stamps(0, 1)})
    outcomes = pd.DataFrame({"id": keys[1:], "out": stamps(2)})
    log = EventLog.from_frames(arrivals, outcomes, key="id", arrival="at", outcome="out")
    assert log.snapshot("2024-03-01T02:00").y.tolist() == [0, 1]


def test_a_sample_of_a_log(clicks):
    log = make(clicks)
    half = log.sample(0.5, seed=3)
    assert 0.4 < len(half) / len(log) < 0.6 and half.until == log.until
    assert_array_equal(half._arrival, log.sample(0.5, seed=3)._arrival)
    assert set(half._arrival) <= set(log._arrival) and len(log.sample(1.0)) == len(log)
    for share in (0.0, 1.5, -1):
        with pytest.raises(ValueError, match="must be above 0 and at most 1"):
            log.sample(share)
    with pytest.raises(ValueError, match="leaves none"):
        log.sample(1e-12)


@pytest.mark.parametrize("keys", [[1, 2], [1.0, 2.0], ["a", "b"]])
def test_a_table_without_any_outcome(keys):
    arrivals = pd.DataFrame({"id": keys, "at": ["2024-01-01", "2024-01-02"], "x": [1, 2]})
    outcomes = pd.DataFrame({"id": pd.Series([], dtype=arrivals["id"].dtype), "when": pd.Series([], dtype="str")})
    log = EventLog.from_frames(arrivals, outcomes, key="id", arrival="at", outcome="when")
    assert len(log) == 2 and log.positives == 0
