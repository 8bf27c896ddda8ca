"""Logs from copies of a table: what they say is what a log with times would have said on those days."""

from __future__ import annotations

from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from effort import given_some
from hypothesis import strategies as st

from belated import EventLog

DAYS = pd.date_range("2024-03-01", "2024-03-12")


def copies(arrived, outcome, make=pd.DataFrame, days=DAYS):
    """The table as it stood at the end of each day; times are counted in days from the first."""
    arrived, outcome = np.asarray(arrived), np.asarray(outcome, dtype=float)
    found = {}
    for number, day in enumerate(days):
        seen = np.flatnonzero(arrived <= number)
        if len(seen):
            columns = {
                "id": seen + 100,
                "created": [DAYS[k] for k in arrived[seen]],
                "paid": outcome[seen] <= number,
                "age_in_copy": number - arrived[seen],
            }
            found[day.to_pydatetime()] = make(columns)
    return found


def log_of(found, **more):
    return EventLog.from_snapshots(found, key="id", arrival="created", outcome="paid", **more)


@given_some(st.lists(st.tuples(st.integers(0, 10), st.none() | st.integers(0, 6)), min_size=3, max_size=30))
def test_daily_copies_equal_a_log_with_times(rows):
    rows = [(0, None), *rows]
    arrived = np.array([a for a, _ in rows])
    outcome = np.array([np.nan if d is None else a + d for a, d in rows])
    from_copies = log_of(copies(arrived, outcome))
    stamps = [pd.NaT if np.isnan(o) or o > 11 else DAYS[int(o)] for o in outcome]
    frame = pd.DataFrame({"created": DAYS[arrived], "paid": stamps, "id": np.arange(len(rows)) + 100})
    direct = EventLog.from_frame(frame, arrival="created", outcome="paid", until="2024-03-12")
    for day in DAYS[3::4]:
        a, b = (log.snapshot(day.to_pydatetime(), horizon="5d") for log in (from_copies, direct))
        assert sorted(zip(a.elapsed, np.nan_to_num(a.delay, nan=-1), strict=True)) == sorted(
            zip(b.elapsed, np.nan_to_num(b.delay, nan=-1), strict=True)
        )


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_features_are_those_of_the_first_copy_and_the_kind_of_table_stays(make):
    log = log_of(copies([0, 1, 3], [2, np.nan, 5], make))
    assert type(log.frame) is type(make({"a": [1]}))
    assert log.features == ["age_in_copy"]
    assert np.asarray(log.frame["age_in_copy"]).tolist() == [0, 0, 0]


def test_the_order_of_copies_does_not_matter():
    found = copies([0, 1, 3, 3], [2, np.nan, 5, 9])
    turned = dict(reversed(found.items()))
    assert log_of(found).fingerprint() == log_of(turned).fingerprint() == log_of(list(turned.items())).fingerprint()


def test_one_table_with_a_column_of_days():
    found = copies([0, 1, 3, 3], [2, np.nan, 5, 9])
    whole = pd.concat([frame.assign(day=day) for day, frame in found.items()])
    assert log_of(whole, taken="day").fingerprint() == log_of(found).fingerprint()


def test_rows_from_before_the_first_copy_are_left_out_and_counted():
    found = copies([0, 0, 4, 5, 6], [2, np.nan, 5, 9, np.nan])
    late = {day: frame for day, frame in found.items() if day >= datetime(2024, 3, 5)}
    log = log_of(late)
    assert len(log) == 3 and any("2 of 5 rows arrived before the first snapshot" in note for note in log.notes)


def test_a_date_means_the_end_of_its_day_where_rows_of_the_day_are_in_it():
    first = pd.DataFrame({"id": [1], "created": [pd.Timestamp("2024-03-01 15:00")], "paid": [False]})
    second = pd.concat([first.assign(paid=True), first.assign(id=2, created=pd.Timestamp("2024-03-02 09:00"))])
    log = log_of({date(2024, 3, 1): first, date(2024, 3, 2): second})
    assert "The date of a snapshot means the end of that day." in log.notes
    assert log.snapshot("2024-03-03").delay[0] == pytest.approx(33 / 24)


