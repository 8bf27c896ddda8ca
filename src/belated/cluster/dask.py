"""Partitions on a Dask cluster: each is a future, and so is everything it keeps.

Dask knows how each future was made, so it makes those of a lost worker again; and it moves what does not fit in a worker's memory to its disk.
"""

from __future__ import annotations

from typing import Any

from distributed import Client, get_client, wait

from belated.cluster.base import SOURCE, Cluster, Part, Work, add_all, with_kept, without, worked
from belated.extras import how_to_install

_LARGE = 50_000  # bytes: values above this are sent once to each worker, not with each task
_AT_A_TIME = 8  # results that are added up by one task


class DaskCluster(Cluster):
    """The partitions of a Dask DataFrame, on the workers of a client."""

    def __init__(self, frame: Any, client: Client | None = None) -> None:
        self.client = client or running_client()
        tables = self.client.compute(frame.to_delayed())
        super().__init__(len(tables))
        self.parts = [self.client.submit(_part, k, table, pure=False) for k, table in enumerate(tables)]

    def _run(self, work: Work, value: Any) -> Any:
        sent = self._sent(value)
        results = [self.client.submit(worked, part, work, sent, pure=False) for part in self.parts]
        while len(results) > _AT_A_TIME:
            results = [
                self.client.submit(add_all, results[k : k + _AT_A_TIME], pure=False)
                for k in range(0, len(results), _AT_A_TIME)
            ]
        return add_all(self.client.gather(results))

    def _run_together(self, work: Any, value: Any) -> list[Any]:
        wait(self.parts)
        where = self.client.who_has(self.parts)
        held: dict[str, list[Any]] = {}
        for part in self.parts:
            held.setdefault(min(where[part.key]), []).append(part)
        results = [
            self.client.submit(worked, parts, work, value, workers=[worker], allow_other_workers=False, pure=False)
            for worker, parts in held.items()
        ]
        found: list[Any] = self.client.gather(results)
        return found

    def _keep(self, number: int, work: Work, value: Any) -> None:
        sent = self._sent(value)
        parts = [self.client.submit(with_kept, part, number, work, sent, pure=False) for part in self.parts]
        wait(parts)
        for part in parts:
            if part.status == "error":
                part.result()  # raises
        self.parts = parts

    def _drop(self, numbers: list[int]) -> None:
        self.parts = [self.client.submit(without, part, numbers, pure=False) for part in self.parts]

    def _sent(self, value: Any) -> Any:
        """A value, or a future of it on all workers where it is large."""
        from dask.sizeof import sizeof

        if sizeof(value) < _LARGE:
            return value
        return self.client.scatter(value, broadcast=True, hash=False)

    def worker_memory(self) -> int | None:
        limits = [worker["memory_limit"] for worker in self.client.scheduler_info(n_workers=-1)["workers"].values()]
        return min(limits) if limits and all(limits) else None

    def close(self) -> None:
        self.parts = []


def running_client() -> Client:
    """The client that the caller has made."""
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client: make one first, client = dask.distributed.Client(...). A Client() without arguments "
            f"starts workers on this machine. ({how_to_install('dask')})"
        ) from None


def _part(index: int, table: Any) -> Part:
    return Part(index, {SOURCE: table})
