"""A progress bar over work that other processes do."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from belated.evaluation.workers import scratch_folder


@contextmanager
def progress_file(total: int, what: str, show: bool) -> Iterator[str]:
    """A file to which workers add a byte for each fit, and a bar that follows its size."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    file = scratch_folder() / uuid.uuid4().hex
    file.touch()
    with Progress(*columns, disable=not show, transient=True) as bar:
        task, done = bar.add_task(what, total=total), threading.Event()

        def follow() -> None:
            while not done.wait(0.2):
                bar.update(task, completed=file.stat().st_size)

        watcher = threading.Thread(target=follow, daemon=True)
        watcher.start()
        try:
            yield str(file)
        finally:
            done.set()
            watcher.join()
            file.unlink(missing_ok=True)
