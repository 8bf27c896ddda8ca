"""Warnings and log messages, and how to keep them back while many fits are only tried.

What is kept back is kept back in the thread that asked for it. Changing the level of a logger or the filters of
:mod:`warnings` would do so for all threads, and leave them mute where two such changes overlap.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

_unheard: ContextVar[list[Unheard] | None] = ContextVar("belated_unheard", default=None)
_overheard: ContextVar[tuple[type[Warning], list[str]] | None] = ContextVar("belated_overheard", default=None)

logger = logging.getLogger("belated")


@dataclass(frozen=True)
class Unheard:
    """A warning that was kept back."""

    category: type[Warning]
    message: str


class _WhileLoud(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR or _unheard.get() is None


logger.addFilter(_WhileLoud())


def warn(message: str, category: type[Warning] = UserWarning, stacklevel: int = 2) -> None:
    """``warnings.warn``, unless this thread wants quiet."""
    overheard = _overheard.get()
    if overheard is not None and issubclass(category, overheard[0]):
        overheard[1].append(message)
    unheard = _unheard.get()
    if unheard is None:
        warnings.warn(message, category, stacklevel=stacklevel + 1)
    else:
        unheard.append(Unheard(category, message))


@contextmanager
def overheard(category: type[Warning]) -> Iterator[list[str]]:
    """What this thread is warned of in here by :func:`warn`, as text, besides."""
    told: list[str] = []
    token = _overheard.set((category, told))
    try:
        yield told
    finally:
        _overheard.reset(token)


@contextmanager
def progress_bar(what: str, total: int, show: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar, and what to call with how much is done; nothing at all where nobody asked or nobody looks."""
    from rich.console import Console

    console = Console(stderr=True)
    if not show or not (console.is_terminal or console.is_jupyter):
        yield lambda done: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def quietly() -> Iterator[list[Unheard]]:
    """Without warnings and log messages of this thread: many fits are only tried, and nobody wants to hear of each.

    The list given holds the warnings that were kept back.
    """
    kept: list[Unheard] = []
    token = _unheard.set(kept)
    try:
        with np.errstate(all="ignore"):
            yield kept
    finally:
        _unheard.reset(token)
