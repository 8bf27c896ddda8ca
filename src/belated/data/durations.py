"""Durations, from what people write. Everything that takes a duration reads it here.

- Whatever is asked of a log (``lookback``, ``horizon``, ``window``, ``period``) takes text such as ``"21d"``, ``"36h"``,
  ``"1d12h"`` or ``"P21D"``, a ``timedelta`` (also NumPy's and pandas'), and of a log that counts seconds also a number of seconds. Units
  are w, d, h, min and s, or their names in full. :func:`parse_duration` reads it.
- The classifier knows no log. Its ``window`` and ``horizon`` are numbers in the unit of ``elapsed``, which is days where that
  comes from a snapshot. :func:`parse_age` reads it.
- ``Snapshot.rewind`` takes either: a number of days (the unit of its ``elapsed``, whatever the log counts in), or text or a
  timedelta.

Inside the library a duration is an int64 count of microseconds, and a float number of days where it meets a method.
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from numbers import Real
from typing import Any

import numpy as np

DAY = 86_400_000_000  # microseconds
LATEST = 10**17  # microseconds: the year 5138; what is later is milliseconds taken for seconds, or means "never"

_UNITS = {
    "w": (7 * DAY, "week", "weeks"),
    "d": (DAY, "day", "days"),
    "h": (DAY // 24, "hour", "hours"),
    "min": (DAY // 1440, "minute", "minutes"),
    "s": (DAY // 86400, "second", "seconds"),
}
_MICROS = {name: length for short, (length, *names) in _UNITS.items() for name in (short, *names)}
_NUMBER = r"\d+(?:\.\d+)?"
_PART = re.compile(rf"({_NUMBER})\s*([a-z]+)")
_ISO = re.compile(  # ISO 8601, as in P14D or PT1.5H
    rf"p(?=.)(?:(?P<w>{_NUMBER})w)?(?:(?P<d>{_NUMBER})d)?(?:t(?=.)(?:(?P<h>{_NUMBER})h)?(?:(?P<min>{_NUMBER})m)?(?:(?P<s>{_NUMBER})s)?)?"
)


def to_days(micros: Any) -> Any:
    return micros / DAY


def is_number(value: Any) -> bool:
    """Whether a value is a plain number, and no truth value or timedelta."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def parse_duration(value: Any, name: str, clock: str = "datetime") -> int:
    """Read ``"21d"``, ``"1d12h"``, a ``timedelta``, or (for a log in seconds) a number of seconds, as microseconds.

    >>> parse_duration("36h", "lookback") == parse_duration(timedelta(days=1.5), "lookback")
    True
    """
    if isinstance(value, str) and clock != "datetime" and re.fullmatch(_NUMBER, value.strip()):
        value = float(value)
    if is_number(value):
        micros = _from_seconds(value, name, clock)
    elif isinstance(value, str):
        micros = _from_text(value, name)
    elif isinstance(value, timedelta | np.timedelta64) and value == value:
        micros = _from_timedelta(value, name)
    else:
        raise ValueError(f"{name} must be a duration such as '21d' or a timedelta, got {value!r}.")
    if micros <= 0:
        raise ValueError(f"{name}={value!r} must be longer than zero.")
    if micros > LATEST:
        raise ValueError(f"{name}={value!r} is longer than any log.")
    return micros


