"""``belated demo``: a comparison on a simulated log."""

from __future__ import annotations

from pathlib import Path

import click

from belated.cli.compare import compare_log
from belated.cli.options import json_option
from belated.cli.outputs import may_draw, may_write
from belated.cli.terminal import friendly, out

_METHODS = ["tw", "fsiw", "convdf", "nndf", "rescale", "dfm", "dfm-piecewise", "hazard"]


@click.command("demo")
@click.option(
    "--report", type=click.Path(path_type=Path), default=Path("report.html"), show_default=True, metavar="FILE.html"
)
@json_option
@click.option("--rows", type=click.IntRange(1000), default=150_000, show_default=True, help="Clicks to simulate.")
@friendly
def demo_command(report: Path, json_file: Path | None, rows: int) -> None:
    """Compare methods on a simulated log: two months of clicks in campaigns that come, go and change."""
    from belated.data.event_log import EventLog
    from belated.datasets.campaigns import simulate_campaigns

    may_draw(report)
    may_write([], report, json_file)
    out.print(f"Simulating {rows:,} clicks of two months, in campaigns that come, go and change.")
    clicks = simulate_campaigns(rows)
    log = EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01")
    what, command = "simulated clicks", f"belated demo --rows {rows}"
    compare_log(log, what, command, None, report, json_file, horizon="14d", group="campaign", methods=_METHODS)
