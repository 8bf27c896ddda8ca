"""``belated describe``: how late labels are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from belated.cli.options import json_option, log_options
from belated.cli.outputs import may_write, write_json
from belated.cli.terminal import friendly


@click.command("describe")
@log_options
@click.option(
    "--horizon", metavar="DURATION", help="Outcomes later than this after arrival do not count. By default all do."
)
@click.option("--window", metavar="DURATION", help="The age from which labels count as final. By default a suggestion.")
@click.option(
    "--lookback", metavar="DURATION", help="Look at rows up to this much older than the last. By default all."
)
@click.option("--group", metavar="COLUMN", help="Also test each value of this feature for changes.")
@json_option
@friendly
def describe_command(log: tuple[Path, ...], **options: Any) -> None:
    """How late LOG's labels are, and whether the usual assumptions hold. Nothing is fitted.

    \b
    belated describe bookings.parquet --arrival booked --outcome cancelled --horizon 90d
    """
    from belated.cli.open_log import open_log
    from belated.cli.show_results import show_diagnosis
    from belated.evaluation.diagnosis import diagnose

    may_write([*log, options["outcomes"], options["db"]], options["json_file"])
    events = open_log(log, options, to_fit=False).events
    diagnosis = diagnose(
        events,
        horizon=options["horizon"],
        window=options["window"],
        lookback=options["lookback"],
        group=options["group"],
    )
    show_diagnosis(diagnosis)
    if options["json_file"] is not None:
        write_json(options["json_file"], diagnosis.summary())
