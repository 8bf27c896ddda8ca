"""Options that several commands share, and the command as one would type it again."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click


def split_names(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    """A comma-separated list."""
    if value is None:
        return None
    names = [name.strip() for name in value.split(",") if name.strip()]
    if not names:
        raise click.BadParameter("it is empty; name some, separated by commas, or leave it out.")
    return names


text_options = [
    click.option(
        "--sep", metavar="CHARACTER", help="What separates the columns of text files; by default their name tells."
    ),
    click.option("--decimal", metavar="CHARACTER", help="The decimal mark in text files, '.' by default."),
    click.option("--encoding", metavar="NAME", help="Of text files, utf-8 by default; latin-1 or cp1252, say."),
]
_LOG_OPTIONS = [
    click.option("--arrival", metavar="COLUMN", help="When each row arrived. Guessed where the name is obvious."),
    click.option("--outcome", metavar="COLUMN", help="When it turned positive; empty: not yet. Guessed likewise."),
    click.option(
        "--outcome-where", metavar="CONDITION", help='An outcome counts only where this holds: status == "won"'
    ),
    click.option(
        "--outcomes", type=click.Path(path_type=Path), metavar="FILE", help="Outcomes in a file of their own."
    ),
    click.option("--key", metavar="COLUMN", help="The column that LOG and --outcomes share, or that snapshots share."),
    click.option("--features", metavar="A,B,...", help="Feature columns; by default all others."),
    click.option(
        "--feature", multiple=True, metavar="COLUMN", help="One more feature column; may be given many times."
    ),
    click.option(
        "--category", multiple=True, metavar="COLUMN", help="A number that is a code, no quantity; many times."
    ),
    click.option("--drop", metavar="A,B,...", help="Columns to leave out: ids, dates, leaks."),
    click.option(
        "--keep",
        multiple=True,
        metavar="COLUMN",
        help="Use this column though it seems to know the outcome; many times.",
    ),
    click.option("--until", metavar="TIME", help="How far the log reaches, if past its last event."),
    click.option("--time-format", metavar="FORMAT", help="Of times that are not ISO 8601: '%d.%m.%Y', or dayfirst."),
    click.option(
        "--time-unit", type=click.Choice(["s", "ms", "us", "ns"]), help="What times count where they are numbers."
    ),
    click.option("--na", callback=split_names, metavar="A,B,...", help="Words of text that mean a missing value."),
    *text_options,
    click.option("--snapshots", is_flag=True, help="Each file is a copy of one table, and its name has the date."),
    click.option("--snapshot-time", metavar="COLUMN", help="The same, with the date of the copy in a column."),
    click.option("--sql", metavar="QUERY", help="A query in place of LOG, through DuckDB."),
    click.option("--db", metavar="FILE", help="The database that --sql asks."),
]
LOG_OPTIONS = (
    *(
        "arrival",
        "outcome",
        "outcome_where",
        "outcomes",
        "key",
        "features",
        "feature",
        "category",
        "drop",
        "keep",
        "until",
    ),
    *("time_format", "time_unit", "na", "sep", "decimal", "encoding", "snapshots", "snapshot_time", "sql", "db"),
)


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A log: files or a query, and which of their columns mean what."""
    argument = click.argument("log", nargs=-1, type=click.Path(path_type=Path))
    return with_options(argument, *_LOG_OPTIONS)(command)


def with_options(*options: Callable[..., Any]) -> Callable[..., Any]:
    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


horizon_option = click.option(
    "--horizon", required=True, metavar="DURATION", help="Positive: the outcome comes within this, as in 30d or 36h."
)
json_option = click.option(
    "--json", "json_file", type=click.Path(path_type=Path), metavar="FILE.json", help="Write all numbers."
)


def only(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: options[name] for name in names}


def typed_again(name: str, logs: Sequence[Path], options: dict[str, Any]) -> str:
    """The command as one would type it again."""
    flags = {"json_file": "json", "csv_file": "csv", "model_file": "out"}
    words = ["belated", name, *map(str, logs)]
    for key, value in options.items():
        flag = f"--{flags.get(key, key).replace('_', '-')}"
        if isinstance(value, tuple):
            words += [word for one in value for word in (flag, str(one))]
        elif value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, ",".join(value) if isinstance(value, list) else str(value)]
    return shlex.join(words)
