"""Time to a given precision on simulated Criteo-like logs: belated beside scikit-learn, LIBLINEAR and Vowpal Wabbit.

    make bench            # 1 M rows against the peers, then 0.25 to 6 M rows: about half an hour
    python benchmarks/wide.py --rows 100000 --rounds 1 --no-scaling      # a quick look

17 fields with up to 10^6 long-tailed values, hashed into 2^24 columns. Every fit runs in a process of its own on the same
files; rounds are interleaved, and the median counts. All minimise mean logistic loss + l2 ||w||^2 with l2 = 1/(2 n C),
intercept free. An iterative solver is given the fewest iterations (out of 1, 2, 3, 5, 8, 12, 18, 27, ...) that bring it within
1e-4 of the minimum, relative, so its time is that of a user who knew when to stop. Vowpal Wabbit reads a text file of its
own, once, and its online learner minimises something else, so only its test log loss counts. The test log loss is that of
100,000 further rows. The table also goes to ``wide.json`` beside this file, from which ``docs/pictures/speed.py`` draws.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from simulated_rows import SIZES

STEPS = [1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200]
PEERS = {
    0.1: ["belated", "saga", "liblinear -s 7", "liblinear -s 0", "lbfgs", "sgd", "vw --bfgs"],
    1.0: ["belated", "saga", "liblinear -s 7", "liblinear -s 0"],
}
GROWTH = {
    "belated": (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000, 6_000_000),
    "saga": (250_000, 1_000_000, 6_000_000),
}
GROWTH["liblinear -s 7"] = GROWTH["saga"]
TARGET = 1e-4
TEST = 100_000  # rows


def simulate(n: int, folder: Path) -> None:
    """Save fields and labels; field j has SIZES[j] values, the r-th of them with frequency about 1/r."""
    import pyarrow as pa

    from belated import FieldMatrix

    if folder.exists():
        return
    rng = np.random.default_rng(0)
    n += TEST
    margin = np.full(n, -1.5)
    columns = {}
    for j, size in enumerate(SIZES):
        value = np.minimum(np.floor(size ** rng.random(n)), size) - 1
        margin += 0.2 * rng.normal(size=size)[value.astype(int)]
        columns[f"field{j}"] = value.astype(np.int64)
    fields, y = FieldMatrix.from_frame(pa.table(columns)), rng.random(n) < 1 / (1 + np.exp(-margin))
    fields[:-TEST].save(folder / "fields")
    fields[-TEST:].save(folder / "test_fields")
    np.save(folder / "y.npy", y[:-TEST])
    np.save(folder / "test_y.npy", y[-TEST:])


def scores(matrix: Any, y: Any, coef: Any, l2: float, test: Any, test_y: Any) -> dict[str, float]:
    """Objective and test log loss, at the best intercept for these weights."""
    z = np.asarray(matrix @ coef, dtype=np.float64)
    intercept = 0.0
    for _ in range(30):
        p = 1 / (1 + np.exp(-(z + intercept)))
        intercept -= (p.mean() - y.mean()) / (p * (1 - p)).mean()
    signed = np.where(y, z + intercept, -z - intercept)
    found = float(np.logaddexp(0, -signed).mean() + l2 * coef @ coef)
    return {"objective": found, "test": log_loss(test @ coef + intercept, test_y)}


def log_loss(z: Any, y: Any) -> float:
    return float(np.logaddexp(0, np.where(y, -z, z)).mean())


def vowpal(options: str, rows: Any, y: Any, folder: Path) -> tuple[float, Any]:
    """A run of Vowpal Wabbit on a text file with the compacted columns as names, and the weights it found."""
    from vowpalwabbit import Workspace

    file = folder / "rows.vw"
    if not file.exists():
        with file.open("w") as out:
            for label, row in zip(y, rows.indices.reshape(rows.n, -1).tolist(), strict=True):
                out.write(f"{'1' if label else '-1'} | {' '.join(map(str, row))}\n")
    bits = int(np.ceil(np.log2(rows.shape[1] + 1)))
    start = time.perf_counter()
    found = Workspace(f"-d {file} -k -c --holdout_off --loss_function logistic -b {bits} --quiet {options}")
    return time.perf_counter() - start, found


def fit(name: str, folder: Path, C: float, budget: float) -> dict[str, float]:
    """One fit in this process; ``budget`` is a number of iterations, or belated's tol."""
    from belated import FieldMatrix, LinearModel
    from belated.risks.weighted import WeightedRisk

    fields, y = FieldMatrix.open(folder / "fields"), np.load(folder / "y.npy")
    test_fields, test_y = FieldMatrix.open(folder / "test_fields"), np.load(folder / "test_y.npy")
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
        memory = peak()
        test = log_loss(model.margins(test_fields)[:, 0], test_y)
        found = {"objective": model.objective_, "test": test, "n_iter": model.n_iter_, "gib": memory}
        return {"seconds": seconds, "encode": encoded, **found}

    from belated.solvers.rows import SparseRows

    rows = SparseRows.compact(fields)
    kind = np.float32 if name == "lbfgs" else np.float64
    from scipy import sparse

    indptr = np.arange(0, rows.size + 1, rows.k, dtype=np.int32)
    matrix = sparse.csr_matrix((np.ones(rows.size, dtype=kind), rows.indices, indptr), shape=rows.shape)
    test = test_fields.to_csr()[:, rows.columns]
    if name.startswith("vw"):
        online = name == "vw, one pass"
        seconds, found = vowpal("" if online else f"--bfgs --l2 {2 * l2 * n} --passes {int(budget)}", rows, y, folder)
        memory = peak()
        coef = np.array([found.get_weight(j) for j in range(rows.shape[1])])
        found.finish()
        result = scores(matrix, y, coef, l2, test, test_y)
        return {"seconds": seconds, "gib": memory} | ({"test": result["test"]} if online else result)
    if name.startswith("liblinear"):
        from liblinear.liblinearutil import parameter, problem, train

        data = problem(np.where(y, 1.0, -1.0), matrix, bias=1)
        options = parameter(f"{name.split(' ', 1)[1]} -c {C} -e {10.0**-budget} -q")
        start = time.perf_counter()
        found = train(data, options)
        seconds, memory = time.perf_counter() - start, peak()
        coef = np.array(found.w[: matrix.shape[1]]) * (1.0 if found.label[0] == 1 else -1.0)
        return {"seconds": seconds, "gib": memory, **scores(matrix, y, coef, l2, test, test_y)}

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
        seconds, memory = time.perf_counter() - start, peak()
    coef = model_.coef_[0].astype(np.float64)
    return {"seconds": seconds, "gib": memory, **scores(matrix, y, coef, l2, test, test_y)}


