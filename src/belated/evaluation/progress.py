"""A progress bar over work that other processes do."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from belated.evaluation.workers import scratch_folder
from belated.notices import progress_bar


@contextmanager
def progress_file(total: int, what: str, show: bool) -> Iterator[str]:
    """A file to which workers add a byte for each fit, and a bar that follows its size."""
    file = scratch_folder() / uuid.uuid4().hex
    file.touch()
    with progress_bar(what, total, show) as advance:
        done = threading.Event()

        def follow() -> None:
            while not done.wait(0.2):
                advance(file.stat().st_size)

        watcher = threading.Thread(target=follow, daemon=True)
        watcher.start()
        try:
            yield str(file)
        finally:
            done.set()
            watcher.join()
            file.unlink(missing_ok=True)
