"""Compiled passes over many rows: by all threads where that pays and is safe, else by one.

A pool of threads does not survive a fork (a server that forks its workers, ``multiprocessing``), and cannot be used by two
threads at once. So every pass is compiled twice. The version for one thread does short passes, passes in a process that
was forked after the pool had started, and passes that come while another thread uses the pool.

Into how many parts a pass is cut depends on its length alone. The same data gives the same numbers, to the last bit,
whatever the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.np.ufunc import parallel

from belated.compiling import njit

_MANY = 300_000  # entries; waking the other threads for a shorter pass takes longer than the pass
_VERY_MANY = 50_000_000


class _Pool:
    """Whether the threads may be used, and by whom."""

    def __init__(self) -> None:
        self.busy = threading.Lock()
        self.started = False
        self.lost = False

    def after_fork(self) -> None:
        self.busy = threading.Lock()  # the thread that held it is not here any more
        self.lost = self.lost or self.started or _others_have_started()
        with suppress(AttributeError):  # nor is one that was compiling; a lock of Numba's own
            global_compiler_lock._lock = threading.RLock()


def _others_have_started() -> bool:
    """Whether somebody else's parallel function has started Numba's threads."""
    return bool(getattr(parallel, "_is_initialized", False))


_pool, _here = _Pool(), threading.local()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.after_fork)


class CompiledPass:
    """A function of arrays, compiled for many threads and for one."""

    def __init__(self, function: FunctionType, options: dict[str, Any]) -> None:
        self._many = njit(parallel=True, **options)(function)
        # Another name, since the compiler's cache on disk goes by names.
        alone = FunctionType(function.__code__, function.__globals__, function.__name__ + "_alone")
        alone.__qualname__, alone.__module__ = function.__qualname__ + "_alone", function.__module__
        self._one = njit(**options)(alone)
        self.__doc__, self.__name__ = function.__doc__, function.__name__

    def __call__(self, *arguments: Any) -> Any:
        if _pays(arguments) and not _pool.lost and _pool.busy.acquire(blocking=False):
            busy, _pool.started = _pool.busy, True
            try:
                return self._many(*arguments)
            finally:
                busy.release()
        return self._one(*arguments)


def _pays(arguments: tuple[Any, ...]) -> bool:
    many: bool | None = getattr(_here, "many", None)
    if many is not None:
        return many
    return max(a.size for a in arguments if isinstance(a, np.ndarray)) >= _MANY


def compiled(**options: Any) -> Callable[[Callable[..., Any]], CompiledPass]:
    """Compile a function whose outer loops are ``numba.prange``; options as for ``numba.njit``."""

    def decorate(function: Callable[..., Any]) -> CompiledPass:
        assert isinstance(function, FunctionType)
        return CompiledPass(function, options)

    return decorate


@contextmanager
def threads(entries: int) -> Iterator[None]:
    """Within this, passes are long or short by the number of entries of the rows, and not each by its own arrays."""
    before, _here.many = getattr(_here, "many", None), entries >= _MANY
    try:
        yield
    finally:
        _here.many = before


def parts_of(entries: int) -> int:
    """Into how many parts to cut a pass whose sums are kept for each part: more of them cost memory."""
    return 1 if entries < _MANY else 4 if entries < _VERY_MANY else 16
