"""What is worth knowing about the columns of a log before they are used as features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.data.durations import DAY
from belated.data.event_log import EventLog
from belated.data.time_formats import fitting_formats
from belated.evaluation.leaks import Seen, Values, evidence
from belated.features.column_encodings import read_feature
from belated.features.field_matrix import FieldMatrix
from belated.notices import logger, warn
from belated.tables.frames import is_text, open_table, take_rows, to_arrow
from belated.tables.missing import EMPTY_TEXT, missing_words

_MOST_ROWS = 50_000  # that are looked at, evenly spread
_NEARLY_UNIQUE = 0.9
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
_MARKED_NUMBER = re.compile(
    r"[+-]?\s?([$€£¥]|(USD|EUR|GBP|CHF|JPY)\s)?\s?[+-]?(\d{1,3}([.,' \u00a0\u202f]\d{3})+|\d+)([.,]\d{1,2})?\s?([$€£¥]|\s(USD|EUR|GBP|CHF|JPY))?"
)
_CODE_NAME = re.compile(
    r"(^|.*[_ \W])(id|code|zip|zipcode|postcode|plz|sku|nr|no|number|key|isbn|ean)s?$", re.IGNORECASE
)


@dataclass(frozen=True)
class ColumnFinding:
    """Something about a column: ``kind`` is leak, id, date, constant, empty, code or number (one written with marks, as text)."""

    column: str
    kind: str
    text: str


def examine_columns(log: EventLog, horizon: int | None) -> list[ColumnFinding]:
    """Everything worth knowing about the feature columns of a log; ``horizon`` in microseconds.

    Of hashed fields only whether they know the outcome can be told.
    """
    if isinstance(log.frame, FieldMatrix):
        return leaks(log, horizon)
    return [found for name, column, seen in _columns(log, horizon) for found in _look_at(name, column, seen)]


def leaks(log: EventLog, horizon: int | None, keep: Sequence[str] = ()) -> list[ColumnFinding]:
    """Feature columns that seem to know the outcome, but for those to keep."""
    found = (
        (name, evidence(Values.of(column), seen)) for name, column, seen in _columns(log, horizon) if name not in keep
    )
    return [ColumnFinding(name, "leak", why) for name, why in found if why is not None]


def check_columns(log: EventLog, horizon: int, keep: Sequence[str]) -> None:
    """Refuse features that seem to know the outcome, and say how to go on; warn of those that tell little but the time."""
    if isinstance(keep, str):
        raise ValueError(f"keep={keep!r} must be a list of columns, such as [{keep!r}].")
    unknown = [name for name in keep if name not in log.features]
    if unknown:
        named = ", ".join(map(repr, unknown))
        raise ValueError(f"keep names {named}, which is no feature; the features are {', '.join(log.features)}.")
    if log.on_cluster:  # what columns are shows in some of the rows
        log = log.sample(min(1.0, _MOST_ROWS / len(log))).collect()
    found = [one for one in examine_columns(log, horizon) if one.column not in keep]
    logger.info("columns: %s", [f"{one.column} ({one.kind})" for one in found] or "nothing to say")
    guilty = [one for one in found if one.kind == "leak"]
    if guilty:
        raise _refusal(guilty)
    for one in found:
        if one.kind in ("id", "date", "number"):
            warn(f"column {one.column}: {one.text}", stacklevel=3)


def _refusal(found: list[ColumnFinding]) -> ValueError:
    names = [one.column for one in found]
    several = len(found) > 1
    them, seem, are = ("they", "seem", "are") if several else ("it", "seems", "is")
    told = "; ".join(f"{one.column}: {one.text.removesuffix('.')}" for one in found)
    keep = " ".join(f"--keep {quote(name)}" for name in names)
    return ValueError(
        f"{', '.join(names)} {seem} to know the outcome, and at arrival, when a model is asked, {them} could not. {told}. Leave "
        f"{'them' if several else 'it'} out with --drop {quote(','.join(names))} (log.without_features({', '.join(map(repr, names))}) in Python), or say that {them} {are} known at arrival: "
        f"{keep} (keep= in Python)."
    )


def _columns(log: EventLog, horizon: int | None) -> Iterator[tuple[str, pa.Array, Seen]]:
    """Feature columns that can be encoded, of rows spread over the log."""
    snap = log.latest(None, None)
    some = np.zeros(len(snap), dtype=bool)
    some[:: -(-len(snap) // _MOST_ROWS)] = True
    seen = Seen(snap.elapsed[some], snap.delay[some], None if horizon is None else horizon / DAY)
    if isinstance(snap.X, FieldMatrix):
        for name, codes in zip(log.features, snap.X[some].indices.T, strict=True):
            yield name, pa.array(codes).cast(pa.large_string()), seen
        return
    table = open_table(take_rows(snap.X, some), "the log")
    for name in table.columns:
        try:
            column = read_feature(table, name)
        except ValueError:  # a list, say: the encoder refuses it, and says why
            column = to_arrow(table, name)
            if pa.types.is_temporal(column.type):
                yield name, column, seen
            continue
        yield name, missing_words(column, EMPTY_TEXT), seen


def _look_at(name: str, column: pa.Array, seen: Seen) -> Iterator[ColumnFinding]:
    known = column.drop_null()
    if pa.types.is_temporal(column.type):
        yield ColumnFinding(name, "date", _about_dates(known))
        return
    distinct = len(pc.unique(known))
    if not len(known):
        yield ColumnFinding(name, "empty", "it has no value in any row. Leave it out.")
        return
    if distinct == 1:
        rest = "" if len(known) == len(column) else f" or missing ({1 - len(known) / len(column):.0%})"
        yield ColumnFinding(name, "constant", f"it is {known[0].as_py()!r} in every row{rest}.")
    why = evidence(Values.of(column), seen)
    if why is not None:
        yield ColumnFinding(name, "leak", f"{why}.")
    elif _is_date(known):
        yield ColumnFinding(name, "date", _about_dates(known))
    elif (example := _written_for_people(known)) is not None:
        yield ColumnFinding(
            name,
            "number",
            f"it holds numbers with marks, such as {example}, and is taken for text, each value a category of its own. Write them plainly (1234.5), or leave it out.",
        )
    elif len(known) >= 50 and distinct > _NEARLY_UNIQUE * len(known) and not _has_fractions(known):
        yield ColumnFinding(
            name,
            "id",
            f"{distinct:,} of {len(known):,} values differ: it looks like an id. From one that grows with time a model learns who is young, "
            f"from another nothing. Leave it out.",
        )
    elif _is_code(name, known, distinct):
        yield ColumnFinding(
            name,
            "code",
            f"its {distinct:,} numbers, such as {known[0].as_py()}, look like codes and not like quantities. If so, say --category {name} (in "
            f"Python, make it text).",
        )


def _written_for_people(known: pa.Array) -> str | None:
    """An example where a column of text holds numbers with marks between thousands, or a currency."""
    if not is_text(known.type):
        return None
    sample = [value.strip() for value in known.slice(0, 1000).to_pylist() if value.strip()]
    if not sample or not all(_MARKED_NUMBER.fullmatch(value) for value in sample):
        return None
    return next((value for value in sample if not re.fullmatch(r"[+-]?\d+(\.\d+)?", value)), None)


def _about_dates(known: pa.Array) -> str:
    example = f", such as {known[0].as_py()}" if len(known) else ""
    return f"it holds dates{example}. Leave it out, or derive a weekday, an hour, or a number of days."


def _is_date(known: pa.Array) -> bool:
    sample: list[Any] = known.slice(0, 50).to_pylist()
    if is_text(known.type):
        return all(_ISO.fullmatch(value.strip()) for value in sample) or bool(fitting_formats(known.slice(0, 50)))
    if pa.types.is_integer(known.type):
        return all(_may_be_date(value) for value in sample)
    return False


def _may_be_date(value: int) -> bool:
    """A date written YYYYMMDD, or seconds, milliseconds or microseconds since 1970, from 2001 on."""
    since_1970 = any(10**9 <= value / scale < 4 * 10**9 for scale in (1, 10**3, 10**6))
    return since_1970 or (19000101 <= value <= 21001231 and 1 <= value // 100 % 100 <= 12 and 1 <= value % 100 <= 31)


def _has_fractions(known: pa.Array) -> bool:
    if not pa.types.is_floating(known.type):
        return False
    numbers = np.asarray(known)
    return bool((numbers != np.rint(numbers)).any())


def _is_code(name: str, known: pa.Array, distinct: int) -> bool:
    if not pa.types.is_integer(known.type) or distinct < 3:
        return False
    digits = {len(str(abs(value))) for value in known.slice(0, 1000).to_pylist()}
    return bool(_CODE_NAME.fullmatch(name)) or (len(digits) == 1 and min(digits) >= 4 and distinct < len(known) / 2)
