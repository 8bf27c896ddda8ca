"""The folder that ``belated watch`` writes: pages, what is known of each, and a lock, so that two runs never meet."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from belated.cli.outputs import may_keep, write_json, write_text

_INSIDE = ".belated"
_KNOWN = {
    *("command", "source", "inputs", "code", "ran", "ran_at", "sentence", "warnings"),
    *("page_of", "page_code", "has_limits"),
}
ENDINGS = (".html", ".json", ".csv")


class Site:
    """``pages`` holds what is known of each job by its name: when it ran, on what, and what came of it.

    A folder belongs to the configuration that it was first written for, as long as that is there.
    """

    def __init__(self, folder: Path, config: Path, names: list[str]) -> None:
        self.folder, self.inside = folder, folder / _INSIDE
        may_keep(folder)
        if not self.inside.exists():
            ours = [folder / "index.html", *(self.file(name, ending) for name in names for ending in ENDINGS)]
            for file in ours:
                if file.exists():
                    raise ValueError(
                        f"{folder}: has {file.name}, which belated watch did not write. Name another folder."
                    )
        self.inside.mkdir(parents=True, exist_ok=True)
        owner = self.inside / "config"
        first = Path(owner.read_text()) if owner.exists() else config
        if first != config and first.exists():
            raise ValueError(f"{folder}: holds the pages of {first}. Name another folder.")
        write_text(owner, str(config))
        self.pages: dict[str, dict[str, Any]] = {}
        self.lock = -1

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Refuse a folder that another run is writing to. The lock ends with the process, however that ends."""
        with (self.inside / "lock").open("a+") as file:
            try:
                _lock(file)
            except OSError:
                file.seek(0)
                raise ValueError(
                    f"{self.folder}: another belated watch is writing there (process {file.read() or '?'})."
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            self.pages, self.lock = self._read(), file.fileno()
            yield

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            found = json.loads((self.inside / "pages.json").read_text())
        except FileNotFoundError:
            return {}
        except ValueError:  # not ours, or damaged: everything is run again
            return {}
        if not isinstance(found, dict):
            return {}
        return {name: about for name, about in found.items() if isinstance(about, dict) and about.keys() >= _KNOWN}

    def file(self, name: str, ending: str) -> Path:
        return self.folder / f"{name}{ending}"

    def keep(self, name: str, about: dict[str, Any]) -> None:
        self.pages[name] = about
        write_json(self.inside / "pages.json", self.pages)

    def forget_all_but(self, names: set[str]) -> None:
        """Remove pages of jobs that are no more."""
        for name in set(self.pages) - names:
            for ending in ENDINGS:
                self.file(name, ending).unlink(missing_ok=True)
            del self.pages[name]
        write_json(self.inside / "pages.json", self.pages)

    def write_index(self, html: str) -> None:
        write_text(self.folder / "index.html", html)


def _lock(file: Any) -> None:
    """An exclusive lock, or an OSError at once."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
