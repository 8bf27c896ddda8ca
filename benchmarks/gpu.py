"""The GPU path beside the CPU's: do they agree, and how long does a pass, a fit, and every method at four l2 take?

PYTHONPATH=src python benchmarks/gpu.py 6000000
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
import torch
from methods import every_method
from simulated_rows import simulate

from belated import DelayedFeedbackClassifier, LinearModel
from belated.data.labels import check_labels
from belated.methods import METHODS
from belated.risks.weighted import WeightedRisk


def main() -> None:
    warnings.simplefilter("ignore")
    print(torch.cuda.get_device_name(0), "torch", torch.__version__, flush=True)
    X, y, elapsed, delay = simulate(200_000)
    for name in METHODS:
        p = []
        for device in ("cpu", "cuda"):
            model = LinearModel(l2=2e-5, tol=1e-12, device=device)
            clf = DelayedFeedbackClassifier(name, window=7.0, horizon=21.0, model=model)
            start = time.perf_counter()
            p.append(clf.fit(X, y, elapsed=elapsed, delay=delay).predict_proba(X)[:, 1])
            p.append(time.perf_counter() - start)
        worst = np.abs(p[0] - p[2])
        print(
            f"{name:15s} cpu {p[1]:.2f} s, cuda {p[3]:.2f} s, |dp| max {worst.max():.1e} mean {worst.mean():.1e}",
            flush=True,
        )

    n = int(sys.argv[1])
    X, y, elapsed, delay = simulate(n)
    model = LinearModel(l2=1 / (2 * n * 0.1), tol=1e-4, device="cuda")
    start = time.perf_counter()
    rows = model.encode(X, None)
    torch.cuda.synchronize()
    print(f"{n} rows: compaction and transfer {time.perf_counter() - start:.2f} s", flush=True)
    coef = torch.zeros(rows.shape[1], 1, device="cuda")
    row = torch.ones(n, 1, device="cuda")
    for label, product in (("margins", lambda: rows.matrix @ coef), ("gradient", lambda: rows.transposed @ row)):
        product()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            product()
        torch.cuda.synchronize()
        print(f"{label}: {(time.perf_counter() - start) / 20 * 1e3:.2f} ms", flush=True)
    for C in (0.1, 1.0):
        model.set_params(l2=1 / (2 * n * C))
        model.fit(rows, WeightedRisk(y / n, ~y / n))
        start = time.perf_counter()
        model.fit(rows, WeightedRisk(y / n, ~y / n))
        print(
            f"one BL fit at C={C}: {time.perf_counter() - start:.2f} s, {model.n_iter_} iterations, {model.objective_:.6f}",
            flush=True,
        )
    every_method(model, rows, check_labels(y, elapsed, delay, None, 7.0, 21.0), list(METHODS))


if __name__ == "__main__":
    main()
