"""Processes that work on cut-offs: they end with their parent, and their end is told in a sentence."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import joblib
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

_LOOK = 0.5  # seconds between looks at the parent
_watched: set[int] = set()


def run_tasks(
    work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], count: int, n_jobs: int | None, scratch: str
) -> Generator[Any]:
    """``work(*task)`` for each of ``count`` tasks, in their order, each as soon as it is there; several at a time.

    ``scratch`` is a file in a temporary folder of the parent's. The last worker of a parent that was killed removes it.
    """
    jobs = max(min(joblib.effective_n_jobs(n_jobs or -1), count), 1)
    # One task waits for each worker, so that they are made when they are needed and not all at once.
    pool = Parallel(n_jobs=jobs, pre_dispatch=jobs, return_as="generator")
    calls = (delayed(_watched_work)(os.getpid(), scratch, work, *task) for task in tasks)
    try:
        yield from pool(calls)
    except TerminatedWorkerError:
        raise ValueError(
            f"one of {jobs} worker processes was killed, most likely because memory ran out. Take fewer of them (--jobs 1, in Python "
            f"n_jobs=1), a shorter lookback or fewer features. With --cache, what is finished is kept."
        ) from None


def _watched_work(parent: int, scratch: str, work: Callable[..., Any], *task: Any) -> Any:
    if os.getpid() != parent and parent not in _watched:
        _watched.add(parent)
        threading.Thread(target=_end_with, args=(parent, scratch), daemon=True).start()
    return work(*task)


def _end_with(parent: int, scratch: str) -> None:
    """End this process when its parent is gone, whatever it is doing: nobody waits for it any more."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    shutil.rmtree(Path(scratch).parent, ignore_errors=True)
    os._exit(1)
