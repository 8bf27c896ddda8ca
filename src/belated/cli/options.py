"""Options that several commands share, and the command as one would type it again."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def split_names(context: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    """A comma-separated list."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A log: one file or two, and which of their columns mean what."""
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


horizon_option = click.option(
    "--horizon", required=True, metavar="DURATION", help="Positive: the outcome comes within this, as in 30d or 36h."
)
json_option = click.option(
    "--json", "json_file", type=click.Path(path_type=Path), metavar="FILE.json", help="Write all numbers."
)

LOG_OPTIONS = ("arrival", "outcome", "outcomes", "key", "features", "drop", "until")


def only(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: options[name] for name in names}


def typed_again(name: str, log: Path, options: dict[str, Any]) -> str:
    """The command as one would type it again."""
    flags = {"json_file": "json", "model_file": "out"}
    words = ["belated", name, str(log)]
    for key, value in options.items():
        if value is not None:
            text = ",".join(value) if isinstance(value, list) else str(value)
            words += [f"--{flags.get(key, key)}", text]
    return shlex.join(words)
