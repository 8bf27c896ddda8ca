"""``numba.njit`` that keeps what was compiled on disk where there is a place for it, and does without where there is none."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba as nb

from belated.notices import logger


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function; options as for ``numba.njit``."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return nb.njit(cache=True, **options)(function)
        except RuntimeError:  # nothing can be written beside the source, nor in a home
            _tell()
            return nb.njit(**options)(function)

    return decorate


@cache
def _tell() -> None:
    logger.info(
        "compiled code cannot be kept, so each start takes longer: set NUMBA_CACHE_DIR to a folder that can be written."
    )
