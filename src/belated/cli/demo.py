"""``belated demo``: a comparison on a simulated log."""

from __future__ import annotations

from pathlib import Path

import click

from belated.cli.compare import compare_log
from belated.cli.options import json_option
from belated.cli.outputs import may_write, missing_for_report
from belated.cli.terminal import friendly, out
from belated.extras import how_to_install

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

    missing = missing_for_report()
    may_write([], None if missing else report, json_file)
    out.print(f"Simulating {rows:,} clicks of two months, in campaigns that come, go and change.")
    clicks = simulate_campaigns(rows)
    log = EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01")
    what, command = "simulated clicks", f"belated demo --rows {rows}"
    drawn = None if missing else report
    compare_log(log, what, [], command, None, drawn, json_file, horizon="14d", group="campaign", methods=_METHODS)
    if missing:
        out.print(f"No report was drawn: that needs {' and '.join(missing)}; {how_to_install('report')}.", markup=False)
