"""Times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from effort import given_some
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from belated import EventLog
from belated.data.time_formats import fitting_formats, parse_formatted
from belated.data.times import TimeFormat, read_times

FORMATS = [
    "%d.%m.%Y",
    "%m/%d/%y",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %I:%M %p",
    "%Y%m%d",
    "%d %b %Y",
    "%Y/%m/%d %H:%M:%S",
    "%d.%m.%Y %H:%M:%S.%f",
]


@given_some(
    st.lists(st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)), min_size=1, max_size=8), st.sampled_from(FORMATS)
)
def test_there_and_back(times, form):
    text = [t.strftime(form) for t in times]
    stamps, bad = parse_formatted(pa.array(text), form)
    assert not bad.any()
    assert stamps.to_pylist() == [datetime.strptime(value, form) for value in text]


@given_some(
    st.lists(st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)), min_size=1, max_size=8),
    st.sampled_from(FORMATS),
    few=20,
)
def test_the_format_that_was_used_is_among_those_offered_or_means_the_same(times, form):
    text = pa.array([t.strftime(form) for t in times])
    offered = fitting_formats(text)
    assert offered
    read = [parse_formatted(text, one)[0].to_pylist() for one in offered]
    assert parse_formatted(text, form)[0].to_pylist() in read


def test_unpadded_and_impossible_dates():
    stamps, bad = parse_formatted(pa.array(["3/1/24", "12/31/23", "2/30/24", "1/1/2024", None]), "%m/%d/%y")
    assert bad.tolist() == [False, False, True, True, False]
    assert stamps.to_pylist()[:2] == [datetime(2024, 3, 1), datetime(2023, 12, 31)]
    assert parse_formatted(pa.array(["01.01.24"]), "%d.%m.%Y")[1].tolist() == [True]  # not the year 24
    assert parse_formatted(pa.array(["03/05/2", "03/05/02"]), "%m/%d/%y")[1].tolist() == [True, False]


def test_offsets_in_a_format():
    stamps, _ = parse_formatted(pa.array(["01.03.2024 10:00 +0100", "01.03.2024 10:00 -0500"]), "%d.%m.%Y %H:%M %z")
    assert stamps.to_pylist() == [datetime(2024, 3, 1, 9, tzinfo=UTC), datetime(2024, 3, 1, 15, tzinfo=UTC)]


@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.large_string()])
def test_numbers_since_1970_by_their_size(unit, scale, kind):
    seconds = np.array([1_704_067_200, 1_709_251_200, 1_735_689_600])
    column = pa.array(seconds * scale).cast(kind, safe=False)
    found = read_times(column, "at")
    expected = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[unit]
    assert_array_equal(found.micros, seconds * 10**6)
    assert f"as {expected} since 1970" in found.note and found.clock == ("epoch" if unit == "s" else "datetime")
    assert_array_equal(read_times(column, "at", TimeFormat(unit=unit)).micros, seconds * 10**6)


def test_microseconds_keep_all_digits():
    micros = np.array([1_704_067_200_123_457, 1_704_067_200_123_458])
    assert_array_equal(read_times(pa.array(micros), "at").micros, micros)


def test_small_numbers_are_seconds_from_any_origin():
    found = read_times(pa.array([0, 86400, 5_000_000]), "at")
    assert found.clock == "seconds" and found.note == ""
    assert read_times(pa.array([0, 86_400_000]), "at", TimeFormat(unit="ms")).micros.tolist() == [0, 86_400_000_000]


def test_a_log_of_seconds_since_1970_takes_dates_and_seconds():
    start = 1_704_067_200
    table = pa.table(
        {"at": [start, start + 86400, start + 900_000], "out": [start + 90_000, None, None], "x": [1, 2, 3]}
    )
    log = EventLog.from_frame(table, arrival="at", outcome="out")
    a, b = log.snapshot("2024-01-05", horizon="3d"), log.snapshot(start + 4 * 86400, horizon=3 * 86400)
    assert_array_equal(a.delay, b.delay)
    assert a.as_of == b.as_of == "2024-01-05 00:00:00+00:00" and len(log.notes) == 2
    zoned = pa.array([datetime.fromtimestamp(start, UTC) + timedelta(hours=25), None, None])
    mixed = EventLog.from_frame(table.set_column(1, "out", zoned), arrival="at", outcome="out")
    assert_array_equal(mixed.snapshot("2024-01-05").delay, log.snapshot("2024-01-05").delay)


def test_usual_words_for_nothing_are_missing_in_times():
    found = read_times(pa.array(["2024-01-01", "NULL", "nan", "", "NaT", None]), "at")
    assert found.missing.tolist() == [False] + [True] * 5
