"""Boosting under our objectives against LightGBM's own binary objective: the same rows, rounds and parameters, in turn.

    python benchmarks/boosting.py 500000

Prints seconds of training alone (medians of five, after binning) and their ratio, for several methods.
"""

from __future__ import annotations

import statistics
import sys
import time

import lightgbm
import numpy as np

from belated import BoostingModel
from belated.data.labels import check_labels
from belated.methods import resolve_method
from belated.models.boosting_rounds import Rounds

ROUNDS = 100


def simulated(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    final = rng.uniform(size=n) < 1 / (1 + np.exp(1.5 - X[:, 0] - X[:, 1] * X[:, 2]))
    elapsed, wait = rng.uniform(0, 20, n), rng.exponential(3.0, n)
    y = final & (wait <= elapsed)
    return X, y, elapsed, np.where(y, wait, np.nan)


def main(n: int) -> None:
    X, y, elapsed, delay = simulated(n)
    labels = check_labels(y, elapsed, delay, None, 5.0, 20.0)
    model = BoostingModel(ROUNDS, feature_fraction=1.0, delay_model="constant")
    encoded = model.encode(X, labels.weight)
    risks = {name: resolve_method(name).risk(labels, None) for name in ("bl", "convdf", "nndf", "dfm", "dfm-piecewise", "hazard")}  # fmt: skip
    params = {"objective": "binary", "learning_rate": 0.03, "num_leaves": 15, "min_data_in_leaf": 100, "verbose": -1}
    params |= {"deterministic": True, "force_col_wise": True, "num_threads": 0}

    def plain() -> float:
        data = lightgbm.Dataset(X, y.astype(float), params=params).construct()
        booster = lightgbm.Booster(params, data)
        begun = time.perf_counter()
        for _ in range(ROUNDS):
            booster.update()
        return time.perf_counter() - begun

    def ours(name: str) -> float:
        learning = Rounds(model, encoded, risks[name])
        begun = time.perf_counter()
        for _ in range(ROUNDS):
            learning.one_round()
        return time.perf_counter() - begun

    times: dict[str, list[float]] = {"lightgbm binary": []} | {name: [] for name in risks}
    for turn in range(6):  # the first turn compiles and warms up
        for name, found in times.items():
            seconds = plain() if name == "lightgbm binary" else ours(name)
            if turn:
                found.append(seconds)
    base = statistics.median(times["lightgbm binary"])
    for name, found in times.items():
        print(f"{name:16} {statistics.median(found):6.2f} s  {statistics.median(found) / base:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
