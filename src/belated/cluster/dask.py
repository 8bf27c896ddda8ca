"""Partitions on a Dask cluster: the rows of each are a future, and so is everything it keeps.

Dask knows how each future was made, so it makes those of a lost worker again; and it moves what does not fit in a worker's memory to its disk.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import dask
from distributed import Client, KilledWorker, get_client, wait

from belated.cluster.base import SOURCE, Cluster, Part, Work, add_all, packed, worked
from belated.extras import how_to_install

_LARGE = 50_000  # bytes: values above this are sent once, and not with each task that keeps something
_WITH_TASKS = 2**25  # bytes: so much may go with the tasks of one sum, which is quicker
_WITHOUT_WARNING = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}  # weights are as long as they are
_AT_A_TIME = 8  # results that are added up by one task


class DaskCluster(Cluster):
    """The partitions of a Dask DataFrame, on the workers of a client."""

    def __init__(self, frame: Any, client: Client | None = None) -> None:
        self.client = client or running_client()
        tables = self.client.compute(frame.to_delayed())
        super().__init__(len(tables))
        self.rows = [self.client.submit(_part, k, table, pure=False) for k, table in enumerate(tables)]
        self.kept: dict[int, list[Any]] = {}  # a future for each partition
        # Workers on this machine can be asked without going through the scheduler; others may be out of reach.
        self.beside = "//127.0.0.1:" in str(getattr(self.client.scheduler, "address", "")) or None

    def _run(self, work: Work, value: Any) -> Any:
        results = self._on_each(_worked, work, value, most=_WITH_TASKS // self.partitions)
        while len(results) > _AT_A_TIME:
            results = [
                self.client.submit(add_all, results[k : k + _AT_A_TIME], pure=False)
                for k in range(0, len(results), _AT_A_TIME)
            ]
        return add_all(self._gathered(results))

    def _run_together(self, work: Any, value: Any) -> list[Any]:
        sent, needed = self._sent(work, value)
        wait(self.rows)
        where = self.client.who_has(self.rows)
        held: dict[str, list[Any]] = {}
        for rows, parts in zip(self.rows, needed, strict=True):
            held.setdefault(min(where[rows.key]), []).append(parts)
        results = [
            self.client.submit(_together, parts, sent, workers=[worker], allow_other_workers=False, pure=False)
            for worker, parts in held.items()
        ]
        found: list[Any] = self._gathered(results)
        return found

    def _keep(self, number: int, work: Work, value: Any) -> None:
        parts = self._on_each(_kept, work, value, number)
        wait(parts)
        failed = [part for part in parts if part.status == "error"]
        if failed:
            self._gathered(failed[:1])  # raises
        self.kept[number] = parts

    def _gathered(self, futures: list[Any]) -> Any:
        try:
            return self.client.gather(futures, direct=self.beside)
        except KilledWorker as error:
            memory = self.worker_memory()
            limit = "" if memory is None else f" of {memory / 2**30:.2g} GiB"
            raise ValueError(
                f"workers died again and again at the same partition. Most likely it takes more than the memory{limit} that a worker may use, which is not known before it is "
                f"there. Cut the table into more partitions (repartition; in Parquet, smaller row groups), or give workers more memory."
            ) from error

    def _drop(self, numbers: list[int]) -> None:
        for number in numbers:
            self.kept.pop(number, None)

    def _on_each(self, task: Callable[..., Any], work: Work, value: Any, *more: Any, most: int = _LARGE) -> list[Any]:
        """A future for each partition."""
        sent, needed = self._sent(work, value, most)
        with dask.config.set(_WITHOUT_WARNING):
            return [self.client.submit(task, parts, sent, *more, pure=False) for parts in needed]

    def _sent(self, work: Work, value: Any, most: int = _LARGE) -> tuple[Any, list[list[Any]]]:
        """Work and value, where they have more than ``most`` bytes as a task that workers can do again; and what is needed of each partition."""
        bytes_, numbers = packed(work, value)
        needed = [self.kept[number] for number in numbers if number != SOURCE] or [self.rows]
        sent: Any = bytes_
        if len(bytes_) > max(most, _LARGE):
            with dask.config.set(_WITHOUT_WARNING):
                sent = self.client.submit(_same, bytes_, pure=False)
        return sent, [list(parts) for parts in zip(*needed, strict=True)]

    def worker_memory(self) -> int | None:
        limits = [worker["memory_limit"] for worker in self.client.scheduler_info(n_workers=-1)["workers"].values()]
        return min(limits) if limits and all(limits) else None

    def close(self) -> None:
        super().close()
        self.rows, self.kept = [], {}


def running_client() -> Client:
    """The client that the caller has made."""
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client: make one first, client = dask.distributed.Client(...). A Client() without arguments "
            f"starts workers on this machine. ({how_to_install('dask')})"
        ) from None


# On a worker.


def _part(index: int, table: Any) -> Part:
    return Part(index, {SOURCE: table})


def _same(sent: bytes) -> bytes:
    return sent


def _whole(parts: list[Part]) -> Part:
    """A partition of which each has something."""
    return Part(parts[0].index, {number: value for part in parts for number, value in part.kept.items()})


def _worked(parts: list[Part], sent: bytes) -> Any:
    return worked(_whole(parts), *pickle.loads(sent))


def _kept(parts: list[Part], sent: bytes, number: int) -> Part:
    return Part(parts[0].index, {number: _worked(parts, sent)})


def _together(parts: list[list[Part]], sent: bytes) -> Any:
    return worked([_whole(some) for some in parts], *pickle.loads(sent))
