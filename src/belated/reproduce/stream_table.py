"""The streaming experiment of ES-DFM, DEFER, DEFUSE and their line on Criteo's file: 30 days of warm-up, then 30 days hour by hour.

After the warm-up a model learns each hour's records in one pass and predicts the clicks of the next hour, which are scored by whether they
convert within 30 days. Means over hours are weighted by clicks. The papers wait 15 minutes to an hour for a first label; here 15
minutes. They use a network of a few layers, here the linear model of :class:`belated.OnlineLinearModel` unless asked otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from belated.data.event_log import EventLog
from belated.datasets.criteo_simulator import is_simulated
from belated.reproduce.checkpoints import write_csv
from belated.reproduce.criteo_table import ingest_once
from belated.streaming.methods import resolve_stream_method
from belated.streaming.methods.elapsed_sampling import ESDFM
from belated.streaming.methods.fake_negatives import FNW
from belated.streaming.methods.label_correction import DEFUSE
from belated.streaming.replay import REPLAYED, replay
from belated.streaming.replay_results import ORACLE_NAME, START

COLUMNS_OF_FILE = 2**24
STEP = 3600.0  # seconds
# AUC, PR AUC and log loss as published by ES-DFM (Yang et al. 2021, their table 3); other papers' tables differ on the same methods.
PUBLISHED = {
    "pretrained": (0.8307, 0.6251, 0.4009),
    "vanilla": (0.8376, 0.6288, 0.4047),
    "fnc": (0.8373, 0.6267, 0.4382),
    "fnw": (0.8373, 0.6313, 0.4033),
    "es-dfm": (0.8402, 0.6393, 0.3924),
    "oracle": (0.8450, 0.6469, 0.3868),
}
PAPER_WEIGHTS = {
    "fnw, paper's weights": FNW("paper"),
    "es-dfm, paper's weights": ESDFM("paper"),
    "defuse, paper's weights": DEFUSE(weights="paper"),
}


def reproduce_streaming(
    data: str | Path,
    out: str | Path,
    sample: float = 1.0,
    wait: str = "15min",
    model: Any = None,
    jobs: int | None = None,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Run or go on with the experiment on the file ``data``; write a table as CSV to the folder ``out``."""
    data, out = Path(data), Path(out)
    if not 0 < sample <= 1:
        raise ValueError(f"sample={sample!r} must be above 0 and at most 1.")
    folder, simulated = out / "criteo.log", is_simulated(data)
    ingest_once(data, folder, COLUMNS_OF_FILE, progress)
    log = EventLog.open(folder)
    log = log if sample == 1 else log.sample(sample)
    on_stream = [name for name in REPLAYED if name not in (START, ORACLE_NAME)]
    methods = {name: resolve_stream_method(name) for name in on_stream} | PAPER_WEIGHTS
    found = replay(
        log,
        horizon=30 * 86400.0,
        warmup=30 * 86400.0,
        step=STEP,
        wait=wait,
        methods=methods,
        model=model,
        n_jobs=jobs,
        cache=out / "stream-state",
        progress=progress,
    )
    summary = found.summary()
    rows = []
    for name, row in sorted(summary["methods"].items(), key=lambda item: item[1]["log_loss"]):
        published = dict(zip(("roc_auc", "pr_auc", "log_loss"), PUBLISHED.get(name, ()), strict=False))
        kept = {
            key: row[key]
            for key in ("log_loss", "roc_auc", "pr_auc", "calibration_ratio", "relative_improvement", "seconds")
        }
        rows.append(
            {
                "data": "simulated" if simulated else "criteo",
                "model": type(model).__name__ if model is not None else "OnlineLinearModel",
                "sample": sample,
                "method": name,
                **kept,
                "relative_improvement_auc": row["relative_improvements"]["roc_auc"],
                **{f"published_{key}": published.get(key) for key in ("log_loss", "roc_auc", "pr_auc")},
            }
        )
    kind = "network" if model is not None and "Network" in type(model).__name__ else "linear"
    write_csv(out / f"streaming-{kind}{'-simulated' if simulated else ''}.csv", rows)
    return rows


def show_stream_table(table: Sequence[dict[str, Any]]) -> Table:
    """Each method's means, and what was published of it on the real file."""
    what = "SIMULATED data" if table[0]["data"] == "simulated" else "Criteo's file"
    shown = Table(
        title=f"{what}, {table[0]['model']}: means over hours of 30 days", box=box.SIMPLE, padding=(0, 1, 0, 0)
    )
    shown.add_column("method")
    headings = {
        "log_loss": ("log loss", "{:.4f}"),
        "roc_auc": ("AUC", "{:.4f}"),
        "pr_auc": ("PR AUC", "{:.4f}"),
        "calibration_ratio": ("calibr.", "{:.2f}"),
        "relative_improvement": ("improv. (log loss)", "{:+.0%}"),
        "relative_improvement_auc": ("(AUC)", "{:+.0%}"),
        "seconds": ("seconds", "{:.0f}"),
        "published_log_loss": ("published, real file: log loss", "{:.4f}"),
        "published_roc_auc": ("AUC", "{:.4f}"),
    }
    for heading, _ in headings.values():
        shown.add_column(heading, justify="right")
    for row in table:
        cells = ["" if row[key] is None else form.format(row[key]) for key, (_, form) in headings.items()]
        shown.add_row(row["method"], *cells)
    return shown