def peak() -> float:
    """GiB. Not by getrusage, where a new process begins with the peak of the one that made it."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


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
        steps = STEPS[1:] if name.startswith("vw") else STEPS
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
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a peer may take")
    parser.add_argument("--no-scaling", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("wide.json"))
    parser.add_argument("--worker", nargs=4)
    options = parser.parse_args()
    if options.worker:
        name, folder, C, budget = options.worker
        print(json.dumps(fit(name, Path(folder), float(C), float(budget))))
        return

    console = Console(width=120)
    machine = f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    console.print(machine)
    folder = options.folder / f"criteo-like-{options.rows}"
    simulate(options.rows, folder)
    saved: dict[str, Any] = {"machine": machine, "rows": options.rows, "target": TARGET, "fits": [], "growth": []}
    known = {}
    for C, names in PEERS.items():
        best = run("belated", folder, C, 1e-9)["objective"]
        budgets = {}
        for name in names:
            if name.startswith("vw") and find_spec("vowpalwabbit") is None:
                console.print("Vowpal Wabbit is not installed, and left out.")
                continue
            found = budget_for(name, folder, C, best, options.limit)
            if found is None:
                console.print(f"C = {C:g}: {name} did not come within {TARGET:g} in {options.limit:g} s")
                saved["fits"].append({"C": C, "name": name, "seconds": None, "limit": options.limit})
            else:
                budgets[name] = found[0]
        known[C] = budgets.copy()
        if C == 0.1 and find_spec("vowpalwabbit"):
            budgets["vw, one pass"] = 1
        times: dict[str, list[dict[str, float]]] = {name: [] for name in budgets}
        for _ in range(options.rounds):
            for name, budget in budgets.items():
                times[name].append(run(name, folder, C, budget))
        base = np.median([r["seconds"] for r in times["belated"]])
        console.print(f"\n{options.rows:,} rows, C = {C:g}: seconds to within {TARGET:g} of the minimum ({best:.6f})")
        for name, runs in times.items():
            row = {key: float(np.median([r[key] for r in runs])) for key in runs[0]}
            row["excess"] = row["objective"] / best - 1 if "objective" in row else None
            saved["fits"].append({"C": C, "name": name, "ratio": row["seconds"] / base, **row})
            extra = f", of which compaction {row['encode']:.2f}" if name == "belated" else ""
            excess = "" if row["excess"] is None else f"{row['excess']:.1e}"
            console.print(
                f"| {name} | {row['seconds']:.2f} s{extra} | {row['seconds'] / base:.1f}x | {excess} | {row['test']:.5f} "
                f"| {row['gib']:.1f} GiB |"
            )
        options.out.write_text(json.dumps(saved, indent=1))
    if options.no_scaling:
        return
    console.print("\nHow time grows, C = 0.1")
    for name, sizes in GROWTH.items():
        for n in sizes:
            folder = options.folder / f"criteo-like-{n}"
            simulate(n, folder)
            rounds = options.rounds if name == "belated" else 1
            runs = [run(name, folder, 0.1, known[0.1][name]) for _ in range(rounds)]
            row = {key: float(np.median([r[key] for r in runs])) for key in runs[0]}
            saved["growth"].append({"name": name, "rows": n, **row})
            extra = f" | {row['encode']:.2f} s" if name == "belated" else ""
            console.print(
                f"| {name} | {n:,} | {row['seconds']:.2f} s{extra} | {row['seconds'] / n * 1e6:.2f} us | {row['gib']:.1f} GiB |"
            )
    options.out.write_text(json.dumps(saved, indent=1))


if __name__ == "__main__":
    main()
