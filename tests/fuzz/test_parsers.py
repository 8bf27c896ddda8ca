"""Readers of durations, instants and files: an answer that is right, or a refusal in words. Never another error."""

from __future__ import annotations

import io
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from effort import given_some
from hypothesis import strategies as st

from belated import load
from belated.data.durations import DAY, parse_age, parse_duration
from belated.data.times import parse_instant
from belated.tables.sources import read_table

UNITS = {"w": 7, "d": 1, "h": 1 / 24, "min": 1 / 1440, "s": 1 / 86400, "weeks": 7, "day": 1, "hours": 1 / 24}
PARTS = st.lists(st.tuples(st.integers(0, 500), st.sampled_from(sorted(UNITS))), min_size=1, max_size=4)


@given_some(PARTS, st.sampled_from(["", " "]))
def test_durations_are_the_sum_of_their_parts(parts, space):
    text = space.join(f"{number}{space}{unit}" for number, unit in parts)
    days = sum(number * UNITS[unit] for number, unit in parts)
    if days == 0:
        with pytest.raises(ValueError, match="longer than zero"):
            parse_duration(text, "horizon")
    else:
        assert parse_duration(text, "horizon") == round(days * DAY)


@given_some(st.text(max_size=12) | st.floats() | st.integers() | st.none() | st.booleans() | st.timedeltas())
def test_whatever_is_no_duration_is_refused_by_name(value):
    for parse in (lambda: parse_duration(value, "horizon"), lambda: parse_duration(value, "horizon", "seconds")):
        try:
            assert 0 < parse() <= 10**17
        except ValueError as error:
            assert "horizon" in str(error)
    try:
        found = parse_age(value, "window")
        assert found is None or 0 < found < np.inf
    except ValueError as error:
        assert "window" in str(error)


@given_some(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)))
def test_instants_come_back(value):
    micros = (value.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    for form in (value, value.isoformat(), value.isoformat(sep=" "), np.datetime64(value, "us")):
        assert parse_instant(form, "as_of", "datetime") == micros


@given_some(st.text(max_size=20) | st.floats() | st.none() | st.booleans())
def test_whatever_is_no_instant_is_refused_by_name(value):
    for clock in ("datetime", "seconds"):
        try:
            assert isinstance(parse_instant(value, "as_of", clock), int)
        except ValueError as error:
            assert "as_of" in str(error)


def small_files():
    """A Parquet and a CSV file to damage."""
    table = pa.table(
        {"click_time": ["2024-01-01", "2024-01-02", None], "x": [1.5, None, 2.0], "c": ["a", "ü", "b,\nc"]}
    )
    parquet, csv = io.BytesIO(), io.BytesIO()
    pq.write_table(table, parquet)
    pcsv.write_csv(table, csv)
    return {"f.parquet": parquet.getvalue(), "f.csv": csv.getvalue()}


FILES = small_files()


@given_some(st.sampled_from(sorted(FILES)), st.integers(0, 10**6), st.binary(max_size=6), st.booleans(), few=100)
def test_damaged_files_are_read_or_refused_by_name(name, place, patch, cut):
    whole = FILES[name]
    place %= len(whole)
    damaged = whole[:place] + patch + (b"" if cut else whole[place + len(patch) :])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(damaged)
        try:
            assert isinstance(read_table(path), pa.Table)
        except ValueError as error:
            assert name in str(error)


MODEL = (Path(__file__).parents[1] / "model_files" / "format2-fields.skops").read_bytes()


@given_some(st.integers(0, len(MODEL) - 1), st.binary(min_size=1, max_size=8), few=40, many=1000)
def test_damaged_models_are_loaded_or_refused_by_name(place, patch):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.skops"
        path.write_bytes(MODEL[:place] + patch + MODEL[place + len(patch) :])
        try:
            load(path)
        except ValueError as error:
            assert str(error).startswith("m.skops: ")
