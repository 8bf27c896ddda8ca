"""What a backtest was asked, what it found at each cut-off, and how that is kept on disk."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import joblib
import numpy as np
from numpy.typing import NDArray

from belated.data.event_log import EventLog
from belated.evaluation.pairs import Pair
from belated.notices import logger
from belated.tables.writing import write_beside
from belated.typing import Bools, Floats


@dataclass(frozen=True)
class CutoffResult:
    """Predictions at one cut-off: one array for each method, for the rows of the following period."""

    as_of: str
    rows: int
    positive: int  # of the rows, as known at the cut-off
    y: Bools  # final labels of the following period
    days: Floats  # from the cut-off to each arrival
    group: NDArray[Any] | None
    p: dict[str, Floats] = field(default_factory=dict)
    values: dict[str, float | None] = field(default_factory=dict)  # of the model's setting
    failed: dict[str, str] = field(default_factory=dict)
    unsettled: dict[str, str] = field(default_factory=dict)  # what was wrong with a fit that is scored all the same

    @staticmethod
    def joined(parts: Sequence[CutoffResult]) -> CutoffResult:
        """The results of different methods at the same cut-off as one."""
        joined = replace(parts[0], p={}, values={}, failed={}, unsettled={})
        for part in parts:
            for name in ("p", "values", "failed", "unsettled"):
                getattr(joined, name).update(getattr(part, name))
        return joined


@dataclass(frozen=True)
class Settings:
    """What a backtest was asked to do; durations are in days."""

    horizon: float
    window: float
    lookback: float
    period: float
    methods: tuple[str, ...]
    l2: tuple[float, ...]
    group: str | None
    models: tuple[str, ...] = ("linear",)


class ResultStore:
    """Finished cut-offs on disk, under a name that says of what log, settings, methods and model."""

    def __init__(self, folder: str | Path | None, log: EventLog, settings: Settings, pairs: Sequence[Pair]) -> None:
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            if self.folder.exists() and not self.folder.is_dir():
                raise ValueError(f"cache={str(folder)!r} is a file; name a folder.")
            self.folder.mkdir(parents=True, exist_ok=True)
            parts = [
                (pair.name, pair.window, pair.values, *((type(p), p.get_params()) for p in (pair.model, pair.method)))
                for pair in pairs
            ]
            # Which other methods and models are compared does not matter to these.
            own = replace(settings, methods=(), models=())
            asked = joblib.hash((own, parts, version("belated")))
            self.key = hashlib.blake2b(log.fingerprint() + asked.encode(), digest_size=8).hexdigest()

    def _path(self, instant: int) -> Path:
        assert self.folder is not None
        return self.folder / f"{self.key}-{instant}.npz"

    def load(self, instant: int) -> CutoffResult | None:
        if self.folder is None or not self._path(instant).exists():
            return None
        try:
            return self._read(self._path(instant))
        except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile, zlib.error) as error:
            logger.warning("%s cannot be read (%s), so this cut-off is fitted again", self._path(instant), error)
            return None

    def _read(self, path: Path) -> CutoffResult:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            about = json.loads(str(data["about"]))
            group = data.get("group")
            p = {name: data[f"p{k}"] for k, name in enumerate(about["values"])}
            return CutoffResult(
                y=data["y"],
                days=data["days"],
                group=group,
                p=p,
                values=about.pop("values"),
                failed=about.pop("failed"),
                unsettled=about.pop("unsettled"),
                **about,
            )

    def save(self, instant: int, result: CutoffResult) -> None:
        if self.folder is None:
            return
        about = {"as_of": result.as_of, "rows": result.rows, "positive": result.positive}
        about |= {"values": result.values, "failed": result.failed, "unsettled": result.unsettled}
        arrays: dict[str, Any] = {f"p{k}": p for k, p in enumerate(result.p.values())} | {
            "y": result.y,
            "days": result.days,
        }
        if result.group is not None:
            arrays["group"] = result.group

        def write(file: IO[bytes]) -> None:
            np.savez(file, about=np.array(json.dumps(about)), **arrays)

        try:
            write_beside(self._path(instant), write)
        except OSError as error:  # a full disk costs the cache, not the comparison
            logger.error("the cache is not kept from here on: %s", error)
            self.folder = None
