"""``belated replay``: a log as a stream, hour by hour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from belated.cli.options import horizon_option, json_option, log_options, split_names, typed_again
from belated.cli.outputs import may_draw, may_keep, may_write, write_json, write_text
from belated.cli.terminal import friendly, out, plain


@click.command("replay")
@log_options
@horizon_option
@click.option("--warmup", required=True, metavar="DURATION", help="How much of the log the first model is fitted on.")
@click.option(
    "--step", default="1h", show_default=True, metavar="DURATION", help="How often methods learn and predict."
)
@click.option(
    "--wait", default="15min", show_default=True, metavar="DURATION", help="How long methods wait for a first label."
)
@click.option(
    "--methods",
    callback=split_names,
    metavar="A,B,...",
    help="Of the stream (by default all but final), and batch methods such as dfm-piecewise, which are fitted again every --refit.",
)
@click.option("--refit", metavar="DURATION", help="Fit batch methods again this often; by default dfm-piecewise.")
@click.option(
    "--model",
    type=click.Choice(["linear", "network"]),
    default="linear",
    show_default=True,
    help="The engine that learns from the stream.",
)
@click.option("--learning-rate", type=float, metavar="NUMBER", help="Of the engine.")
@click.option(
    "--report", type=click.Path(path_type=Path), metavar="FILE.html", help="Write a report with curves over time."
)
@json_option
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Keep how far it is, to go on after an interrupt.",
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes; by default one a core.")
@friendly
def replay_command(log: tuple[Path, ...], **options: Any) -> None:
    """Replay LOG as a stream: learn what becomes known, predict what comes next, step after step.

    Every method starts from a model of what was known at the end of the warm-up (`pretrained`, which then never changes). `oracle`
    learns final labels at arrival, which nobody has. Rows are scored by their final labels.

    \b
    belated replay clicks.parquet --arrival click_time --outcome conversion_time --horizon 30d --warmup 30d --report replay.html
    belated replay clicks.parquet --horizon 7d --warmup 20d --step 6h --wait 2h --refit 1d --methods es-dfm,hazard-heads
    """
    from belated.cli.open_log import open_log
    from belated.cli.show_results import show_replay
    from belated.data.durations import parse_duration
    from belated.streaming.replay import checked_methods, replay

    checked_methods(options["methods"], options["refit"] is not None)
    for name in ("warmup", "step", "wait", "refit"):
        if options[name] is not None:
            parse_duration(options[name], name, "seconds")
    may_draw(options["report"])
    may_keep(options["cache"])
    may_write([*log, options["outcomes"], options["db"]], options["report"], options["json_file"])
    opened = open_log(log, options)
    asked = {name: options[name] for name in ("horizon", "warmup", "step", "wait", "methods", "refit", "cache")}
    model = _engine(options["model"], options["learning_rate"])
    found = replay(opened.events, model=model, n_jobs=options["jobs"], **asked)
    summary = {**found.summary(), "name": opened.name, "command": typed_again("replay", log, options)}
    show_replay(summary)
    if options["json_file"] is not None:
        write_json(options["json_file"], summary)
        out.print(f"Numbers: {plain(str(options['json_file']))}")
    if options["report"] is not None:
        from belated.report.replay_page import render_replay

        write_text(options["report"], render_replay(summary))
        out.print(f"Report: {plain(str(options['report']))}")


def _engine(name: str, rate: float | None) -> Any:
    given: dict[str, Any] = {} if rate is None else {"learning_rate": rate}
    if name == "linear":
        from belated.streaming.online_linear import OnlineLinearModel

        return OnlineLinearModel(**given)
    from belated.models import require_installed
    from belated.models.network import NetworkModel

    require_installed(name)
    return NetworkModel(**given)
