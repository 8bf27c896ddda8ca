"""Linear, boosted and network models on two simulated logs: how far is each method from the oracle of its own model?

    python experiments/models.py campaigns --models linear,boost
    python experiments/models.py criteo --rows 300000 --models linear,boost,network

Prints a table, and writes it as CSV with --out.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

from belated import EventLog, backtest, ingest_criteo
from belated.datasets import simulate_campaigns
from belated.datasets.criteo_simulator import simulate_criteo

METHODS = ["tw", "fsiw", "nndf", "dfm", "dfm-piecewise", "soft-labels", "age", "person-period"]


def open_log(name: str, rows: int, folder: Path) -> tuple[EventLog, dict[str, str]]:
    if name == "campaigns":
        clicks = simulate_campaigns(rows)
        log = EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01")
        return log, {"horizon": "14d"}
    simulate_criteo(folder / "data.txt", rows, jump=0.0, progress=False)
    ingest_criteo(folder / "data.txt", folder / "log", progress=False)
    return EventLog.open(folder / "log"), {"horizon": "15d", "window": "7d"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", choices=["campaigns", "criteo"])
    parser.add_argument("--rows", type=int, default=150_000)
    parser.add_argument("--models", default="linear,boost")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--cutoffs", type=int, default=4)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log, settings = open_log(asked.log, asked.rows, Path(folder))
        found = backtest(
            log,
            **settings,
            methods=asked.methods.split(","),
            models=asked.models.split(","),
            cutoffs=asked.cutoffs,
            n_jobs=asked.jobs,
        )
        table = found.summary()["methods"]
    rows = [
        {"model": row["model"], "method": row["method"], "log_loss": row["log_loss"], "vs_own_oracle": row["vs_own_oracle"],
         "calibration_ratio": row["calibration_ratio"]}
        for row in sorted(table.values(), key=lambda row: row["log_loss"])
    ]  # fmt: skip
    for row in rows:
        print(
            f"{row['model']:8} {row['method']:14} {row['log_loss']:.4f} {row['vs_own_oracle']:+.1%} {row['calibration_ratio']:.2f}"
        )
    for name, why in found.failed.items():
        print(f"{name} could not be fitted {why}")
    if asked.out is not None:
        with asked.out.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
