"""``belated monitor``: are the probabilities still right?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from belated.cli.options import json_option, only, split_names, text_options, typed_again, with_options
from belated.cli.outputs import may_draw, may_write, write_json, write_text
from belated.cli.terminal import friendly, out, plain

_ASKED = ("horizon", "period", "by", "version", "until", "outcome_where", "fail_on", "lags", "time_format", "time_unit")


@click.command("monitor")
@click.argument("scores", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--outcomes", type=click.Path(path_type=Path), metavar="FILE", help="Outcomes in a file of their own.")
@click.option("--key", metavar="COLUMN", help="The column that SCORES and --outcomes share.")
@click.option("--time", metavar="COLUMN", help="When each row was scored. Guessed where the name is obvious.")
@click.option("--score", required=True, metavar="COLUMN", help="The probability that was predicted.")
@click.option("--outcome", metavar="COLUMN", help="When it turned positive; empty: not yet. Guessed likewise.")
@click.option("--outcome-where", metavar="CONDITION", help="Which outcomes count, as in 'stage == \"won\"'.")
@click.option("--horizon", required=True, metavar="DURATION", help="Positive: the outcome comes within this.")
@click.option("--period", default="7d", show_default=True, metavar="DURATION", help="What is judged together.")
@click.option("--by", metavar="COLUMN", help="Also by segment: campaign, country, device.")
@click.option("--version", metavar="COLUMN", help="The version of the model; versions are never mixed.")
@click.option(
    "--until",
    metavar="TIME",
    help="How far outcomes are known; later scores are left out. By default the latest time in the files.",
)
@click.option(
    "--fail-on",
    multiple=True,
    metavar="NAME=LOW..HIGH",
    help="Exit with 1 where a figure is clearly outside: calibration=0.9..1.1, auc=0.7.., log_loss=..0.4. May be given many times.",
)
@click.option(
    "--lags", callback=split_names, metavar="A,B,...", help="When to check the monitor on its past: 1d,3d,7d."
)
@click.option("--time-format", metavar="FORMAT", help="Of times that are not ISO 8601: '%d.%m.%Y', or dayfirst.")
@click.option(
    "--time-unit", type=click.Choice(["s", "ms", "us", "ns"]), help="What times count where they are numbers."
)
@with_options(*text_options)
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE.html", help="Write a page with charts.")
@json_option
@friendly
def monitor_command(scores: tuple[Path, ...], **options: Any) -> None:
    """Whether the probabilities in SCORES agree with what comes, although labels are not all in.

    No features and no model are needed: when each row was scored, how high, and when outcomes came.

    \b
    belated monitor predictions.parquet --outcomes outcomes.csv --key id --time scored_at --score p --horizon 30d \\
        --by campaign --report monitor.html --fail-on calibration=0.9..1.1
    """
    from belated.cli.open_scores import open_scores
    from belated.cli.show_monitor import show_monitor
    from belated.data.durations import parse_duration
    from belated.monitoring.limits import parse_limits
    from belated.monitoring.monitor import monitor

    for name in ("horizon", "period"):
        parse_duration(options[name], name, "seconds")
    parse_limits(options["fail_on"])
    may_draw(options["report"])
    may_write([*scores, options["outcomes"]], options["report"], options["json_file"])
    opened = open_scores(scores, options)
    asked = {name: value for name, value in only(options, _ASKED).items() if value is not None}
    found = monitor(
        opened.scores, opened.outcomes, **opened.columns, key=options["key"], score=options["score"], **asked
    )
    summary = {**found.summary(), "name": opened.name, "command": typed_again("monitor", scores, options)}
    show_monitor(summary)
    if options["json_file"] is not None:
        write_json(options["json_file"], summary)
        out.print(f"Numbers: {plain(str(options['json_file']))}")
    if options["report"] is not None:
        from belated.report.monitor_page import render_monitor

        write_text(options["report"], render_monitor(summary))
        out.print(f"Report: {plain(str(options['report']))}")
    if not found.ok:
        sys.exit(1)
