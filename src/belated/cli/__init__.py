"""The command ``belated``, one command a file: each reads files, calls one public function, and shows what it found.

Commands are imported when they are asked for, and what they call only when they run, so that help comes at once. May
import everything else.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
from importlib import import_module
from typing import Any

import click

from belated import __version__

_COMMANDS = ("describe", "compare", "train", "predict", "forecast", "monitor", "watch", "replay", "demo", "reproduce")


class CommandGroup(click.Group):
    """Commands that are imported when they are asked for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"belated.cli.{name}"), f"{name}_command")
        return command


def _end(number: int, frame: Any) -> None:
    raise SystemExit(128 + number)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, package_name="belated")
@click.option("-v", "--verbose", is_flag=True, help="Say what is decided along the way.")
def main(verbose: bool) -> None:
    """Classifiers for labels that arrive late.

    A LOG has one row for each thing that arrived (a click, a booking, a payment), with the time of its arrival, the time
    of its outcome (a conversion, a cancellation, a chargeback) where there has been one, and features known at arrival.

    \b
    belated describe log.parquet --horizon 30d       How late are my labels?
    belated compare log.parquet --horizon 30d        Which correction should I use, and what does it gain?
    belated train log.parquet --method auto --horizon 30d --out model.skops
    belated predict model.skops new.parquet --out predictions.parquet
    belated forecast log.parquet --horizon 30d       How much is still to come, and when?
    belated monitor scores.parquet --outcomes outcomes.csv ... Are the probabilities still right?
    belated watch watch.toml --out site/             All of these as a folder of pages, kept up to date.
    belated replay log.parquet --horizon 30d --warmup 30d      Would learning hour by hour pay?
    belated demo                                     A comparison on a simulated log, to see what it gives.
    """
    # A command that is asked to end cleans up after itself, and so do its workers.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end)
    logging.basicConfig(level=logging.INFO if verbose else logging.ERROR, format="%(message)s", stream=sys.stderr)
