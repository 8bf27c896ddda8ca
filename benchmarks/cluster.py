"""One fit on two workers of one core each, beside the local engine on two cores and Spark's own logistic regression.

    python benchmarks/cluster.py [ROWS]

Rows are simulated: 17 hashed fields with long-tailed values in 17 x 65,536 columns. Everybody fits the same rows, from memory, to labels as they stand (BL), with
the same penalty; seconds do not count making, reading or hashing rows. MLlib has no corrections. The objective is computed by one function from everybody's weights.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from belated import FieldMatrix, LinearModel
from belated.cluster.base import Cluster
from belated.cluster.sharded import Leaf, Sharded, by_rows
from belated.features.cluster_table import ClusterTable
from belated.features.field_encoder import FieldEncoder
from belated.risks.weighted import WeightedRisk

FIELDS, EACH, L2, PARTS = 17, 2**16, 1e-6, 2
NAMES = [f"f{k}" for k in range(FIELDS)]


def simulate(n: int, seed: int) -> tuple[FieldMatrix, Any]:
    weight = np.random.default_rng(0).normal(0, 0.25, FIELDS * EACH)
    rng = np.random.default_rng(seed + 1)
    values = np.minimum(rng.zipf(1.4, (n, FIELDS)), 40_000).astype(np.int64)
    columns = (values * 2654435761) % EACH + np.arange(FIELDS) * EACH
    y = rng.uniform(size=n) < expit(-1.5 + weight[columns].sum(axis=1))
    return FieldMatrix(columns.astype(np.int32), FIELDS * EACH), y


def rows_of(n: int) -> list[int]:
    return [n // PARTS] * PARTS


def local(n: int, tol: float) -> dict[str, Any]:
    parts = [simulate(rows, seed) for seed, rows in enumerate(rows_of(n))]
    X = FieldMatrix(np.concatenate([fields.indices for fields, _ in parts]), FIELDS * EACH)
    y = np.concatenate([labels for _, labels in parts])
    model = LinearModel(l2=L2, tol=tol)
    encoded = model.encode(X, np.ones(n))
    risk = WeightedRisk(y / n, ~y / n)
    model.fit(encoded, risk)
    begun = time.perf_counter()
    model.fit(encoded, risk)
    return {
        "seconds": time.perf_counter() - begun,
        "iterations": model.n_iter_,
        "objective": objective(model.coef_[0], model.intercept_[0], X, y),
    }


def objective(coef: Any, intercept: float, X: FieldMatrix, y: Any) -> float:
    margin = coef[X.indices].sum(axis=1) + intercept
    return float(np.logaddexp(0.0, np.where(y, -margin, margin)).mean() + L2 * coef @ coef)


def on_cluster(cluster: Cluster, n: int, tol: float) -> dict[str, Any]:
    kept = cluster.keep(_make, rows_of(n))
    X = ClusterTable(Sharded(cluster, Leaf(kept, 0)), NAMES, FieldEncoder(NAMES, n_columns=FIELDS * EACH))
    y = Sharded(cluster, Leaf(kept, 1))
    model = LinearModel(l2=L2, tol=tol)
    encoded = model.encode(X, np.ones_like(y, dtype=np.float64))
    risk = WeightedRisk(y / n, ~y / n)
    model.fit(encoded, risk)
    passes = _Passes(cluster)
    begun = time.perf_counter()
    model.fit(encoded, risk)
    seconds = time.perf_counter() - begun
    idle = _overhead(cluster)
    work = by_rows(_cost, model, X.rows, y).sum() / n + L2 * float(model.coef_[0] @ model.coef_[0])
    return {
        "seconds": seconds,
        "iterations": model.n_iter_,
        "objective": float(work),
        "calls": passes.count,
        "overhead of a call": idle,
        "bytes of a call and partition": 2 * 8 * encoded.width,
    }


class _Passes:
    """Counts the verbs."""

    def __init__(self, cluster: Cluster) -> None:
        self.count, run = 0, cluster._run

        def counted(*arguments: Any) -> Any:
            self.count += 1
            return run(*arguments)

        cluster._run = counted  # type: ignore[method-assign]


def _overhead(cluster: Cluster) -> float:
    cluster.total(_nothing)
    begun = time.perf_counter()
    for _ in range(10):
        cluster.total(_nothing)
    return (time.perf_counter() - begun) / 10


def _nothing(part: Any, value: Any) -> int:
    return 1


def _make(part: Any, rows: list[int]) -> Any:
    return simulate(rows[part.index], part.index)


def _cost(model: LinearModel, X: FieldMatrix, y: Any) -> Any:
    margin = model.margins(X)[:, 0]
    return np.logaddexp(0.0, np.where(y, -margin, margin))


def on_dask(n: int, tol: float) -> dict[str, Any]:
    import dask.dataframe as dd
    import pandas as pd
    from distributed import Client, LocalCluster

    from belated.cluster.dask import DaskCluster

    with (
        LocalCluster(n_workers=PARTS, threads_per_worker=1, dashboard_address=None, memory_limit="8GiB") as workers,
        Client(workers) as client,
    ):
        return on_cluster(
            DaskCluster(dd.from_pandas(pd.DataFrame({"k": range(PARTS)}), npartitions=PARTS), client), n, tol
        )


def spark_session() -> Any:
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master(f"local-cluster[{PARTS},1,4096]").config("spark.executor.memory", "4g")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def on_spark(session: Any, n: int, tol: float) -> dict[str, Any]:
    from belated.cluster.spark import SparkCluster

    cluster = SparkCluster(session.range(0, PARTS, 1, PARTS))
    found = on_cluster(cluster, n, tol)
    cluster.close()
    return found


def mllib(session: Any, n: int, folder: Path, iterations: int) -> dict[str, Any]:
    from pyspark.ml.classification import LogisticRegression

    parts = [simulate(rows, seed) for seed, rows in enumerate(rows_of(n))]
    for k, (X, y) in enumerate(parts):
        with (folder / f"{k}.txt").open("w") as out:
            for low in range(0, len(y), 100_000):
                some, labels = (X.indices[low : low + 100_000] + 1).tolist(), y[low : low + 100_000].tolist()
                out.writelines(
                    f"{int(label)} {' '.join([f'{c}:1' for c in row])}\n"
                    for row, label in zip(some, labels, strict=True)
                )
    data = (
        session.read.format("libsvm").option("numFeatures", FIELDS * EACH).load(str(folder)).coalesce(PARTS).persist()
    )
    data.count()
    engine = LogisticRegression(regParam=2 * L2, standardization=False, tol=1e-12, maxIter=iterations)
    engine.copy().setMaxIter(1).fit(data)
    begun = time.perf_counter()
    model = engine.fit(data)
    seconds = time.perf_counter() - begun
    X, y = (
        FieldMatrix(np.concatenate([x.indices for x, _ in parts]), FIELDS * EACH),
        np.concatenate([labels for _, labels in parts]),
    )
    found = objective(model.coefficients.toArray(), model.intercept, X, y)
    return {"seconds": seconds, "iterations": model.summary.totalIterations, "objective": found}


def main(n: int) -> None:
    tol = 1e-6
    print(f"{n:,} simulated rows, tol {tol:g}")
    found = {"local, 2 cores": local(n, tol), "Dask, 2 workers": on_dask(n, tol)}
    session = spark_session()
    found["Spark, 2 executors"] = on_spark(session, n, tol)
    for name, row in found.items():
        print(name, {key: f"{value:.6g}" for key, value in row.items()}, flush=True)
    for iterations in (10, 20, 40):
        with tempfile.TemporaryDirectory() as folder:
            row = mllib(session, n, Path(folder), iterations)
        print(f"MLlib, {iterations} iterations", {key: f"{value:.6g}" for key, value in row.items()}, flush=True)
    session.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6_000_000)
