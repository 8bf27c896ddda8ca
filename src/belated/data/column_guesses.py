"""What can be told of a table that may be a log, before anybody says so: which columns hold its times."""

from __future__ import annotations

import re

import pyarrow as pa

from belated.tables.frames import is_text

_ARRIVAL = r"(arriv\w*|click\w*|book(ed|ing)\w*|creat\w*|order\w*|purchas\w*|impress\w*|visit\w*|admi\w*|discharg\w*|paid|payment\w*|sign_?up\w*|install\w*)"
_OUTCOME = r"(outcome\w*|conver\w*|cancel\w*|charge_?back\w*|readmi\w*|return\w*|refund\w*|churn\w*|default\w*|fraud\w*|label\w*|(closed[_ ]?)?won)"
_TIME = r"([_ -]?(time|date|at|on|ts|timestamp|day|datetime))?"
_SCORED = r"(scored?|predict(ed|ion)?)(?=[_ -])"  # followed by a word for time: a score alone is none


def time_like_names(names: list[str]) -> list[str]:
    """Names that arrivals or outcomes may have.

    >>> time_like_names(["click_time", "campaign", "converted_at"])
    ['click_time', 'converted_at']
    """
    pattern = re.compile(f"({_ARRIVAL}|{_OUTCOME}|{_SCORED}){_TIME}", re.IGNORECASE)
    return [name for name in names if pattern.fullmatch(name)]


def guess_columns(table: pa.Table) -> dict[str, str]:
    """Names of the columns of arrivals and outcomes, and of when rows were scored, where exactly one has an obvious name and holds times.

    >>> guess_columns(pa.table({"click_time": ["2024-01-01"], "converted_at": ["2024-01-02"], "campaign": ["a"]}))
    {'arrival': 'click_time', 'outcome': 'converted_at'}
    >>> guess_columns(pa.table({"Created Date": ["2024-01-01"], "Closed Won Date": ["2024-01-02"]}))
    {'arrival': 'Created Date', 'outcome': 'Closed Won Date'}
    """
    found = {}
    for role, words in (("arrival", _ARRIVAL), ("outcome", _OUTCOME), ("scoring", _SCORED)):
        pattern = re.compile(words + _TIME, re.IGNORECASE)
        names = [name for name in table.column_names if pattern.fullmatch(name) and _may_be_time(table[name])]
        if len(names) == 1:
            found[role] = names[0]
    return found


def _may_be_time(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_null(kind):
        return True
    if is_text(kind):
        sample = column.drop_null()[:5].to_pylist()
        return bool(sample) and all(
            re.match(r"\d{4}-\d\d-\d\d|\d{1,2}[./-]\d{1,2}[./-]\d{2}", v.strip()) for v in sample
        )
    return (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and len(column.drop_null()[:50].unique()) > 2
