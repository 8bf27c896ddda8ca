"""What is worth knowing about the columns of a log before they are used as features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from belated.data.durations import DAY
from belated.data.event_log import EventLog
from belated.data.time_formats import fitting_formats
from belated.evaluation.leaks import Seen, Values, evidence
from belated.features.column_encodings import read_feature
from belated.notices import logger
from belated.tables.frames import is_text, open_table, take_rows
from belated.tables.missing import EMPTY_TEXT, missing_words

_MOST_ROWS = 50_000  # that are looked at, evenly spread
_NEARLY_UNIQUE = 0.9
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
_CODE_NAME = re.compile(
    r"(^|.*[_ \W])(id|code|zip|zipcode|postcode|plz|sku|nr|no|number|key|isbn|ean)s?$", re.IGNORECASE
)


@dataclass(frozen=True)
class ColumnFinding:
    """Something about a column: ``kind`` is leak, id, date, constant, empty or code."""

    column: str
    kind: str
    text: str


def examine_columns(log: EventLog, horizon: int | None) -> list[ColumnFinding]:
    """Everything worth knowing about the feature columns of a log; ``horizon`` in microseconds."""
    return [found for name, column, seen in _columns(log, horizon) for found in _look_at(name, column, seen)]


def leaks(log: EventLog, horizon: int | None, keep: Sequence[str] = ()) -> list[ColumnFinding]:
    """Feature columns that seem to know the outcome, but for those to keep."""
    found = (
        (name, evidence(Values.of(column), seen)) for name, column, seen in _columns(log, horizon) if name not in keep
    )
    return [ColumnFinding(name, "leak", why) for name, why in found if why is not None]


def refuse_leaks(log: EventLog, horizon: int, keep: Sequence[str]) -> None:
    """Refuse features that seem to know the outcome, and say how to go on."""
    if isinstance(keep, str):
        raise ValueError(f"keep={keep!r} must be a list of columns, such as [{keep!r}].")
    unknown = [name for name in keep if name not in log.features]
    if unknown:
        raise ValueError(
            f"keep names {', '.join(map(repr, unknown))}, which is no feature; the features are {', '.join(log.features)}."
        )
    found = leaks(log, horizon, keep)
    logger.info("columns that seem to know the outcome: %s", [one.column for one in found] or "none")
    if not found:
        return
    names = [one.column for one in found]
    told = "; ".join(f"{one.column}: {one.text}" for one in found)
    them, drop = ("it", "it") if len(found) == 1 else ("they", "them")
    raise ValueError(
        f"{', '.join(names)} {'seems' if len(found) == 1 else 'seem'} to know the outcome, and at arrival, when a model is asked, "
        f"{them} could not. {told}. Leave {drop} out with --drop {','.join(names)} (features= in Python), or say that {them} "
        f"{'is' if len(found) == 1 else 'are'} known at arrival: {' '.join(f'--keep {name}' for name in names)} (keep= in Python)."
    )


def _columns(log: EventLog, horizon: int | None) -> Iterator[tuple[str, pa.Array, Seen]]:
    """Feature columns that can be encoded, of rows spread over the log."""
    if not nw.dependencies.is_into_dataframe(log.frame):
        return
    snap = log.latest(None, None)
    some = np.zeros(len(snap), dtype=bool)
    some[:: -(-len(snap) // _MOST_ROWS)] = True
    table = open_table(take_rows(snap.X, some), "the log")
    seen = Seen(snap.elapsed[some], snap.delay[some], None if horizon is None else horizon / DAY)
    for name in table.columns:
        try:
            column = read_feature(table, name)
        except ValueError:  # a list, or a date: the encoder refuses it, and says why
            continue
        yield name, missing_words(column, EMPTY_TEXT), seen


def _look_at(name: str, column: pa.Array, seen: Seen) -> Iterator[ColumnFinding]:
    known = column.drop_null()
    distinct = len(pc.unique(known))
    if not len(known):
        yield ColumnFinding(name, "empty", "it has no value in any row. Leave it out.")
        return
    if distinct == 1:
        rest = "" if len(known) == len(column) else f" or missing ({1 - len(known) / len(column):.0%})"
        yield ColumnFinding(name, "constant", f"it is {known[0].as_py()!r} in every row{rest}.")
    why = evidence(Values.of(column), seen)
    if why is not None:
        yield ColumnFinding(name, "leak", f"it seems to know the outcome: {why}.")
    elif _is_date(known):
        yield ColumnFinding(
            name,
            "date",
            f"it holds dates, such as {known[0].as_py()}. Leave it out, or derive a weekday, an hour, or a number of days.",
        )
    elif len(known) >= 50 and distinct > _NEARLY_UNIQUE * len(known) and not _has_fractions(known):
        yield ColumnFinding(
            name,
            "id",
            f"{distinct:,} of {len(known):,} values differ: it looks like an id, from which nothing can be learned. Leave it out.",
        )
    elif _is_code(name, known, distinct):
        yield ColumnFinding(
            name,
            "code",
            f"its {distinct:,} numbers, such as {known[0].as_py()}, look like codes and not like quantities. If so, say --category {name} (in "
            f"Python, make it text).",
        )


def _is_date(known: pa.Array) -> bool:
    sample: list[Any] = known.slice(0, 50).to_pylist()
    if is_text(known.type):
        return all(_ISO.fullmatch(value.strip()) for value in sample) or bool(fitting_formats(known.slice(0, 50)))
    if pa.types.is_integer(known.type):
        return all(
            19000101 <= value <= 21001231 and 1 <= value // 100 % 100 <= 12 and 1 <= value % 100 <= 31
            for value in sample
        )
    return False


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
