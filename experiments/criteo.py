"""The Criteo experiment. Results go to experiments/results/; run again, it goes on where it stopped.

    python experiments/criteo.py                     on a simulated file, which is made first (2 GB)
    python experiments/criteo.py --data data.txt     on Criteo's

With --stronger lambda comes from around Chapelle's own penalty, and results go to experiments/results/stronger/. His
published script has (14/2) ||theta||^2 beside a sum over 5.6 million clicks, which is lambda = 21.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

from rich.console import Console

from belated.datasets.criteo_simulator import simulate_criteo
from belated.reproduce.criteo_table import LAMBDAS, reproduce_criteo, show

OUT = Path(__file__).parent / "results"
STRONGER = (100.0, 20.0, 5.0, 1.0)

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--stronger", action="store_true")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    data = options.data or OUT / "criteo-simulated.txt"
    if options.data is None and not data.exists():
        simulate_criteo(data)
    began = time.perf_counter()
    folder, lambdas = (options.out / "stronger", STRONGER) if options.stronger else (options.out, LAMBDAS)
    table = reproduce_criteo(data, folder, lambdas=lambdas, device=options.device)
    Console(width=160).print(show(table))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{(time.perf_counter() - began) / 60:.1f} minutes from the file to this table, {peak:.1f} GiB")
