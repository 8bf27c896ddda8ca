"""Partitions on Spark's executors: held by their Python workers, and on the disks beside them.

Spark itself keeps a small token for each partition. It sends work to where a token lies, and makes a token that was lost again from the source, which
puts the partition there anew. Beside it a worker keeps the partition in memory, and on its disk what took long to make.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import joblib
from pyspark import Broadcast, cloudpickle

from belated.cluster.base import SOURCE, Cluster, Part, Work, add_all, worked

_here: dict[tuple[str, int], Part] = {}  # in a worker: the partitions that it holds
_TRIES = 3
_LARGE = 50_000  # bytes


class SparkCluster(Cluster):
    """The partitions of a Spark DataFrame."""

    def __init__(self, frame: Any) -> None:
        self.spark = frame.sparkSession
        self.name = uuid.uuid4().hex
        self.context = self.spark.sparkContext
        name = self.name

        def hold(batches: Iterator[Any]) -> Iterator[Any]:
            yield _hold(name, batches)

        self.tokens = frame.mapInArrow(hold, "partition int").rdd.persist()
        found = sorted(row["partition"] for row in self.tokens.collect())
        super().__init__(len(found))
        atexit.register(self.close)  # where nobody else does
        self.history: dict[int, Any] = {}  # number: work and value, sent to all
        self.sources: dict[int, Any] = {}  # and here, so that what a value refers to is not forgotten before it

    def _run(self, work: Work, value: Any) -> Any:
        task = self._sent(work, value)
        try:
            return add_all(self._results(task))
        finally:
            if isinstance(task, Broadcast):
                task.destroy()

    def _results(self, task: Any) -> list[Any]:
        name, history = self.name, dict(self.history)

        def go(rows: Iterator[Any]) -> Iterator[Any]:
            for row in rows:
                part = _partition(name, row["partition"], history)
                yield None if part is None else (worked(part, *_received(task)),)

        for _ in range(_TRIES):
            found = self.tokens.mapPartitions(go).collect()
            if all(result is not None for result in found):
                return [result for (result,) in found]
            # A partition is neither with the worker that was asked nor on its disk: make them anew.
            self.tokens.unpersist(blocking=True)
            self.tokens.persist()
        raise RuntimeError("partitions are lost again and again; do the executors come and go?")

    def _keep(self, number: int, work: Work, value: Any) -> None:
        self.history[number], self.sources[number] = self._sent(work, value), (work, value)

    def _sent(self, work: Work, value: Any) -> Any:
        """Work and value as workers get them: large ones once for all tasks of a worker."""
        packed = cloudpickle.dumps((work, value))
        return packed if len(packed) < _LARGE else self.context.broadcast(packed)

    def _drop(self, numbers: list[int]) -> None:
        for number in numbers:
            self.sources.pop(number, None)
            gone = self.history.pop(number, None)
            if isinstance(gone, Broadcast):
                gone.unpersist()

    def worker_memory(self) -> int | None:
        asked = self.context.getConf().get("spark.executor.pyspark.memory")
        units = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
        return None if not asked else int(float(asked.rstrip("bB")[:-1]) * units.get(asked.rstrip("bB")[-1].lower(), 1))

    def close(self) -> None:
        name = self.name
        with suppress(Exception):  # the session may be gone, and with it what it held
            self.tokens.foreachPartition(lambda rows: shutil.rmtree(_folder(name), ignore_errors=True))
            self.tokens.unpersist()


# In a worker.


def _folder(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"belated-{os.getuid()}-{name}"


def _hold(name: str, batches: Iterator[Any]) -> Any:
    """Take the rows of a partition from Spark."""
    import pyarrow as pa
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    index = context.partitionId()
    parts = list(batches)
    if parts:
        table = pa.Table.from_batches(parts)
        folder = _folder(name)
        folder.mkdir(mode=0o700, exist_ok=True)
        partial = folder / f"{index}-{uuid.uuid4().hex}"
        joblib.dump(table, partial)
        partial.replace(folder / f"{index}.rows")
        _here[name, index] = Part(index, {SOURCE: table})
    return pa.RecordBatch.from_pydict({"partition": pa.array([index] if parts else [], pa.int32())})


def _received(task: Any) -> Any:
    return cloudpickle.loads(task.value if isinstance(task, Broadcast) else task)


def _partition(name: str, index: int, history: dict[int, Any]) -> Part | None:
    """A partition with all that it keeps, made again where this worker does not hold it; None where its rows are not on this machine."""
    part = _here.get((name, index))
    if part is None:
        file = _folder(name) / f"{index}.rows"
        if not file.exists():
            return None
        part = _here[name, index] = Part(index, {SOURCE: joblib.load(file)})
    for number in [number for number in part.kept if number not in history and number != SOURCE]:
        del part.kept[number]
    for number, pair in history.items():
        if number not in part.kept:
            part.kept[number] = worked(part, *_received(pair))
    return part
