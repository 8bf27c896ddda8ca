"""Instants, from what people write to integer microseconds; durations are in :mod:`belated.data.durations`.

Inside the library an instant is an int64 count of microseconds since 1970-01-01 UTC. A log keeps one of two clocks:

- ``"datetime"``: columns of datetimes, dates or ISO 8601 strings. Without a zone they are read as UTC.
- ``"seconds"``: columns of whole or fractional seconds, counted from any origin (Criteo's logs start near 0).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.data.durations import LATEST, is_number, to_float
from belated.tables.frames import decoded, is_text
from belated.tables.refusal import refuse
from belated.typing import Bools, Floats, Ints

NEVER = np.iinfo(np.int64).max


def parse_instant(value: Any, name: str, clock: str) -> int:
    """Read an instant: ISO text, ``datetime``, ``date`` or ``datetime64``, or seconds for a log in seconds."""
    if clock == "seconds":
        if not is_number(value) or not math.isfinite(to_float(value)):
            raise ValueError(
                f"{name}={value!r}: this log counts seconds, so give a number of seconds on the same clock."
            )
        if abs(value) > LATEST / 1e6:
            raise ValueError(f"{name}={value!r} is not plausible as seconds (after the year 5000).")
        return round(float(value) * 1e6)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError(
                f"{name}={value!r} is not an ISO 8601 date or time such as '2024-03-01' or '2024-03-01T12:00Z'."
            ) from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime) or value != value:
        raise ValueError(f"{name} must be a date or time, because this log holds datetimes; got {value!r}.")
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def show_instant(micros: int, clock: str) -> str:
    if clock == "seconds":
        return f"{micros / 1e6:.15g} s"
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)).isoformat(sep=" ")


@dataclass(frozen=True)
class TimeColumn:
    """A column of instants: microseconds, which of them are missing, and the clock they were read on."""

    micros: Ints
    missing: Bools
    clock: str  # "datetime", "seconds", or "empty" when every value is missing
    zoned: bool


def read_times(column: pa.Array, name: str) -> TimeColumn:
    """Read one Arrow column as instants; empty text counts as missing."""
    column = decoded(column)
    kind = column.type
    if is_text(kind):
        text = pc.utf8_trim_whitespace(column)
        column = _parse_text(pc.if_else(pc.equal(text, ""), None, text), name)
        kind = column.type
    missing = np.asarray(column.is_null())
    if missing.all():
        return TimeColumn(np.zeros(len(column), dtype=np.int64), missing, "empty", False)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zoned = pa.types.is_timestamp(kind) and kind.tz is not None
        fine = pa.types.is_timestamp(kind) and kind.unit == "ns"
        try:
            stamps = column.cast(pa.timestamp("us", tz=kind.tz if zoned else None), safe=not fine)
        except pa.ArrowInvalid as error:
            raise ValueError(
                f"column {name!r} holds times out of any range ({error}). Empty them where they mean 'never'."
            ) from None
        micros = np.asarray(stamps.cast(pa.int64()).fill_null(0))
        _plausible(micros / 1e6, missing, name, micros.view("M8[us]"), "Empty the outcome where it means 'never'.")
        return TimeColumn(micros, missing, "datetime", zoned)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        seconds = np.asarray(column.cast(pa.float64(), safe=False).fill_null(np.nan))
        missing = np.isnan(seconds)
        advice = "Divide milliseconds by 1e3 (nanoseconds by 1e9), or pass datetimes."
        _plausible(seconds, missing, name, seconds, advice)
        if not missing.all() and _look_like_dates(seconds[~missing]):
            raise ValueError(
                f"column {name!r} holds numbers such as {seconds[~missing][0]:.0f}, which look like dates written YYYYMMDD, not like seconds. Parse them first."
            )
        clock = "empty" if missing.all() else "seconds"
        return TimeColumn(np.rint(np.where(missing, 0.0, seconds) * 1e6).astype(np.int64), missing, clock, False)
    raise ValueError(
        f"column {name!r} holds {kind}, which is no time. Pass datetimes, ISO 8601 strings, or seconds as numbers."
    )


def _plausible(seconds: Floats, missing: Bools, name: str, values: Any, advice: str) -> None:
    # Python's datetime cannot show years before 1; five years of slack for time zones and rounding.
    bad = ~missing & ((seconds > LATEST / 1e6) | (seconds < -6.2e10))
    refuse(bad, name, "{count} not plausible as a time (after the year 5000, or before the year 5)", values, advice)


def _look_like_dates(seconds: Floats) -> bool:
    if seconds.min() < 19000101 or seconds.max() > 21001231 or (seconds != np.rint(seconds)).any():
        return False
    month, day = seconds // 100 % 100, seconds % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _parse_text(text: pa.Array, name: str) -> pa.Array:
    for target in (pa.timestamp("us"), pa.timestamp("us", tz="UTC")):
        try:
            return text.cast(target)
        except pa.ArrowInvalid:
            continue
    # Arrow knows fewer spellings of ISO 8601 than Python, and stops at the first bad row where we want a count.
    parsed: list[datetime | None] = []
    bad = np.zeros(len(text), dtype=bool)
    values = text.to_pylist()
    for row, value in enumerate(values):
        try:
            parsed.append(None if value is None else datetime.fromisoformat(value))
        except ValueError:
            bad[row] = True
            parsed.append(None)
    refuse(bad, name, "{count} no ISO 8601 time", values, "Write times as '2024-03-01T12:00:00' or parse them first.")
    zoned = np.array([v is not None and v.tzinfo is not None for v in parsed])
    if zoned.any():
        refuse_zoneless(np.array([v is not None and v.tzinfo is None for v in parsed]), name, values)
        return pa.array([None if v is None else v.astimezone(UTC) for v in parsed], pa.timestamp("us", tz="UTC"))
    return pa.array(parsed, pa.timestamp("us"))


def refuse_zoneless(naive: Bools, name: str, values: Any) -> None:
    """Refuse times without a zone in a column where others have one."""
    what = "{count} without a time zone beside others that have one"
    refuse(naive, name, what, values, "Give all of them a zone, or none.")