def test_rows_that_vanish_count_as_negative_and_are_told():
    found = copies([0, 1, 2], [np.nan] * 3)
    last = max(found)
    found[last] = found[last][found[last]["id"] != 101]
    assert any("1 row is missing from later snapshots" in note for note in log_of(found).notes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: dict(list(f.items())[:1]), "1 snapshot is not enough"),
        (
            lambda f: {k: v.assign(paid="yes") for k, v in f.items()},
            "must hold truth values, or 0 and 1, and holds 'yes'",
        ),
        (lambda f: {k: v.assign(paid=2) for k, v in f.items()}, "column 'paid': 1 row is neither 0 nor 1"),
        (
            lambda f: {k: pd.concat([v, v]) for k, v in f.items()},
            "1 row is a repeat of an earlier key in the snapshot of",
        ),
        (lambda f: {k: v.drop(columns="id") for k, v in f.items()}, "has no column 'id'"),
        (lambda f: {k: v.assign(created=1) for k, v in f.items()}, "counts seconds from an unknown origin"),
        (lambda f: {k: v.assign(created=pd.Timestamp("2025-01-01")) for k, v in f.items()}, "after the snapshot"),
        (lambda f: list(f.values()), "must be a mapping from instants to tables"),
        (lambda f: [(min(f), v) for v in f.values()], "two snapshots are of the same instant"),
    ],
)
def test_bad_snapshots(change, message):
    with pytest.raises(ValueError, match=message):
        log_of(change(copies([0, 1, 3], [2, np.nan, 5])))


def test_what_is_positive_must_be_said():
    with pytest.raises(ValueError, match="say which rows are positive"):
        EventLog.from_snapshots(copies([0], [1]), key="id", arrival="created")


def test_one_late_row_does_not_move_the_others():
    found = copies([0, 1, 3, 5], [2, np.nan, 5, np.nan])
    last = max(found)
    found[last] = found[last].assign(
        created=found[last]["created"].where(found[last]["id"] != 103, last + pd.Timedelta("2s"))
    )
    with pytest.raises(
        ValueError, match=r"column 'created': 1 row is after the snapshot of 2024-03-12.*the first at row 3"
    ):
        log_of(found)


def test_an_index_of_pandas_is_no_feature():
    found = copies([0, 1, 3, 3], [2, np.nan, 5, 9])
    found = {k: v.set_index(v["id"] * 7) if number else v for number, (k, v) in enumerate(found.items())}
    assert log_of(found).features == ["age_in_copy"]


def test_copies_with_and_without_zones_are_refused():
    found = copies([0, 1, 3], [2, np.nan, 5])
    last = max(found)
    found[last] = found[last].assign(created=found[last]["created"].dt.tz_localize("Europe/Berlin"))
    with pytest.raises(ValueError, match="has a time zone and column"):
        log_of(found)


@pytest.mark.parametrize(
    ("name", "when"),
    [
        ("leads-2024-03-01.csv", datetime(2024, 3, 1)),
        ("leads_20240301_103015.csv", datetime(2024, 3, 1, 10, 30, 15)),
        ("leads_20240301T1030.csv", datetime(2024, 3, 1, 10, 30)),
        ("leads-20240301101530.csv", datetime(2024, 3, 1, 10, 15, 30)),
        ("leads_2024-03-01_0001.csv", datetime(2024, 3, 1)),
        ("2023-12-31/12345678-2024-03-01.csv", datetime(2024, 3, 1)),
        ("day=2024-03-01/part-0.csv", datetime(2024, 3, 1)),
    ],
)
def test_dates_in_names(name, when):
    from pathlib import Path

    from belated.data.repeated_exports import date_in_name

    assert date_in_name(Path(name)) == when
