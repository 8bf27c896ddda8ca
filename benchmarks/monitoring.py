"""Seconds and memory of monitoring 10 million simulated scores, and of a forecast on the hotel bookings.

python benchmarks/monitoring.py                      10 million scores and about 1 million outcomes
python benchmarks/monitoring.py 1000000              fewer
python benchmarks/monitoring.py 1000000 data/        and a forecast on H1.parquet and H2.parquet of that folder
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from belated import EventLog, forecast
from belated.datasets import load_hotel_bookings, simulate_scores

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
SHARE = 0.53  # of the simulated outcomes that are kept, for about one in ten


def monitor_in_a_program() -> None:
    with tempfile.TemporaryDirectory() as folder:
        scores, outcomes = simulate_scores(ROWS, rate_change=0.9)
        p = pa.array(scores["p"].to_numpy() * SHARE)
        pq.write_table(scores.set_column(scores.column_names.index("p"), "p", p), f"{folder}/scores.parquet")
        keep = np.random.default_rng(0).uniform(size=len(outcomes)) < SHARE
        pq.write_table(outcomes.filter(pa.array(keep)), f"{folder}/outcomes.parquet")
        words = ["monitor", f"{folder}/scores.parquet", "--outcomes", f"{folder}/outcomes.parquet", "--key", "id"]
        words += ["--score", "p", "--horizon", "30d", "--by", "segment", "--version", "version"]
        del scores, outcomes
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "belated.cli", *words], check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"monitor: {ROWS:,} scores, {int(keep.sum()):,} outcomes: {seconds:.1f} s, {memory:.1f} GiB")


def forecast_hotel(folder: Path) -> None:
    log = EventLog.from_frame(load_hotel_bookings(folder), arrival="booked", outcome="cancelled")
    for kind in ("first", "second"):  # the first compiles
        start = time.perf_counter()
        found = forecast(log, horizon="90d", as_of="2016-09-01", group="HotelNumber")
        print(f"forecast on the hotel bookings, {kind} call: {time.perf_counter() - start:.1f} s. {found.verdict}")


if __name__ == "__main__":
    monitor_in_a_program()
    if len(sys.argv) > 2:
        forecast_hotel(Path(sys.argv[2]))
