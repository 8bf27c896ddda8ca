"""A progress bar over work that other processes do."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def progress_file(total: int, what: str, show: bool) -> Iterator[str]:
    """A file to which workers add a byte for each fit, and a bar that follows its size."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with TemporaryDirectory() as folder, Progress(*columns, disable=not show, transient=True) as bar:
        file = Path(folder) / "progress"
        file.touch()
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
