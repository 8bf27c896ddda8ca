"""Real engines for the tests: a Dask cluster of processes, and Spark with executors."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

WORKERS = 2


def dask_client():
    """A client of two worker processes."""
    distributed = pytest.importorskip("distributed", reason="Dask is not installed (make test-cluster)")
    cluster = distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, memory_limit="3GiB"
    )
    return cluster, distributed.Client(cluster)


def spark_session():
    """Spark with two executors of one core; in one process, with a reason, where executors cannot be started."""
    pytest.importorskip("pyspark", reason="Spark is not installed (make test-cluster)")
    if shutil.which("java") is None:
        pytest.skip("there is no Java (make test-cluster)")
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    try:
        return _spark("local-cluster[2,1,1024]")
    except Exception as error:
        print(f"no executors ({error}): Spark runs in one process")
        return _spark("local[2]")


def _spark(master):
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "3",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.range(2).count()
    return session
