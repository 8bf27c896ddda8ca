"""Every method at four values of l2 on one simulated snapshot, on the CPU, after the time of one pass over the rows.

python benchmarks/methods.py 6000000             # all of them
python benchmarks/methods.py 6000000 bl fsiw     # some
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from simulated_rows import simulate
from wide import peak

from belated import LinearModel
from belated.data.labels import Labels, check_labels
from belated.evaluation.fitting import fit_path
from belated.methods import METHODS, resolve_method


def every_method(model: LinearModel, rows: Any, labels: Labels, names: list[str]) -> None:
    """Fit methods at four values of l2 on encoded rows, as a backtest does, and print how long each takes."""
    whole, n = time.perf_counter(), len(labels.y)
    for name in names:
        start = time.perf_counter()
        fits = fit_path(model, rows, resolve_method(name), labels, [1 / (2 * n * C) for C in (0.03, 0.1, 0.3, 1.0)])
        iterations = [fit.model.n_iter_ for fit in fits]
        print(
            f"{name:15s} four l2: {time.perf_counter() - start:.1f} s, iterations {iterations}, peak {peak():.1f} GiB",
            flush=True,
        )
    print(f"{len(names)} methods at four l2: {time.perf_counter() - whole:.1f} s", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    n = int(sys.argv[1])
    X, y, elapsed, delay = simulate(n)
    model = LinearModel(tol=1e-4)
    rows = model.encode(X, None)
    theta, weights, work = np.zeros(rows.shape[1] + 1), (y / n, ~y / n), np.empty((2, 2 * rows.shape[1]))
    rows.logistic_pass(theta, weights, 0.0, work)
    for _ in range(3):
        start = time.perf_counter()
        rows.logistic_pass(theta, weights, 0.0, work)
        print(f"one pass: {(time.perf_counter() - start) / n * 1e9:.1f} ns a row", flush=True)
    every_method(model, rows, check_labels(y, elapsed, delay, None, 7.0, 21.0), sys.argv[2:] or list(METHODS))


if __name__ == "__main__":
    main()
