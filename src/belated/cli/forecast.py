"""``belated forecast``: what is still to come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from belated.cli.options import horizon_option, json_option, log_options, only, typed_again
from belated.cli.outputs import may_draw, may_write, write_csv, write_json, write_text
from belated.cli.terminal import friendly, out, plain

_ASKED = ("horizon", "as_of", "lookback", "method", "model", "group", "value", "arrivals", "ahead", "cutoffs", "keep")


@click.command("forecast")
@log_options
@horizon_option
@click.option("--as-of", metavar="TIME", help="Forecast from then. By default from the end of the log.")
@click.option("--ahead", metavar="DURATION", help="How far to look. By default until all that has arrived is final.")
@click.option("--group", metavar="COLUMN", help="Also by the values of this feature (campaigns, say).")
@click.option("--value", metavar="COLUMN", help="Sum this up instead of counting: revenue, say.")
@click.option(
    "--arrivals",
    type=click.Choice(["repeat"]),
    help="Add what will come of rows still to arrive, if the last four weeks repeat.",
)
@click.option(
    "--method",
    default="dfm-piecewise",
    show_default=True,
    metavar="NAME",
    help="A method of classifiers, auto, or chain-ladder: the spreadsheet, which uses no features.",
)
@click.option("--model", default="linear", show_default=True, metavar="NAME", help="linear, boost or network.")
@click.option(
    "--level",
    multiple=True,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=(0.8, 0.95),
    show_default=True,
    help="Of the bands; may be given many times.",
)
@click.option("--lookback", metavar="DURATION", help="How far back rows go to learn from. By default all.")
@click.option(
    "--cutoffs", type=click.IntRange(0), default=6, show_default=True, help="From how many past dates to try it."
)
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE.html", help="Write a page with charts.")
@json_option
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path),
    metavar="FILE.csv",
    help="Write a table: a row for each day and group.",
)
@friendly
def forecast_command(log: tuple[Path, ...], **options: Any) -> None:
    """How much is still to come of what has arrived in LOG, when, and how sure that is.

    The same forecast is made from dates of the past as well, and what came then says how wide the bands must be.

    \b
    belated forecast clicks.parquet --horizon 30d --report forecast.html
    belated forecast bookings.parquet --arrival booked --outcome cancelled --horizon 90d --group hotel --csv forecast.csv
    belated forecast orders.csv --horizon 14d --value revenue --arrivals repeat
    """
    from belated.cli.open_log import open_log
    from belated.cli.show_forecast import forecast_table, show_forecast
    from belated.data.durations import parse_duration
    from belated.forecasting.forecast import forecast
    from belated.models import require_installed

    if options["ahead"] is not None:
        parse_duration(options["ahead"], "ahead", "seconds")
    require_installed(options["model"])
    may_draw(options["report"])
    files = (options["report"], options["json_file"], options["csv_file"])
    may_write([*log, options["outcomes"], options["db"]], *files)
    opened = open_log(log, options, bare=True)
    found = forecast(opened.events, levels=options["level"], progress=out.is_terminal, **only(options, _ASKED))
    summary = {
        **found.summary(),
        "name": opened.name,
        "reading": opened.reading,
        "command": typed_again("forecast", log, options),
    }
    show_forecast(summary)
    if options["json_file"] is not None:
        write_json(options["json_file"], summary)
        out.print(f"Numbers: {plain(str(options['json_file']))}")
    if options["csv_file"] is not None:
        write_csv(options["csv_file"], forecast_table(summary))
        out.print(f"Table: {plain(str(options['csv_file']))}")
    if options["report"] is not None:
        from belated.report.forecast_page import render_forecast

        write_text(options["report"], render_forecast(summary))
        out.print(f"Report: {plain(str(options['report']))}")
