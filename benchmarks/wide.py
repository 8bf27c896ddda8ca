"""Time to a given precision on simulated Criteo-like logs: belated beside scikit-learn and LIBLINEAR, in one run.

    make bench            # 1 M rows against the peers, then 0.25 to 6 M rows alone: about half an hour
    python benchmarks/wide.py --rows 100000 --rounds 1 --no-scaling      # a quick look

17 fields with up to 10^6 long-tailed values, hashed into 2^24 columns. Every fit runs in a process of its own on the same
files; rounds are interleaved, and the median counts. All minimise mean logistic loss + l2 ||w||^2 with l2 = 1/(2 n C),
intercept free. An iterative solver is given the fewest iterations (out of 1, 2, 3, 5, 8, 12, 18, 27, ...) that bring it within
1e-4 of the minimum, relative, so its time is that of a user who knew when to stop.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

STEPS = [1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200]
SIZES = [3, 8, 20, 50, 100, 300, 600, 1000, 2000, 5000, 10**4, 2 * 10**4, 5 * 10**4, 10**5, 2 * 10**5, 5 * 10**5, 10**6]
PEERS = {
    0.1: ["belated", "saga", "liblinear -s 7", "liblinear -s 0", "lbfgs", "sgd"],
    1.0: ["belated", "saga", "liblinear -s 7", "liblinear -s 0"],
}
TARGET = 1e-4


def simulate(n: int, folder: Path) -> None:
    """Save fields and labels; field j has SIZES[j] values, the r-th of them with frequency about 1/r."""
    import pyarrow as pa

    from belated import FieldMatrix

    rng = np.random.default_rng(0)
    margin = np.full(n, -1.5)
    columns = {}
    for j, size in enumerate(SIZES):
        value = np.minimum(np.floor(size ** rng.random(n)), size) - 1
        margin += 0.2 * rng.normal(size=size)[value.astype(int)]
        columns[f"field{j}"] = value.astype(np.int64)
    FieldMatrix.from_frame(pa.table(columns)).save(folder / "fields")
    np.save(folder / "y.npy", rng.random(n) < 1 / (1 + np.exp(-margin)))


def objective(matrix: Any, y: Any, coef: Any, l2: float) -> float:
    """At the best intercept for these weights."""
    z = np.asarray(matrix @ coef, dtype=np.float64)
    intercept = 0.0
    for _ in range(30):
        p = 1 / (1 + np.exp(-(z + intercept)))
        intercept -= (p.mean() - y.mean()) / (p * (1 - p)).mean()
    signed = np.where(y, z + intercept, -z - intercept)
    return float(np.logaddexp(0, -signed).mean() + l2 * coef @ coef)


def fit(name: str, folder: Path, C: float, budget: float) -> dict[str, float]:
    """One fit in this process; ``budget`` is a number of iterations, or belated's tol."""
    from belated import FieldMatrix, LinearModel
    from belated.risk import WeightedRisk

    fields, y = FieldMatrix.open(folder / "fields"), np.load(folder / "y.npy")
    n, l2 = len(y), 1 / (2 * len(y) * C)
    if name == "belated":
        fields.indices = np.array(fields.indices)
        risk = WeightedRisk(y / n, ~y / n)
        LinearModel(l2=l2, tol=1e-2).fit(
            LinearModel().encode(fields[:50_000], None), WeightedRisk(y[:50_000] / 5e4, ~y[:50_000] / 5e4)
        )
        model = LinearModel(l2=l2, tol=budget)
        start = time.perf_counter()
        rows = model.encode(fields, None)
        encoded = time.perf_counter() - start
        model.fit(rows, risk)
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "encode": encoded, "objective": model.objective_, "n_iter": model.n_iter_}

    from belated.solvers.rows import SparseRows

    rows = SparseRows.compact(fields)
    kind = np.float32 if name == "lbfgs" else np.float64
    from scipy import sparse

    indptr = np.arange(0, rows.size + 1, rows.k, dtype=np.int32)
    matrix = sparse.csr_matrix((np.ones(rows.size, dtype=kind), rows.indices, indptr), shape=rows.shape)
    if name.startswith("liblinear"):
        from liblinear.liblinearutil import parameter, problem, train

        data = problem(np.where(y, 1.0, -1.0), matrix, bias=1)
        options = parameter(f"{name.split(' ', 1)[1]} -c {C} -e {10.0**-budget} -q")
        start = time.perf_counter()
        found = train(data, options)
        seconds = time.perf_counter() - start
        coef = np.array(found.w[: matrix.shape[1]]) * (1.0 if found.label[0] == 1 else -1.0)
        return {"seconds": seconds, "objective": objective(matrix, y, coef, l2)}

    from sklearn.linear_model import LogisticRegression, SGDClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "sgd":
            model_: Any = SGDClassifier(
                loss="log_loss", alpha=2 * l2, max_iter=int(budget), tol=None, average=True, random_state=0
            )
        else:
            model_ = LogisticRegression(C=C, solver=name, max_iter=int(budget), tol=1e-12, random_state=0)
        start = time.perf_counter()
        model_.fit(matrix, y)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "objective": objective(matrix, y, model_.coef_[0].astype(np.float64), l2)}


