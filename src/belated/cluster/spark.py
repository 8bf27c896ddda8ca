"""Partitions on Spark's executors: held by their Python workers, and on the disks beside them.

Spark itself keeps a small token for each partition. It sends work to where a token lies, and makes a token that was lost again from the source, which
puts the partition there anew. What a worker does with a partition is in :mod:`.spark_worker`. It is asked by :mod:`.spark_channel`, else by a job.
"""

from __future__ import annotations

import atexit
import math
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from pyspark import Broadcast, cloudpickle
from pyspark.sql import functions

from belated.cluster.base import Cluster, Work, add_all
from belated.cluster.spark_channel import MOST, Channel, ChannelError
from belated.cluster.spark_worker import NUMBER, answer, folder_of, hold_rows, sum_over, unpacked
from belated.notices import logger

_TRIES = 3
_PAUSE = 60.0  # seconds, and twice as long each time
_LARGE = 50_000  # bytes


class SparkCluster(Cluster):
    """The partitions of a Spark DataFrame."""

    def __init__(self, frame: Any) -> None:
        self.spark = frame.sparkSession
        self.name = uuid.uuid4().hex
        self.context = self.spark.sparkContext
        name = self.name

        def hold(batches: Iterator[Any]) -> Iterator[Any]:
            yield hold_rows(name, batches)

        numbered = frame.withColumn(NUMBER, functions.spark_partition_id())
        self.tokens = numbered.mapInArrow(hold, "partition int").rdd.persist()
        found = sorted(row["partition"] for row in self.tokens.collect())
        super().__init__(len(found))
        atexit.register(self.close)  # where nobody else does
        self.history: dict[int, bytes] = {}  # number: work and value, packed
        self.sources: dict[int, Any] = {}  # and here, so that what a value refers to is not forgotten before it
        self.broadcasts: dict[int, Broadcast[bytes]] = {}  # of large ones
        self.channel: Channel | None = None
        self.slots = max(min(self.context.defaultParallelism, len(found)), 1)
        speculates = self.context.getConf().get("spark.speculation", "false") == "true"
        self.direct = self.slots <= MOST and not speculates
        # A line that could not be opened is tried again later: executors that were lost may be back.
        self.pause, self.next_try = _PAUSE, 0.0 if self.direct else math.inf
        self.told: set[int] = set()  # numbers that the tasks of the channel know

    def _run(self, work: Work, value: Any) -> Any:
        packed = cloudpickle.dumps((work, value))
        try:
            if self.direct or time.monotonic() >= self.next_try:
                found = add_all(self._ask(packed))
                self.direct = True
                return found
        except ChannelError as error:
            logger.info("Spark: no direct line to the executors (%s), so a job of its own", error)
            self.direct = self.channel is not None  # it was open before, and a new one may be again
            if not self.direct:
                self.next_try, self.pause = time.monotonic() + self.pause, 2 * self.pause
        self._hang_up()
        return self._by_job(packed)

    def _run_together(self, work: Any, value: Any) -> list[Any]:
        if self.next_try == math.inf:
            raise ValueError(
                f"this needs a direct line to Spark's executors, which there is not with spark.speculation, nor with more than {MOST} cores."
            )
        try:
            return self._ask(cloudpickle.dumps((work, value)), together=True)
        except ChannelError as error:
            raise ChannelError(f"this needs a direct line to Spark's executors: {error}") from None

    def _ask(self, packed: bytes, together: bool = False) -> list[Any]:
        """By tasks that are there and wait."""
        if self.channel is None or not self.channel.open:
            name = self.name
            self.channel, self.told = None, set()
            self.channel = Channel(self.context, self.tokens, self.slots, lambda: partial(answer, name, {}))
        new = {number: sent for number, sent in self.history.items() if number not in self.told}
        answers = self.channel.ask(cloudpickle.dumps((list(self.history), new, packed, together)))
        self.told = set(self.history)
        if None in answers:
            raise ChannelError("a partition is elsewhere")
        return [answer for (answer,) in answers]

    def _hang_up(self) -> None:
        if self.channel is not None:
            self.channel.close()
            self.channel = None

    def _by_job(self, packed: bytes) -> Any:
        """By a job."""
        name, history = self.name, {number: self._sent(number) for number in self.history}
        task = packed if len(packed) < _LARGE else self.context.broadcast(packed)

        def go(rows: Iterator[Any]) -> Iterator[Any]:
            known = {number: unpacked(sent) for number, sent in history.items()}
            yield from [sum_over(name, [row["partition"]], known, unpacked(task)) for row in rows]

        try:
            for _ in range(_TRIES):
                found = self.tokens.mapPartitions(go).collect()
                if None not in found:
                    return add_all(result for (result,) in found)
                # A partition is neither with the worker that was asked nor on its disk: make them anew.
                self.tokens.unpersist(blocking=True)
                self.tokens.persist()
        finally:
            if isinstance(task, Broadcast):
                task.destroy()
        raise RuntimeError("partitions are lost again and again; do the executors come and go?")

    def _keep(self, number: int, work: Work, value: Any) -> None:
        self.history[number], self.sources[number] = cloudpickle.dumps((work, value)), (work, value)

    def _sent(self, number: int) -> Any:
        """Work and value of a step as jobs get them: large ones once for all tasks of a worker."""
        packed = self.history[number]
        if len(packed) < _LARGE:
            return packed
        if number not in self.broadcasts:
            self.broadcasts[number] = self.context.broadcast(packed)
        return self.broadcasts[number]

    def _drop(self, numbers: list[int]) -> None:
        for number in numbers:
            for kept in (self.sources, self.history):
                kept.pop(number, None)
            if number in self.broadcasts:
                self.broadcasts.pop(number).unpersist()

    def worker_memory(self) -> int | None:
        settings = self.context.getConf()
        asked = settings.get("spark.executor.pyspark.memory")
        return None if not asked else bytes_of(asked) // int(settings.get("spark.executor.cores", "1") or 1)

    def close(self) -> None:
        super().close()
        name = self.name
        with suppress(Exception):  # the session may be gone, and with it what it held
            self._hang_up()
            self.tokens.foreachPartition(lambda rows: shutil.rmtree(folder_of(name), ignore_errors=True))
            self.tokens.unpersist()
        shutil.rmtree(folder_of(name), ignore_errors=True)  # where executors are on this machine
        atexit.unregister(self.close)


def bytes_of(setting: str) -> int:
    """An amount of memory as Spark's settings have it, where a bare number counts MiB.

    >>> bytes_of("2g") == bytes_of("2048m") == bytes_of("2048") == bytes_of("2gb") == 2 * 2**30
    True
    """
    number, unit = re.fullmatch(r"\s*(\d+)\s*([a-z]?)i?b?\s*", setting.lower()).groups()  # type: ignore[union-attr]
    return int(number) * {"b": 1, "k": 2**10, "": 2**20, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}[unit]
