"""NetworkModel on a GPU: one epoch, and a whole fit with its number of epochs chosen, on simulated clicks of 17 hashed fields.

    python benchmarks/networks.py 6000000

Prints one line of JSON. Without a GPU it runs too, on fewer rows.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import torch

from belated import DelayedFeedbackClassifier, FieldMatrix, NetworkModel
from belated.data.labels import check_labels
from belated.evaluation.fitting import fit_method
from belated.methods import resolve_method


def simulated_fields(n: int, seed: int = 0) -> tuple[FieldMatrix, np.ndarray, np.ndarray, np.ndarray]:
    """Fields with long tails, a rate that depends on them, ages and delays in days; all simulated."""
    rng = np.random.default_rng(seed)
    sizes = [20, 50, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 30, 60, 200, 700, 2000, 5000]
    columns, margin = [], np.full(n, -1.5)
    for k, size in enumerate(sizes):
        value = (size * rng.uniform(size=n) ** 3).astype(np.int64)
        effect = rng.normal(0, 0.25, size)
        margin += effect[value]
        columns.append(((value + 1) * 2_654_435_761 + k * 40_503 * 65_537) % 2**24)
    final = rng.uniform(size=n) < 1 / (1 + np.exp(-margin))
    elapsed, wait = rng.uniform(0, 21, n), rng.exponential(4.0, n)
    y = final & (wait <= elapsed)
    return FieldMatrix(np.column_stack(columns), 2**24), y, elapsed, np.where(y, wait, np.nan)


def main(n: int) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    X, y, elapsed, delay = simulated_fields(n)
    labels = check_labels(y, elapsed, delay, None, 7.0, 21.0)
    # With rare=1 every hashed value that occurs has an embedding of its own: the table is as large as it can be.
    model = NetworkModel(epochs=1, embedding=16, embedding_rows=2**20, rare=1, device=device)
    found: dict[str, object] = {"rows": n, "device": torch.cuda.get_device_name() if device == "cuda" else "cpu"}
    begun = time.perf_counter()
    encoded = model.encode(X, labels.weight)
    found["embeddings"] = model.inputs_.size
    found["encode_s"] = round(time.perf_counter() - begun, 2)
    for method in ("bl", "dfm-piecewise"):
        times = []
        for _ in range(2):  # the first one warms up
            begun = time.perf_counter()
            fit_method(model, encoded, resolve_method(method), labels)
            times.append(time.perf_counter() - begun)
        found[f"{method}_epoch_s"] = round(times[-1], 2)
    if device == "cuda":
        found["peak_gpu_gb"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    default = NetworkModel(embedding=16, device=device)
    default.encode(X, labels.weight)
    found["embeddings_by_default"] = default.inputs_.size
    begun = time.perf_counter()
    clf = DelayedFeedbackClassifier("bl", 7.0, 21.0, default)
    clf.fit(X, y, elapsed=elapsed, delay=delay)
    found["whole_fit_s"], found["epochs"] = round(time.perf_counter() - begun, 1), clf.model_.epochs
    import resource

    found["peak_host_gb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 1)
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
