"""LinearModel beside scikit-learn on the same matrix and objective (BL on simulated clicks), interleaved in one run.

    make bench

Prints the median seconds of five rounds, the ratio to LinearModel, and how far each objective is from the least found.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from belated import BL, LinearModel, TableEncoder
from belated.data.labels import check_labels
from belated.datasets import simulate_clicks

L2, ROUNDS = 1e-5, 5

clicks = simulate_clicks(days=64, clicks_per_day=3000)
y = clicks["conversion_time"].is_valid().to_numpy()
matrix = TableEncoder().fit_transform(clicks.select(["campaign", "device", "country", "price"]))
risk = BL().risk(check_labels(y), None)  # type: ignore[arg-type]


def objective(coef: np.ndarray, intercept: float) -> float:
    p = expit(np.where(y, 1, -1) * (matrix @ coef + intercept))
    return float(-np.log(p).mean() + L2 * coef @ coef)


def ours() -> float:
    model = LinearModel(l2=L2)
    return model.fit(model.encode(matrix, None), risk).objective_


def theirs(solver: str, tol: float) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=1 / (2 * L2 * len(y)), solver=solver, tol=tol, max_iter=1000).fit(matrix, y)
    return objective(model.coef_[0], model.intercept_[0])


contestants = {
    "belated LinearModel": ours,
    "scikit-learn lbfgs, tol 1e-4": lambda: theirs("lbfgs", 1e-4),
    "scikit-learn lbfgs, tol 1e-8": lambda: theirs("lbfgs", 1e-8),
    "scikit-learn newton-cg, tol 1e-8": lambda: theirs("newton-cg", 1e-8),
}
seconds: dict[str, list[float]] = {name: [] for name in contestants}
values: dict[str, float] = {}
for _ in track(range(ROUNDS), description="Rounds"):
    for name, run in contestants.items():
        start = time.perf_counter()
        values[name] = run()
        seconds[name].append(time.perf_counter() - start)

least = min(values.values())
table = Table(title=f"BL on {matrix.shape[0]:,} simulated clicks, {matrix.shape[1]} columns, l2 = {L2:g}")
table.add_column("solver")
for heading in ("seconds", "ratio", "excess objective"):
    table.add_column(heading, justify="right")
base = np.median(seconds["belated LinearModel"])
for name, times in seconds.items():
    median = np.median(times)
    table.add_row(name, f"{median:.2f}", f"{median / base:.1f}", f"{values[name] - least:.1e}")
Console().print(table)
