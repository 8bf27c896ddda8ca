"""``belated describe``: how late labels are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from belated.cli.options import json_option, log_options, typed_again
from belated.cli.outputs import may_draw, may_write, write_json, write_text
from belated.cli.terminal import friendly, out, plain


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
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE.html", help="Write a page with charts.")
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

    may_draw(options["report"])
    may_write([*log, options["outcomes"], options["db"]], options["report"], options["json_file"])
    opened = open_log(log, options, to_fit=False, bare=True)
    diagnosis = diagnose(
        opened.events,
        horizon=options["horizon"],
        window=options["window"],
        lookback=options["lookback"],
        group=options["group"],
    )
    show_diagnosis(diagnosis)
    summary = {**diagnosis.summary(), "reading": opened.reading}
    if options["json_file"] is not None:
        write_json(options["json_file"], summary)
        out.print(f"Numbers: {plain(str(options['json_file']))}")
    if options["report"] is not None:
        from belated.report.diagnosis_page import render_diagnosis

        about = {"name": opened.name, "command": typed_again("describe", log, options)}
        write_text(options["report"], render_diagnosis({**summary, **about}))
        out.print(f"Report: {plain(str(options['report']))}")
