"""Streams: events a second, bytes a pending row, and one pass of an online linear model beside Vowpal Wabbit and river.

    python benchmarks/streaming.py [ROWS]

Rows are simulated: 17 fields with long-tailed values, hashed. All learners see the same rows once, in the same order, on one core,
and are scored on the rows that follow. Rounds are interleaved, and the median counts. Vowpal Wabbit reads its own binary cache, made
before; river, which takes a dict for each row, sees the first 20,000 alone, and its seconds are for as many as the others have.
"""

from __future__ import annotations

import os

for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import statistics  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from importlib.util import find_spec  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from scipy.special import expit  # noqa: E402
from sklearn.metrics import log_loss  # noqa: E402

from belated import FieldMatrix, OnlineLinearModel, Stream  # noqa: E402
from belated.streaming.methods.base import Costs  # noqa: E402

FIELDS, COLUMNS, FEW, TEST = 17, 2**20, 20_000, 50_000


def simulate(n: int) -> tuple[FieldMatrix, Any]:
    rng = np.random.default_rng(0)
    values = np.minimum(rng.zipf(1.4, (n, FIELDS)), 40_000).astype(np.int64)
    hashed = (values * 2654435761 + np.arange(FIELDS) * 97_003) % COLUMNS
    weight = rng.normal(0, 0.25, COLUMNS)
    y = rng.uniform(size=n) < expit(-1.5 + weight[hashed].sum(axis=1))
    return FieldMatrix(hashed.astype(np.int32), COLUMNS), y


def ours(X: FieldMatrix, y: Any, rule: str) -> tuple[float, Any]:
    model = OnlineLinearModel(rule)
    model.open(X, 1)
    costs, head = Costs(y.astype(float), (~y).astype(float)), np.zeros(len(y), dtype=np.int64)
    n = len(y) - TEST
    begun = time.perf_counter()
    model.learn(X[:n], head[:n], costs.take(slice(n)))
    taken = time.perf_counter() - begun
    return taken, expit(model.margins(X[n:])[:, 0])


def write_vowpal(X: FieldMatrix, y: Any, file: Path) -> None:
    with file.open("w") as out:
        for row, label in zip(X.indices.tolist(), y.tolist(), strict=True):
            out.write(f"{1 if label else -1} | {' '.join(map(str, row))}\n")


def vowpal(folder: Path, y: Any, rule: str) -> tuple[float, Any]:
    from vowpalwabbit import Workspace

    how = f"--loss_function logistic -b 20 --quiet {rule}"
    begun = time.perf_counter()
    train = Workspace(f"{how} -d {folder / 'train.txt'} --cache_file {folder / 'train.cache'} -f {folder / 'model'}")
    train.finish()
    taken = time.perf_counter() - begun
    test = Workspace(f"--quiet -t -i {folder / 'model'} -d {folder / 'test.txt'} --link logistic -p {folder / 'p.txt'}")
    test.finish()
    return taken, np.loadtxt(folder / "p.txt")


def river(X: FieldMatrix, y: Any) -> tuple[float, Any]:
    from river import linear_model, optim

    model = linear_model.LogisticRegression(optim.FTRLProximal(alpha=0.1, beta=1.0, l1=0.0, l2=0.0))
    rows = [dict.fromkeys(row, 1.0) for row in X.indices[:FEW].tolist()]
    n = len(y) - TEST
    begun = time.perf_counter()
    for row, label in zip(rows, y[:FEW].tolist(), strict=True):
        model.learn_one(row, label)
    taken = (time.perf_counter() - begun) * n / FEW
    test = [dict.fromkeys(row, 1.0) for row in X.indices[n : n + 2000].tolist()]
    return taken, np.array([model.predict_proba_one(row)[True] for row in test])


def learners(n: int) -> None:
    X, y = simulate(n + TEST)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs: dict[str, Any] = {
            "belated, ftrl": lambda: ours(X, y, "ftrl"),
            "belated, adagrad": lambda: ours(X, y, "adagrad"),
        }
        if find_spec("vowpalwabbit"):
            write_vowpal(X[:n], y[:n], folder / "train.txt")
            write_vowpal(X[n:], y[n:], folder / "test.txt")
            vowpal(folder, y, "--ftrl")  # makes the cache
            runs |= {
                "Vowpal Wabbit --ftrl": lambda: vowpal(folder, y, "--ftrl"),
                "Vowpal Wabbit": lambda: vowpal(folder, y, ""),
            }
        if find_spec("river"):
            runs["river, ftrl"] = lambda: river(X, y)
        ours(X[: TEST + 10], y[: TEST + 10], "ftrl")  # compile
        found: dict[str, list[tuple[float, Any]]] = {name: [] for name in runs}
        for _ in range(3):
            for label, run in runs.items():
                found[label].append(run())
    first = statistics.median(taken for taken, _ in found["belated, ftrl"])
    print(f"One pass over {n:,} rows of {FIELDS} fields, one core:")
    for label, results in found.items():
        seconds, p = statistics.median(taken for taken, _ in results), results[0][1]
        loss = log_loss(y[n : n + len(p)], np.clip(p, 1e-6, 1 - 1e-6))
        print(
            f"  {label:22} {seconds:8.2f} s {seconds / first:7.1f} times  {n / seconds / 1e6:6.2f} M rows/s  test log loss {loss:.4f}"
        )


def streams(n: int) -> None:
    rng = np.random.default_rng(1)
    horizon = 30 * 86400
    at = np.sort(rng.uniform(0, horizon, n))
    X = FieldMatrix(rng.integers(0, COLUMNS, (n, FIELDS)), COLUMNS)
    turns = np.flatnonzero(rng.uniform(size=n) < 0.23)
    when = at[turns] + rng.exponential(3 * 86400, len(turns))
    turns, when = turns[np.argsort(when)], np.sort(when)
    keys = np.arange(n)
    print(f"A stream of {n:,} arrivals and {len(turns):,} outcomes, told hour by hour, one core:")
    for method in ("vanilla", "fnw", "es-dfm", "defer", "hazard-heads"):
        best = np.inf
        for _ in range(3):
            stream, records, a, b = Stream(method, window=900, horizon=horizon), 0, 0, 0
            begun = time.perf_counter()
            for hour in range(1, 61 * 24):
                now = 3600.0 * hour
                c, d = np.searchsorted(at, now), np.searchsorted(when, now)
                stream.arrive(keys[a:c], X[a:c], at[a:c])
                stream.outcome(turns[b:d], when[b:d])
                stream.advance(now)
                records += len(stream.records())
                if hour == 30 * 24:
                    bytes_a_row = stream.nbytes / stream.pending
                a, b = c, d
            best = min(best, time.perf_counter() - begun)
        events = n + len(turns)
        print(
            f"  {method:14} {events / best / 1e6:5.2f} M events/s, {records / best / 1e6:5.2f} M records/s, {bytes_a_row:.0f} bytes a pending row ({4 * FIELDS} of them features)"
        )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    learners(count)
    streams(2 * count)
