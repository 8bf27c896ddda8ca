"""A log from files, as the command line names them: its options, guesses that are shown, and complaints."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from rich.markup import escape as _plain

from belated.cli.terminal import out
from belated.data.event_log import EventLog
from belated.tables.files import guess_columns, kinds_of, read_table, refuse_future

_MOST_COLUMNS = 1000


def split_names(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    """A comma-separated list."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        click.argument("log", type=click.Path(path_type=Path)),
        click.option("--arrival", metavar="COLUMN", help="When each row arrived. Guessed where the name is obvious."),
        click.option("--outcome", metavar="COLUMN", help="When it turned positive; empty: not yet. Guessed likewise."),
        click.option(
            "--outcomes", type=click.Path(path_type=Path), metavar="FILE", help="Outcomes in a file of their own."
        ),
        click.option("--key", metavar="COLUMN", help="The column that LOG and --outcomes share."),
        click.option(
            "--features", callback=split_names, metavar="A,B,...", help="Feature columns; by default all others."
        ),
        click.option(
            "--drop", callback=split_names, metavar="A,B,...", help="Columns to leave out: ids, dates, leaks."
        ),
        click.option("--until", metavar="TIME", help="How far the log reaches, if past its last event."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def open_log(log: Path, options: dict[str, Any]) -> tuple[pa.Table, EventLog]:
    """Read the files that options name, guess what they do not, and show the guess."""
    table = read_table(log)
    outcomes = None if options["outcomes"] is None else read_table(options["outcomes"])
    if (outcomes is None) != (options["key"] is None):
        raise ValueError(
            "--outcomes and --key go together: a file of outcomes, and the column by which its rows find theirs."
        )
    guessed = guess_columns(table)
    if outcomes is not None:
        guessed = {k: v for k, v in guessed.items() if k == "arrival"}
        guessed |= {k: v for k, v in guess_columns(outcomes).items() if k == "outcome"}
    roles: dict[str, str] = {}
    for role in ("arrival", "outcome"):
        roles[role] = options[role] or guessed.get(role, "")
        where = table if role == "arrival" or outcomes is None else outcomes
        if not roles[role]:
            raise ValueError(
                f"which column holds the times of {role}? Say --{role} COLUMN; the columns are {_listed(where.column_names)}."
            )
        if roles[role] not in where.column_names:
            raise ValueError(f"--{role} {roles[role]}: no such column; the columns are {_listed(where.column_names)}.")
        if options[role] is None:
            out.print(f"Taking [bold]{_plain(roles[role])}[/] as the time of {role} (--{role} to choose another).")
    refuse_future(table, [roles["arrival"]] + ([roles["outcome"]] if outcomes is None else []))
    if outcomes is not None:
        refuse_future(outcomes, [roles["outcome"]])
    if roles["arrival"] == roles["outcome"]:
        raise ValueError(f"--arrival and --outcome name the same column, {roles['arrival']}.")
    features, drop = options["features"], options["drop"] or []
    unknown = [name for name in drop if name not in table.column_names]
    if unknown:
        raise ValueError(f"--drop {','.join(unknown)}: no such column; the columns are {_listed(table.column_names)}.")
    if features is not None:
        features = [name for name in features if name not in drop]
    else:
        index = [name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)]
        if index:
            out.print(f"Leaving out {', '.join(index)}, the index of the table that was saved.")
        taken = {*roles.values(), options["key"], *drop, *index}
        features = [name for name in table.column_names if name not in taken]
        if len(features) > _MOST_COLUMNS:
            raise ValueError(
                f"{log.name}: has {len(features)} columns beside the times, more than {_MOST_COLUMNS}. Choose some with --features."
            )
        dated = [name for name in features if pa.types.is_temporal(table.schema.field(name).type)]
        if dated:
            raise ValueError(
                f"{log.name}: the columns {_listed(dated)} hold times, which are no features. Leave them out with --drop "
                f"{','.join(dated)}, or derive numbers or categories from them."
            )
    if not features:
        raise ValueError(f"{log.name}: no columns are left as features.")
    until = options["until"]
    if (
        until is not None
        and re.fullmatch(r"[0-9]+(\.[0-9]+)?", until)
        and kinds_of(table).get(roles["arrival"]) == "number"
    ):
        until = float(until)
    arguments = {**roles, "features": features, "until": until}
    if outcomes is None:
        events = EventLog.from_frame(table, **arguments)
    else:
        events = EventLog.from_frames(table, outcomes, key=options["key"], **arguments)
    if events.positives == 0:
        raise ValueError(
            f"none of the {len(events)} rows has an outcome: there is nothing to learn. Is --outcome right?"
        )
    if events.positives == len(events):
        raise ValueError(f"each of the {len(events)} rows has an outcome: there are no negatives to tell them from.")
    shown = f"{len(events):,} rows, {events.positives:,} with an outcome; features: {_listed(features)}."
    out.print(_plain(shown))
    return table, events


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:12])
    return shown if len(names) <= 12 else f"{shown} and {len(names) - 12} more"
