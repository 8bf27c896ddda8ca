"""A log from files, as the command line names them: guesses that are shown, and complaints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa

from belated.cli.terminal import out, plain
from belated.data.column_guesses import guess_columns, refuse_future
from belated.data.event_log import EventLog
from belated.tables.files import read_table
from belated.tables.frames import kinds_of

_MOST_COLUMNS = 1000


def open_log(log: Path, options: dict[str, Any]) -> tuple[pa.Table, EventLog]:
    """Read the files that options name, guess what they do not, and show the guess."""
    table = read_table(log)
    outcomes = None if options["outcomes"] is None else read_table(options["outcomes"])
    if (outcomes is None) != (options["key"] is None):
        raise ValueError(
            "--outcomes and --key go together: a file of outcomes, and the column by which its rows find theirs."
        )
    roles = _time_columns(table, table if outcomes is None else outcomes, options)
    features = _feature_columns(table, log.name, roles, options)
    arguments: dict[str, Any] = {
        **roles,
        "features": features,
        "until": _until(table, roles["arrival"], options["until"]),
    }
    if outcomes is None:
        events = EventLog.from_frame(table, **arguments)
    else:
        events = EventLog.from_frames(table, outcomes, key=options["key"], **arguments)
    _check_outcomes(events)
    shown = f"{len(events):,} rows, {events.positives:,} with an outcome; features: {_listed(features)}."
    out.print(plain(shown))
    return table, events


def _time_columns(arrivals: pa.Table, outcomes: pa.Table, options: dict[str, Any]) -> dict[str, str]:
    """The columns of arrivals and outcomes, as named or as guessed; both tables are the same where there is one file."""
    roles: dict[str, str] = {}
    for role, table in (("arrival", arrivals), ("outcome", outcomes)):
        name = roles[role] = options[role] or guess_columns(table).get(role, "")
        if not name:
            raise ValueError(
                f"which column holds the times of {role}? Say --{role} COLUMN; the columns are {_listed(table.column_names)}."
            )
        if name not in table.column_names:
            raise ValueError(f"--{role} {name}: no such column; the columns are {_listed(table.column_names)}.")
        if options[role] is None:
            out.print(f"Taking [bold]{plain(name)}[/] as the time of {role} (--{role} to choose another).")
        refuse_future(table, [name])
    if roles["arrival"] == roles["outcome"]:
        raise ValueError(f"--arrival and --outcome name the same column, {roles['arrival']}.")
    return roles


def _feature_columns(table: pa.Table, file: str, roles: dict[str, str], options: dict[str, Any]) -> list[str]:
    """The feature columns that were named, or all that are left; those to drop are never among them."""
    drop = options["drop"] or []
    unknown = [name for name in drop if name not in table.column_names]
    if unknown:
        raise ValueError(f"--drop {','.join(unknown)}: no such column; the columns are {_listed(table.column_names)}.")
    if options["features"] is not None:
        features = [name for name in options["features"] if name not in drop]
    else:
        features = _remaining_columns(table, file, {*roles.values(), options["key"], *drop})
    if not features:
        raise ValueError(f"{file}: no columns are left as features.")
    return features


def _remaining_columns(table: pa.Table, file: str, taken: set[str]) -> list[str]:
    index = [name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)]
    if index:
        out.print(f"Leaving out {', '.join(index)}, the index of the table that was saved.")
    features = [name for name in table.column_names if name not in {*taken, *index}]
    if len(features) > _MOST_COLUMNS:
        raise ValueError(
            f"{file}: has {len(features)} columns beside the times, more than {_MOST_COLUMNS}. Choose some with --features."
        )
    dated = [name for name in features if pa.types.is_temporal(table.schema.field(name).type)]
    if dated:
        raise ValueError(
            f"{file}: the columns {_listed(dated)} hold times, which are no features. Leave them out with --drop "
            f"{','.join(dated)}, or derive numbers or categories from them."
        )
    return features


def _until(table: pa.Table, arrival: str, text: str | None) -> str | float | None:
    """A number where the log counts seconds."""
    counts_seconds = kinds_of(table.select([arrival])).get(arrival) == "number"
    if text is not None and counts_seconds and re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return float(text)
    return text


def _check_outcomes(events: EventLog) -> None:
    if events.positives == 0:
        raise ValueError(
            f"none of the {len(events)} rows has an outcome: there is nothing to learn. Is --outcome right?"
        )
    if events.positives == len(events):
        raise ValueError(f"each of the {len(events)} rows has an outcome: there are no negatives to tell them from.")


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"
