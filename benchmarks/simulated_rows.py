"""Simulated rows like Criteo's, for benchmarks: 17 fields with up to 10^6 long-tailed values, hashed into 2^24 columns."""

from __future__ import annotations

import numpy as np

from belated import FieldMatrix

SIZES = [3, 8, 20, 50, 100, 300, 600, 1000, 2000, 5000, 10**4, 2 * 10**4, 5 * 10**4, 10**5, 2 * 10**5, 5 * 10**5, 10**6]


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
