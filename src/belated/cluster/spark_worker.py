"""What a Python worker of Spark does for :mod:`.spark`: it holds partitions in memory, and their rows on the disk beside it."""

from __future__ import annotations

import os
import resource
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import joblib
import pyarrow as pa
from pyspark import Broadcast, cloudpickle

from belated.cluster.base import SOURCE, Part, add_all, worked

NUMBER = "belated partition"  # a column; a task that makes a lost partition again may have another number itself
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of containers


def room() -> int:
    """Bytes that this worker may hold: half of its share of the machine or container, or of what Spark limits it to."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in _LIMITS:
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            whole = min(whole, int(Path(file).read_text()))
    mine = whole // (os.cpu_count() or 1)
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)  # by spark.executor.pyspark.memory
    return (mine if limit == resource.RLIM_INFINITY else min(mine, limit)) // 2


ROOM = room()
_here: dict[tuple[str, int], Part] = {}  # the partitions that this worker holds


def folder_of(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"belated-{os.getuid()}-{name}"


def hold_rows(name: str, batches: Iterator[Any]) -> Any:
    """Take the rows of a partition from Spark."""
    parts = [batch for batch in batches if len(batch)]
    index = parts[0][NUMBER][0].as_py() if parts else -1
    if parts:
        table = pa.Table.from_batches(parts).drop_columns([NUMBER])
        folder = folder_of(name)
        folder.mkdir(mode=0o700, exist_ok=True)
        partial = folder / f"{index}-{uuid.uuid4().hex}"
        joblib.dump(table, partial)
        partial.replace(folder / f"{index}.rows")
        _here[name, index] = Part(index, {SOURCE: table})
        _make_room()
    return pa.RecordBatch.from_pydict({"partition": pa.array([index] if parts else [], pa.int32())})


def unpacked(sent: Any) -> bytes:
    return sent.value if isinstance(sent, Broadcast) else sent


def answer(name: str, history: dict[int, bytes], rows: list[Any], request: bytes) -> Any:
    """What a task of the channel replies: the sum over its partitions."""
    alive, new, packed, together = cloudpickle.loads(request)
    history.update(new)
    for number in set(history).difference(alive):
        del history[number]
    return sum_over(name, [row["partition"] for row in rows], history, packed, together)


def sum_over(
    name: str, indices: list[int], history: dict[int, bytes], packed: bytes, together: bool = False
) -> tuple[Any] | None:
    """The sum of a function over some partitions, or its value for all of them ``together``; None where one is not on this machine."""
    parts = [_partition(name, index, history) for index in indices]
    if None in parts:
        return None
    work, value = cloudpickle.loads(packed)
    if together:
        return (worked(parts, work, value),)
    return (add_all(worked(part, work, value) for part in parts if part is not None),)


def _partition(name: str, index: int, history: dict[int, bytes]) -> Part | None:
    """A partition with all that it keeps, made again where this worker does not hold it; None where its rows are not on this machine."""
    part = _here.pop((name, index), None)
    if part is None:
        moved, rows = _moved_file(name, index), folder_of(name) / f"{index}.rows"
        if not rows.exists():
            return None
        part = joblib.load(moved) if moved.exists() else Part(index, {SOURCE: joblib.load(rows)})
        moved.unlink(missing_ok=True)
    _here[name, index] = part  # as the one used last
    for number in [number for number in part.kept if number not in history and number != SOURCE]:
        del part.kept[number]
    for number, packed in history.items():
        if number not in part.kept:
            part.kept[number] = worked(part, *cloudpickle.loads(packed))
    _make_room()
    return part


def _moved_file(name: str, index: int) -> Path:
    """Of this worker alone: another one has what it has."""
    return folder_of(name) / f"{index}.{os.getpid()}"


def _make_room() -> None:
    """Move what was used longest ago to disk, until the rest takes no more than this worker's share of memory; what was closed is let go."""
    for key in [key for key in _here if not folder_of(key[0]).exists()]:
        del _here[key]
    sizes = {key: part.__sizeof__() for key, part in _here.items()}
    for key, size in list(sizes.items())[:-1]:
        if sum(sizes.values()) <= ROOM:
            return
        partial = _moved_file(*key).with_suffix(f".{uuid.uuid4().hex}")
        joblib.dump(_here.pop(key), partial)
        partial.replace(_moved_file(*key))
        sizes[key] -= size