def to_float(value: Any) -> float:
    """A number as a float; infinity where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _from_seconds(value: Any, name: str, clock: str) -> int:
    number = to_float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name}={value!r} is not a duration.")
    if number > LATEST:
        raise ValueError(f"{name}={value!r} is longer than any log.")
    if clock == "datetime" and value > 0:
        raise ValueError(
            f"{name}={value!r} has no unit, and this log holds datetimes. Write for example '{value}d' or a timedelta."
        )
    return round(float(value) * 1e6)


def _from_text(value: str, name: str) -> int:
    text = value.strip().lower()
    iso = _ISO.fullmatch(text)
    parts = _PART.findall(text) if iso is None else [(n, unit) for unit, n in iso.groupdict().items() if n]
    for number, unit in parts:
        if unit == "m":
            raise ValueError(
                f"{name}={value!r} is not clear: m may mean minutes or months. Write '{number}min' for minutes, or "
                f"'{float(number) * 30:g}d' for months of 30 days."
            )
        if unit in ("mo", "month", "months", "y", "year", "years"):
            raise ValueError(
                f"{name}={value!r}: months and years differ in length. Write days, as in "
                f"'{float(number) * (365 if unit[0] == 'y' else 30):g}d'."
            )
    if not parts or (iso is None and _PART.sub("", text).strip()) or any(unit not in _MICROS for _, unit in parts):
        raise ValueError(
            f"{name}={value!r} is not a duration. Write a number with a unit (w, d, h, min, s), for example '21d' or '36h'."
        )
    return round(sum(float(number) * _MICROS[unit] for number, unit in parts))


def _from_timedelta(value: timedelta | np.timedelta64, name: str) -> int:
    if isinstance(value, timedelta):
        return round(value / timedelta(microseconds=1))
    if np.datetime_data(value)[0] in ("Y", "M", "generic"):
        raise ValueError(f"{name}={value!r} has no fixed length. Give it in days.")
    return int(value.astype("timedelta64[us]").astype(np.int64))


def parse_age(value: Any, name: str) -> float | None:
    """Read a number in the unit of ``elapsed``; None where there is none.

    >>> parse_age(7, "window")
    7.0
    """
    if value is None:
        return None
    if not is_number(value) or not 0 < to_float(value) < math.inf:
        raise ValueError(f"{name}={value!r} must be a positive number, in the unit of elapsed.{_hint(value, name)}")
    return float(value)


def duration_text(days: float) -> str:
    """A number of days as one would write it, exact to the microsecond.

    >>> duration_text(14.0), duration_text(14 / 24), duration_text(7.5), duration_text(0.123456)
    ('14d', '14h', '180h', '0.123456d')
    """
    micros = round(days * DAY)
    for unit in ("d", "h", "min"):
        if micros % _UNITS[unit][0] == 0:
            return f"{micros // _UNITS[unit][0]}{unit}"
    return f"{micros / DAY:.15g}d" if micros > _UNITS["min"][0] else f"{micros / 1e6:.6f}s"


def in_words(days: float) -> str:
    """A number of days in a sentence.

    >>> in_words(14.0), in_words(1), in_words(0.5), in_words(7.161)
    ('14 days', '1 day', '12 hours', '7.16 days')
    """
    number, unit = (days, "day") if days >= 1 else (days * 24, "hour")
    text = f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
    return f"{text} {unit}{'' if text == '1' else 's'}"


def in_short(days: float) -> str:
    """The same, but where it is long and no whole number of days or few hours, up to the next tenth of a day.

    >>> in_short(7.161), in_short(7.0), in_short(1636 / 24), in_short(36 / 24)
    ('7.2d', '7d', '68.2d', '36h')
    """
    text = duration_text(days)
    short = "." not in text and (text.endswith("d") or days < 3)
    return text if short or days <= 1 else f"{math.ceil(days * 10 - 1e-9) / 10:g}d"


def _hint(value: Any, name: str) -> str:
    """What a duration would be as a number of days."""
    try:
        return f" Where that is days, write {to_days(parse_duration(value, name)):g}."
    except ValueError:
        return " Write it without a unit." if isinstance(value, str) else ""


def parse_budget(value: Any) -> float:
    """How long work may take, in seconds; here m means minutes, for nobody waits months.

    >>> parse_budget("10m"), parse_budget("1.5h"), parse_budget(30)
    (600.0, 5400.0, 30.0)
    """
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9.]+\s*m\s*", value):
        value = value.strip() + "in"
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = timedelta(seconds=value)
    seconds = parse_duration(value, "budget", "datetime") / 1e6
    if not seconds > 0:
        raise ValueError(f"budget={value!r} must be longer than nothing.")
    return seconds
