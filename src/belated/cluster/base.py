"""The one verb: run a function on every partition with a value that all of them get, and add up the results.

A partition can also *keep* what a function makes of it, for functions that come later. What it keeps can be made again from its
source at any time, by the same functions in the same order; so a worker that is lost costs time and nothing else.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import reduce
from itertools import count
from typing import Any

import numpy as np

from belated.threads import threads

Work = Callable[["Part", Any], Any]
_met: ContextVar[set[int] | None] = ContextVar("belated_met", default=None)
_COPIES = 4  # of a partition: its table, its features, these encoded, and what a pass needs


@dataclass
class Part:
    """What a worker has of one partition: its number, and all that it keeps, by number."""

    index: int
    kept: dict[int, Any] = field(default_factory=dict)

    def __sizeof__(self) -> int:
        return 1000 + sum(_bytes(value) for value in self.kept.values())


class Kept:
    """A handle of what every partition keeps; when nobody holds it any more, they forget it."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        met = _met.get()
        if met is not None:
            met.add(self.number)
        return Kept, (self.number,)


def packed(work: Work, value: Any) -> tuple[bytes, list[int]]:
    """A function and its value as bytes, and what they refer to of that which partitions keep."""
    import cloudpickle

    met: set[int] = set()
    token = _met.set(met)
    try:
        return cloudpickle.dumps((work, value)), sorted(met)
    finally:
        _met.reset(token)


class Cluster:
    """Partitions of some rows, wherever they are. An engine writes :meth:`_run`, :meth:`_run_together`, :meth:`_keep` and :meth:`_drop`.

    A function finds in ``part.kept`` what its value refers to by a :class:`Kept`; where it refers to none, the rows that the partition was made with, by the
    number ``SOURCE``. Several threads may use a cluster; one waits for the other.

    Parameters
    ----------
    partitions : int
        How many there are.
    """

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self._numbers = count()
        self._forgotten: list[int] = []
        self._lock = threading.RLock()
        self.closed = False

    def total(self, work: Work, value: Any = None) -> Any:
        """The sum of ``work(part, value)`` over all partitions; see :func:`add` for what a sum is."""
        with self._lock:
            self._forget()
            return self._run(work, value)

    def keep(self, work: Work, value: Any = None) -> Kept:
        """Have each partition keep ``work(part, value)``, as ``part.kept[number]``."""
        with self._lock:
            self._forget()
            kept = Kept(next(self._numbers))
            weakref.finalize(kept, self._forgotten.append, kept.number)
            self._keep(kept.number, work, value)
        return kept

    def together(self, work: Callable[[list[Part], Any], Any], value: Any = None) -> list[Any]:
        """What ``work(parts, value)`` gives in every worker, run in all of them at the same time, with the partitions that each holds.

        For what talks among workers itself, as LightGBM does.
        """
        with self._lock:
            self._forget()
            return self._run_together(work, value)

    def worker_memory(self) -> int | None:
        """How many bytes the smallest worker may use, where that is known."""
        return None

    def check_memory(self) -> None:
        """Refuse partitions that no worker could hold, before work on them begins."""
        memory = self.worker_memory()
        if memory is None:
            return
        largest = self.total(_size_on)
        if largest is None:  # there are no rows
            return
        needed = _COPIES * largest.value[0]
        if needed > memory:
            raise ValueError(
                f"partition {largest.value[1]} has {largest.value[0] / 2**30:.2g} GiB, and to work on it takes about {needed / 2**30:.2g} GiB; a worker may "
                f"use {memory / 2**30:.2g} GiB. Cut the table into more partitions (repartition), or give workers more memory."
            )

    def _forget(self) -> None:
        if self.closed:
            raise ValueError("this log was closed, and its rows are gone from the cluster: make it again.")
        gone, self._forgotten[:] = list(self._forgotten), []
        if gone:
            self._drop(gone)

    def _run(self, work: Work, value: Any) -> Any:
        raise NotImplementedError

    def _run_together(self, work: Any, value: Any) -> list[Any]:
        raise NotImplementedError

    def _keep(self, number: int, work: Work, value: Any) -> None:
        raise NotImplementedError

    def _drop(self, numbers: list[int]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Let go of what the workers keep."""
        self.closed = True


def worked(part: Any, work: Callable[[Any, Any], Any], value: Any) -> Any:
    """What a worker does: run a function, by one thread, since there is a worker for each. A complaint names the partition."""
    with threads(0):
        try:
            return work(part, value)
        except ValueError as error:
            if not isinstance(part, Part):  # several, of a function that runs in all workers together
                raise
            raise ValueError(f"partition {part.index}: {error}") from None


def add(one: Any, other: Any) -> Any:
    """Sums of results: of numbers and arrays as usual, of tuples part by part, of lists one after the other; None is nothing."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, tuple):
        return tuple(add(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, set):
        return one | other
    return one + other


def add_all(results: Iterable[Any]) -> Any:
    return reduce(add, results, None)


@dataclass(frozen=True)
class Reduced:
    """A result that is not added up but combined otherwise: by the larger, the greatest common divisor, the union."""

    combine: Callable[[Any, Any], Any]
    value: Any

    def __add__(self, other: Reduced) -> Reduced:
        return Reduced(self.combine, self.combine(self.value, other.value))


class HereCluster(Cluster):
    """Partitions in this process: for small tables, and to see that nothing depends on an engine."""

    def __init__(self, sources: list[Any]) -> None:
        super().__init__(len(sources))
        self.parts = [Part(k, {-1: source}) for k, source in enumerate(sources)]

    def _run(self, work: Work, value: Any) -> Any:
        return add_all(worked(part, work, value) for part in self.parts)

    def _run_together(self, work: Any, value: Any) -> list[Any]:
        return [worked(self.parts, work, value)]

    def _keep(self, number: int, work: Work, value: Any) -> None:
        self.parts = [Part(part.index, {**part.kept, number: worked(part, work, value)}) for part in self.parts]

    def _drop(self, numbers: list[int]) -> None:
        for part in self.parts:
            for number in numbers:
                part.kept.pop(number, None)


def _size_on(part: Part, value: Any) -> Reduced:
    return Reduced(max, (part.__sizeof__(), part.index))


SOURCE = -1  # the number under which a partition has the rows it was made with


def _bytes(value: Any, depth: int = 0) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if hasattr(value, "memory_usage"):  # a pandas frame
        return int(value.memory_usage().sum())
    if depth > 4:
        return 100
    if isinstance(value, tuple | list):
        return sum(_bytes(part, depth + 1) for part in value)
    if isinstance(value, dict):
        return sum(_bytes(part, depth + 1) for part in value.values())
    if hasattr(value, "__dict__"):
        return sum(_bytes(part, depth + 1) for part in vars(value).values())
    return 100
