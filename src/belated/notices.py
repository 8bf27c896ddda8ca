"""Warnings and log messages, and how to keep them back while many fits are only tried.

What is kept back is kept back in the thread that asked for it. Changing the level of a logger or the filters of
:mod:`warnings` would do so for all threads, and leave them mute where two such changes overlap.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

_quiet: ContextVar[bool] = ContextVar("belated_quiet", default=False)

logger = logging.getLogger("belated")


class _WhileLoud(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR or not _quiet.get()


if not any(isinstance(one, _WhileLoud) for one in logger.filters):
    logger.addFilter(_WhileLoud())


def warn(message: str, category: type[Warning] = UserWarning, stacklevel: int = 2) -> None:
    """``warnings.warn``, unless this thread wants quiet."""
    if not _quiet.get():
        warnings.warn(message, category, stacklevel=stacklevel + 1)


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings and log messages of this thread: many fits are only tried, and nobody wants to hear of each."""
    token = _quiet.set(True)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _quiet.reset(token)
