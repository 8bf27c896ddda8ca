"""Instants, from what people write to integer microseconds; durations are in :mod:`belated.data.durations`.

Inside the library an instant is an int64 count of microseconds since 1970-01-01 UTC. A log keeps one of three clocks:

- ``"datetime"``: columns of datetimes, dates, or text (ISO 8601, or of a format that is named). Without a zone they are read
  as UTC. Numbers of milliseconds, microseconds or nanoseconds since 1970 belong here too: their size betrays them.
- ``"epoch"``: columns of seconds since 1970. Instants are shown as dates, and may be given as dates or as seconds.
- ``"seconds"``: columns of seconds counted from any other origin (Criteo's logs start near 0).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.data.durations import LATEST, is_number, to_float
from belated.data.time_formats import DAY_FIRST, day_first_format, fitting_formats, parse_formatted
from belated.tables.frames import decoded, is_text
from belated.tables.missing import NEVER_DATES, WORDS_FOR_NOTHING
from belated.tables.refusal import refuse
from belated.typing import Bools, Floats, Ints

NEVER = np.iinfo(np.int64).max
_MINUTE = 60_000_000
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}  # microseconds in each
_UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_FIRST_EPOCH = 1e8  # seconds: 1973; numbers from here on count from 1970
_LARGEST = {"s": LATEST / 1e6, "ms": LATEST / 1e3, "us": float(LATEST), "ns": 1e3 * LATEST}


@dataclass(frozen=True)
class TimeFormat:
    """How times are written, where that is not to be guessed.

    ``format`` is that of text, with the codes of ``strftime`` (``"%d.%m.%Y"``), or ``"dayfirst"``; ``unit`` is what numbers
    count: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.
    """

    format: str | None = None
    unit: str | None = None

    def in_unit_of(self, other: TimeColumn) -> TimeFormat:
        """The same, with numbers in the unit in which another column was read."""
        return self if self.unit is not None or other.unit is None else replace(self, unit=other.unit)

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in _UNITS:
            raise ValueError(f"time_unit={self.unit!r} is not known; choose s, ms, us or ns.")
        if self.format is not None and self.format != DAY_FIRST and "%" not in self.format:
            raise ValueError(
                f"time_format={self.format!r} is not a format. Write for example '%d.%m.%Y' or '%m/%d/%y %H:%M', or dayfirst."
            )
        if self.format not in (None, DAY_FIRST) and not re.search("%[Yy]", self.format or ""):
            raise ValueError(f"time_format={self.format!r} has no year, %Y or %y.")
        if "%Z" in (self.format or ""):
            raise ValueError(
                f"time_format={self.format!r}: names of zones are not clear. Offsets are, as in +0100 (%z)."
            )


_AS_WRITTEN = TimeFormat()


def parse_instant(value: Any, name: str, clock: str) -> int:
    """Read an instant: ISO text, ``datetime``, ``date`` or ``datetime64``, or seconds for a log in seconds."""
    if clock != "datetime" and isinstance(value, str) and re.fullmatch(r"\s*-?\d+(\.\d+)?(\s*s)?\s*", value):
        value = float(value.strip().removesuffix("s"))
    if clock == "seconds" or (clock == "epoch" and is_number(value)):
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


def show_minute(micros: int, clock: str) -> str:
    """An instant as people say it, to the end of its minute; the day alone where that is all there is to say.

    >>> show_minute(1_704_067_200_000_000, "datetime"), show_minute(1_704_070_801_000_000, "datetime")
    ('2024-01-01', '2024-01-01 01:01')
    """
    if clock == "seconds":
        return show_instant(micros, clock)
    return show_instant(-(-micros // _MINUTE) * _MINUTE, clock)[:16].removesuffix(" 00:00")


def in_minutes(text: str) -> str:
    """An instant that is shown already, without what is finer than minutes.

    >>> in_minutes("2024-03-20 23:55:36.359083+00:00"), in_minutes("345598882.578864 s")
    ('2024-03-20 23:55', '345598882.578864 s')
    """
    return text if text.endswith(" s") else text[:16]


@dataclass(frozen=True)
class TimeColumn:
    """A column of instants: microseconds, which of them are missing, and the clock they were read on."""

    micros: Ints
    missing: Bools
    clock: str  # "datetime", "seconds", or "empty" when every value is missing
    zoned: bool
    note: str = ""  # how numbers were understood
    unit: str | None = None  # what numbers count


def read_times(column: pa.Array, name: str, how: TimeFormat = _AS_WRITTEN) -> TimeColumn:
    """Read one Arrow column as instants; empty text and the usual words for nothing count as missing."""
    column = decoded(column)
    kind = column.type
    if how.format is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        column = pa.array(np.asarray(column.cast(pa.float64())), from_pandas=True).cast(pa.int64(), safe=False)
        column, kind = column.cast(pa.large_string()), pa.large_string()
    if is_text(kind):
        text = pc.utf8_trim_whitespace(column)
        text = pc.if_else(pc.is_in(text, value_set=pa.array([*WORDS_FOR_NOTHING, *NEVER_DATES], text.type)), None, text)
        column = _parse_text(text, name, how)
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
        _plausible(
            micros / 1e6,
            missing,
            name,
            micros.view("M8[us]"),
            "Empty the outcome where it means 'never', or name it with --na.",
        )
        return TimeColumn(micros, missing, "datetime", zoned)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _read_numbers(column, name, how)
    if pa.types.is_boolean(kind):
        raise whether_not_when(name, "bool")
    raise ValueError(f"column {name!r} holds {kind}, which is no time. Pass datetimes, text, or seconds as numbers.")


def _read_numbers(column: pa.Array, name: str, how: TimeFormat) -> TimeColumn:
    numbers = np.asarray(column.cast(pa.float64(), safe=False).fill_null(np.nan))
    missing = np.isnan(numbers)
    known = numbers[~missing]
    if not len(known):
        return TimeColumn(np.zeros(len(numbers), dtype=np.int64), missing, "empty", False)
    if how.unit is None and _look_like_dates(known):
        raise ValueError(
            f"column {name!r} holds numbers such as {known[0]:.0f}, which look like dates written YYYYMMDD, not like seconds. Say "
            f"--time-format %Y%m%d (time_format= in Python)."
        )
    # One number that means 'never' must not decide for all.
    unit = how.unit or next((u for u, most in _LARGEST.items() if np.median(np.abs(known)) <= most), "s")
    seconds = numbers * (_UNITS[unit] / 1e6)
    advice = "Correct these times, or empty them where they mean 'never'; --time-unit says what numbers count."
    _plausible(seconds, missing, name, numbers, advice)
    if pa.types.is_integer(column.type) and unit != "ns":  # exact, where a float has too few digits
        micros = np.asarray(column.cast(pa.int64()).fill_null(0)) * int(_UNITS[unit])
    else:
        micros = np.rint(np.where(missing, 0.0, numbers) * _UNITS[unit]).astype(np.int64)
    since_1970 = bool(np.abs(seconds[~missing]).min() >= _FIRST_EPOCH)
    if not since_1970:
        return TimeColumn(micros, missing, "seconds", False, "" if unit == "s" else f"as {_UNIT_NAMES[unit]}", unit)
    note = f"as {_UNIT_NAMES[unit]} since 1970"
    return TimeColumn(micros, missing, "epoch" if unit == "s" else "datetime", True, note, unit)


def _plausible(seconds: Floats, missing: Bools, name: str, values: Any, advice: str) -> None:
    # Python's datetime cannot show years before 1; five years of slack for time zones and rounding.
    bad = ~missing & ((seconds > LATEST / 1e6) | (seconds < -6.2e10))
    refuse(bad, name, "{count} not plausible as a time (after the year 5000, or before the year 5)", values, advice)


def _look_like_dates(seconds: Floats) -> bool:
    if seconds.min() < 19000101 or seconds.max() > 21001231 or (seconds != np.rint(seconds)).any():
        return False
    month, day = seconds // 100 % 100, seconds % 100
    return bool(((month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)).all())


def _parse_text(text: pa.Array, name: str, how: TimeFormat) -> pa.Array:
    if how.format is not None:
        form = day_first_format(text) if how.format == DAY_FIRST else how.format
        stamps, bad = parse_formatted(text, form)
        advice = f"{_advice(text)} If a word means 'never', say so with --na."
        refuse(bad, name, f"{{count}} not of the format {form}", text, advice if bad.any() else "")
        return stamps
    for target in (pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.int64()):
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
    refuse(bad, name, "{count} no ISO 8601 time", values, _advice(text))
    zoned = np.array([v is not None and v.tzinfo is not None for v in parsed])
    if zoned.any():
        refuse_zoneless(np.array([v is not None and v.tzinfo is None for v in parsed]), name, values)
        return pa.array([None if v is None else v.astimezone(UTC) for v in parsed], pa.timestamp("us", tz="UTC"))
    return pa.array(parsed, pa.timestamp("us"))


def whether_not_when(name: str, what: str) -> ValueError:
    """The complaint about an outcome that is a flag."""
    return ValueError(
        f"column {name!r} holds {what}, which is no time. It says whether there was an outcome, and not when. A column with the time of the outcome is "
        f"needed, empty where there is none yet; the time of the last update is another thing, since any later change moves it. Where "
        f"the table keeps nothing but the latest state, two or more exports of it from different days will do: the first one in "
        f"which a row is positive dates its outcome. Use --snapshots with --key (EventLog.from_snapshots in Python)."
    )


def _advice(text: pa.Array) -> str:
    """What to do about text that is no ISO 8601: the format that it fits, where there is one."""
    found = fitting_formats(text)
    if not found:
        return (
            "Correct these rows, or say how times are written with --time-format (time_format= in Python); if a word means 'never', say so "
            "with --na."
        )
    if len(found) == 1:
        return f"They look like {found[0]}: say --time-format '{found[0]}' (time_format= in Python)."
    either = " or ".join(f"--time-format '{form}'" for form in found)
    return f"They may be read in more than one way, and only you know which: say {either} (time_format= in Python)."


def refuse_zoneless(naive: Bools, name: str, values: Any) -> None:
    """Refuse times without a zone in a column where others have one."""
    what = "{count} without a time zone beside others that have one"
    refuse(naive, name, what, values, "Give all of them a zone, or none.")