def run(name: str, folder: Path, C: float, budget: float) -> dict[str, float]:
    """A fit in a new process, with its peak memory."""
    command = [sys.executable, __file__, "--worker", name, str(folder), str(C), str(budget)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def budget_for(name: str, folder: Path, C: float, best: float, limit: float) -> tuple[float, dict[str, float]] | None:
    """The smallest budget that reaches the target, or None where a run takes longer than ``limit`` seconds before."""
    if name == "belated":
        steps = [1e-2, 1e-3, 5e-4, 2e-4, 1e-4, 3e-5, 1e-5]
    elif name.startswith("liblinear"):
        steps = [0.5, 1, 1.5, 2, 3, 4]
    else:
        steps = STEPS
    result = None
    for step in steps:
        result = run(name, folder, C, step)
        if result["objective"] <= best * (1 + TARGET):
            return step, result
        if result["seconds"] > limit:
            return None
    return None


def main() -> None:
    from rich.console import Console

    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a peer may take")
    parser.add_argument("--no-scaling", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("data"))
    parser.add_argument("--worker", nargs=4)
    options = parser.parse_args()
    if options.worker:
        name, folder, C, budget = options.worker
        result = fit(name, Path(folder), float(C), float(budget))
        result["gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(result))
        return

    console = Console(width=120)
    console.print(f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    folder = options.folder / f"criteo-like-{options.rows}"
    if not folder.exists():
        simulate(options.rows, folder)
    for C, names in PEERS.items():
        best = run("belated", folder, C, 1e-9)["objective"]
        budgets = {}
        for name in names:
            found = budget_for(name, folder, C, best, options.limit)
            if found is None:
                console.print(f"C = {C:g}: {name} did not come within {TARGET:g} in {options.limit:g} s")
            else:
                budgets[name] = found[0]
        times: dict[str, list[dict[str, float]]] = {name: [] for name in budgets}
        for _ in range(options.rounds):
            for name, budget in budgets.items():
                times[name].append(run(name, folder, C, budget))
        base = np.median([r["seconds"] for r in times["belated"]])
        console.print(f"\n{options.rows:,} rows, C = {C:g}: seconds to within {TARGET:g} of the minimum ({best:.6f})")
        for name, runs in times.items():
            seconds, gib = (np.median([r[key] for r in runs]) for key in ("seconds", "gib"))
            excess = runs[0]["objective"] / best - 1
            extra = f", of which compaction {np.median([r['encode'] for r in runs]):.2f}" if name == "belated" else ""
            console.print(f"| {name} | {seconds:.2f} s{extra} | {seconds / base:.1f}x | {excess:.1e} | {gib:.1f} GiB |")
    if options.no_scaling:
        return
    console.print("\nbelated alone, C = 0.1, tol 5e-4")
    for n in (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 6_000_000):
        folder = options.folder / f"criteo-like-{n}"
        if not folder.exists():
            simulate(n, folder)
        runs = [run("belated", folder, 0.1, 5e-4) for _ in range(options.rounds)]
        seconds, encode, gib = (np.median([r[key] for r in runs]) for key in ("seconds", "encode", "gib"))
        console.print(f"| {n:,} | {seconds:.2f} s | {encode:.2f} s | {seconds / n * 1e6:.2f} us | {gib:.1f} GiB |")


if __name__ == "__main__":
    main()
