"""What a command says: on the terminal, with warnings and errors as sentences."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

_width = None if sys.stdout.isatty() else 120
out, err = Console(highlight=False, width=_width), Console(stderr=True, highlight=False, width=_width)


def plain(text: str) -> str:
    """Text in which brackets mean nothing but themselves."""
    return escape(text)


def friendly(command: Callable[..., Any]) -> Callable[..., Any]:
    """Errors as one paragraph and exit code 2; an interrupt as 130."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                try:
                    command(*args, **kwargs)
                finally:  # what was warned of before an error may explain it
                    told = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
                    for text in dict.fromkeys(told):
                        err.print(f"[yellow]Warning:[/] {plain(text)}", soft_wrap=True)
        except KeyboardInterrupt:
            cache = kwargs.get("cache")
            kept = "no file was left half written"
            if cache is not None:
                there = Path(cache).is_dir() and any(Path(cache).iterdir())
                kept = (
                    f"what is finished is in {cache}, and the same command goes on there"
                    if there
                    else f"nothing was finished yet, so nothing is in {cache}"
                )
            err.print(f"Interrupted; {plain(kept)}.", soft_wrap=True)
            sys.exit(130)
        except Exception as error:
            if not _is_complaint(error):
                raise
            err.print(f"[bold red]Error:[/] {plain(str(error))}", soft_wrap=True)
            sys.exit(2)

    return run


def _is_complaint(error: Exception) -> bool:
    """Whether an error is about the user's input, and no fault of the program."""
    if isinstance(error, ValueError | OSError):
        return True
    from pyarrow import ArrowException

    return isinstance(error, ArrowException)
