"""Two versions of ``belated compare`` side by side, in turn: the hotel bookings of docs/hotel.md, and a wide simulated log.

    git worktree add ../before <commit>
    python benchmarks/comparison.py ../before/src src --hotel hotel.parquet

Each run is a process of its own, start included; the median over rounds counts. Without ``--hotel`` only the simulated log is
compared: 23,000 rows with 12 categories of up to 5,000 values, which are hashed into 2^18 columns; ten methods, four cut-offs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HOTEL = (
    "--arrival booked --outcome cancelled --horizon 90d --lookback 180d "
    "--cutoffs 2016-02-29,2016-03-31,2016-04-30,2016-05-31,2016-06-30,2016-07-31"
)
WIDE = (
    "--horizon 14d --cutoffs 4 --until 2024-03-11 "
    "--methods tw,convdf,fsiw,dfm,dfm-weibull,dfm-piecewise,hazard,rescale,stc"
)
SIZES = (5000, 5000, 4000, 3000, 2000, 5000, 1000, 500, 5000, 3000, 100, 20)


def simulate_wide(n: int = 23_000, seed: int = 0) -> pa.Table:
    """Clicks with long-tailed categories, whose rate and delay depend on them."""
    rng = np.random.default_rng(seed)
    columns, score = {}, np.zeros(n)
    for j, size in enumerate(SIZES):
        value = np.minimum(rng.zipf(1.25, n) - 1, 10**9) % size
        score += rng.normal(0, 0.25, size)[value]
        columns[f"c{j}"] = pa.array([f"v{v}" for v in value])
    day, converts = np.sort(rng.uniform(0, 70, n)), rng.uniform(size=n) < 1 / (1 + np.exp(1.2 - score))
    micros = [(days * 86400e6).astype("timedelta64[us]") for days in (day, rng.exponential(3 * np.exp(0.5 * score)))]
    start = np.datetime64("2024-01-01", "us")
    arrival = start + micros[0]
    outcome = arrival + micros[1]
    known = converts & (outcome <= start + np.timedelta64(70, "D"))
    return pa.table(
        {"click_time": arrival, "conversion_time": np.where(known, outcome, np.datetime64("NaT")), **columns}
    )


def seconds(source: str, log: str, options: str) -> float:
    environment = {**os.environ, "PYTHONPATH": str(Path(source).resolve())}
    start = time.perf_counter()
    command = [sys.executable, "-m", "belated.cli", "compare", log, *options.split()]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--hotel")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| log | before | after | before / after |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(simulate_wide(), f"{folder}/wide.parquet")
        logs = {"wide simulated log": (f"{folder}/wide.parquet", WIDE)}
        if options.hotel:
            logs["hotel bookings"] = (options.hotel, HOTEL)
        for name, (log, how) in logs.items():
            times: dict[str, list[float]] = {options.before: [], options.after: []}
            for _ in range(options.rounds):
                for source in times:
                    times[source].append(seconds(source, log, how))
            before, after = (float(np.median(times[source])) for source in (options.before, options.after))
            print(f"| {name} | {before:.1f} s | {after:.1f} s | {before / after:.1f} |", flush=True)


if __name__ == "__main__":
    main()
