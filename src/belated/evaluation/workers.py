"""Processes that work on cut-offs: they end with their parent, and their end is told in a sentence."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import joblib
from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import BrokenProcessPool, TerminatedWorkerError

_LOOK = 0.5  # seconds between looks at the parent


def scratch_folder() -> Path:
    """A temporary folder of this process. It goes when the process ends; if that is killed, its workers remove it."""
    return _scratch_folder(os.getpid())


@cache
def _scratch_folder(process: int) -> Path:
    folder = Path(mkdtemp(prefix="belated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def run_tasks(
    work: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], count: int, n_jobs: int | None
) -> Generator[Any]:
    """``work(*task)`` for each of ``count`` tasks, in their order, each as soon as it is there; several at a time."""
    jobs = max(min(joblib.effective_n_jobs(n_jobs or -1), count), 1)
    watch = {"initializer": end_with, "initargs": (os.getpid(), scratch_folder())} if jobs > 1 else {}
    # One task waits for each worker, so that they are made when they are needed and not all at once.
    pool = Parallel(n_jobs=jobs, pre_dispatch=jobs, return_as="generator", **watch)
    calls = (delayed(work)(*task) for task in tasks)
    try:
        with _interrupts_held_back():  # workers begin here, and inherit that
            found = pool(calls)
        yield from found
    except GeneratorExit:  # nobody wants the rest: joblib need not say that it is not done
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.close()
        raise
    except TerminatedWorkerError:
        raise ValueError(
            f"one of {jobs} worker processes was killed, most likely because memory ran out. Take fewer of them (--jobs 1, in Python "
            f"n_jobs=1), a shorter lookback or fewer features. With --cache, what is finished is kept."
        ) from None
    except BrokenProcessPool as error:
        missing = re.search(r"No module named '([^']+)'", str(error.__cause__))
        if missing is None:
            told = f"worker processes could not read what they were sent: {error}. Stay in one process with n_jobs=1 (--jobs 1)."
            raise ValueError(told) from error
        raise ValueError(
            f"worker processes, which began earlier, could not import the module {missing[1]!r} of a method or model of your own. Put its folder on PYTHONPATH before Python "
            f"starts, or import it before the first backtest, or stay in one process with n_jobs=1."
        ) from error


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """An interrupt goes to a whole group of processes, and is for the parent to handle: it ends its workers."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with(parent: int, scratch: Path) -> None:
    """From now on, end this process when its parent is gone, whatever it is doing: nobody waits for it any more.

    An interrupt is the parent's business, also where it comes before or after those that are held back.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent, scratch), daemon=True).start()


def _watch(parent: int, scratch: Path) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK)
    shutil.rmtree(scratch, ignore_errors=True)
    os._exit(1)
