"""Times written as text in other ways than ISO 8601: read by a format, and which format they seem to have."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.typing import Bools

DAY_FIRST = "dayfirst"
_DAY_FIRST_DATES = ("%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%d/%m/%y", "%d-%m-%Y", "%d-%m-%y")
_DATES = (
    *_DAY_FIRST_DATES,
    *("%m/%d/%Y", "%m/%d/%y", "%m-%d-%Y", "%m-%d-%y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%y-%m-%d", "%y/%m/%d"),
    *("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y"),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S")
_ZONES = ("", "%z", " %z")
_FAST = set("dmYyHMSIpbB")  # codes that Arrow reads as Python does, and faster
_SAMPLE = 200


def parse_formatted(text: pa.Array, form: str) -> tuple[pa.Array, Bools]:
    """Text of a format as Arrow timestamps, and which rows are not of it.

    >>> stamps, bad = parse_formatted(pa.array(["01.03.2024", "31.02.2024", None]), "%d.%m.%Y")
    >>> stamps.to_pylist(), bad.tolist()
    ([datetime.datetime(2024, 3, 1, 0, 0), None, None], [False, True, False])
    """
    codes = [form[i + 1] for i in range(len(form) - 1) if form[i] == "%"]
    stamps, done = pa.nulls(len(text), pa.timestamp("us")), np.asarray(text.is_null())
    if set(codes) <= _FAST:
        stamps = pc.strptime(text, format=form, unit="s", error_is_null=True)
        # C reads the year 24 where Python wants four digits, and takes dates that do not exist: only what is written the same
        # again is sure.
        again = pc.strftime(stamps, format=form, locale="C")
        if "y" not in codes:  # a year of one digit is a mistake
            again, text = _unpadded(again), _unpadded(text)
        done |= np.asarray(pc.equal(again, text.cast(again.type)).fill_null(False))
        stamps = stamps.cast(pa.timestamp("us"))
    rest = np.flatnonzero(~done)
    bad = np.zeros(len(text), dtype=bool)
    if not len(rest):
        return stamps, bad
    written = text.take(pa.array(rest)).dictionary_encode()
    known = [_parsed(value, form) for value in written.dictionary.to_pylist()]
    bad[rest] = np.array([value is None for value in known])[np.asarray(written.indices)]
    zone = UTC if any(value is not None and value.tzinfo is not None for value in known) else None
    if zone is not None:
        known = [None if value is None else value.astimezone(zone) for value in known]
    kind = pa.timestamp("us", tz="UTC" if zone else None)
    late = pa.array(known, kind).take(written.indices)
    sure = pc.if_else(pa.array(done), stamps, None).cast(kind)
    return pc.replace_with_mask(sure, pa.array(~done), late), bad


def fitting_formats(text: pa.Array) -> list[str]:
    """The formats that text may have: at most one, or two where days and months could change places.

    >>> fitting_formats(pa.array(["01/02/2024", "13/02/2024"])), fitting_formats(pa.array(["01/02/2024", None]))
    (['%d/%m/%Y'], ['%d/%m/%Y', '%m/%d/%Y'])
    """
    sample = text.drop_null().unique()
    # The first few settle most of it; a day above 12 may come late.
    few = sample.slice(0, _SAMPLE).to_pylist()
    found = ["".join(parts) for parts in product(_DATES, _TIMES, _ZONES)]
    found = [form for form in found if few and all(_parsed(value, form) is not None for value in few)]
    if len(found) > 1:
        rest = sample.slice(_SAMPLE).to_pylist()
        found = [form for form in found if all(_parsed(value, form) is not None for value in rest)]
    return found[:2]


def day_first_format(text: pa.Array) -> str:
    """The format with the day first that fits most of the text, so that the rows at fault are named."""
    few = text.drop_null().unique().slice(0, _SAMPLE).to_pylist()
    forms = ["".join(parts) for parts in product(_DAY_FIRST_DATES, _TIMES, _ZONES)]
    return max(forms, key=lambda form: sum(_parsed(value, form) is not None for value in few))


def _unpadded(text: pa.Array) -> pa.Array:
    """Without zeros in front of numbers, which people leave out."""
    return pc.replace_substring_regex(text.cast(pa.large_string()), r"\b0(\d)\b", r"\1")


def _parsed(value: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(value, form)
    except ValueError:
        return None
