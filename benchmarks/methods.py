"""Every method at four values of l2 on one simulated snapshot, on the CPU, after the time of one pass over the rows.

python benchmarks/methods.py 6000000
"""

from __future__ import annotations

import resource
import sys
import time
import warnings

import numpy as np
from wide import SIZES

from belated import FieldMatrix, LinearModel
from belated.methods import METHODS, resolve_method
from belated.observed import observe
from belated.risk import WeightedRisk


def simulate(n: int) -> tuple[FieldMatrix, np.ndarray, np.ndarray, np.ndarray]:
    """Simulated Criteo-like rows with labels as known after 21 days of clicks, and delays of two kinds."""
    rng = np.random.default_rng(0)
    margin, columns = np.full(n, -1.5), []
    for j, size in enumerate(SIZES):
        value = (np.minimum(np.floor(size ** rng.random(n)), size) - 1).astype(np.int64)
        margin += 0.2 * rng.normal(size=size)[value]
        columns.append(((value * 2654435761 + 40503 * (j + 1)) * 0x2C1B3C6D >> 15) % 2**24)
    truth = rng.random(n) < 1 / (1 + np.exp(-margin))
    elapsed, wait = rng.uniform(0, 21, n), rng.exponential(np.where(rng.random(n) < 0.5, 0.2, 4.0))
    y = truth & (wait <= elapsed)
    return FieldMatrix(np.column_stack(columns), 2**24), y, elapsed, np.where(y, wait, np.nan)


def main() -> None:
    warnings.simplefilter("ignore")
    n = int(sys.argv[1])
    X, y, elapsed, delay = simulate(n)
    model = LinearModel(tol=1e-4)
    rows = model.encode(X, None)
    theta, risk, work = np.zeros(rows.shape[1] + 1), WeightedRisk(y / n, ~y / n), np.empty((2, 2 * rows.shape[1]))
    rows.logistic(theta, risk, 0.0, work)
    for _ in range(3):
        start = time.perf_counter()
        rows.logistic(theta, risk, 0.0, work)
        print(f"one pass: {(time.perf_counter() - start) / n * 1e9:.1f} ns a row", flush=True)
    observed = observe(y, elapsed, delay, None, 7.0, 21.0)
    whole = time.perf_counter()
    for name in METHODS:
        start = time.perf_counter()
        model.set_params(l2=1 / (2 * n * 0.1))  # of FSIW's auxiliary fits
        risk = resolve_method(name).risk(observed, lambda *a: model.side_margin(rows, *a))
        prepared = time.perf_counter() - start
        models = model.path(rows, risk, [1 / (2 * n * C) for C in (0.03, 0.1, 0.3, 1.0)])
        gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{name:15s} four l2: {time.perf_counter() - start:.1f} s, {prepared:.1f} s of it for the risk, iterations {[m.n_iter_ for m in models]}, peak {gib:.1f} GiB",
            flush=True,
        )
    print(f"all methods at four l2: {time.perf_counter() - whole:.1f} s")


if __name__ == "__main__":
    main()
