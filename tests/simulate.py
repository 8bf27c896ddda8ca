"""Small simulated snapshots whose true labels and laws are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit


@dataclass
class Simulated:
    X: Any
    truth: np.ndarray  # the final labels
    rate: np.ndarray  # p(C=1 | x)
    y: np.ndarray
    elapsed: np.ndarray
    delay: np.ndarray
    full_delay: np.ndarray  # also where not yet seen; NaN for true negatives


def reveal(X, truth, rate, elapsed, wait) -> Simulated:
    """What is seen of final labels after ``elapsed``, when a positive shows up after ``wait``."""
    y = truth & (wait <= elapsed)
    return Simulated(X, truth, rate, y.astype(int), elapsed, np.where(y, wait, np.nan), np.where(truth, wait, np.nan))


def simulate(seed=0, n=3000, history=20.0, mean=2.0, longest=5.0, level=-0.8, frame=None) -> Simulated:
    """Steady arrivals over ``history`` days; exponential delays cut at ``longest``, so that a window of it is right."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    group = rng.integers(0, 4, n)
    rate = expit(level + x[:, 0] - 0.5 * x[:, 1] + 0.3 * (group == 1))
    truth = rng.uniform(size=n) < rate
    elapsed = rng.uniform(0, history, n)
    scale = mean * np.exp(0.3 * x[:, 1])
    wait = -scale * np.log1p(-rng.uniform(size=n) * -np.expm1(-longest / scale))
    return reveal(_as_frame(x, group, frame), truth, rate, elapsed, wait)


def _as_frame(x, group, frame):
    if frame is None:
        return np.column_stack([x, *(group == g for g in range(3))]).astype(float)
    columns = {
        "a": x[:, 0],
        "b": np.where(np.arange(len(x)) % 50 == 0, np.nan, x[:, 1]),
        "group": np.array(["north", "east", "south", None], dtype=object)[group],
        "flag": x[:, 2] > 0,
    }
    if frame == "pandas":
        import pandas as pd

        return pd.DataFrame(columns)
    if frame == "polars":
        import polars as pl

        return pl.DataFrame({name: values.tolist() for name, values in columns.items()}, nan_to_null=True)
    import pyarrow as pa

    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
