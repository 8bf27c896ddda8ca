"""How far a long fit is, in a file: one whose program was killed goes on from there."""

from __future__ import annotations

import glob
import hashlib
import time
from pathlib import Path
from typing import Any

import numpy as np

from belated.notices import logger
from belated.tables.writing import write_beside
from belated.typing import Floats

_BETWEEN = 30.0  # seconds


class SolverCheckpoint:
    """The best point that a solver has seen, of one problem; a fit may have several, and each has its file."""

    def __init__(self, path: str | Path, problem: Any) -> None:
        first = problem.start()
        value, gradient = problem.value_and_gradient(first)
        slope = float(np.linalg.norm(gradient))
        about = (
            f"{type(problem.risk).__name__} {problem.l2!r} {problem.rows.shape} {len(first)} {value:.10g} {slope:.8g}"
        )
        key = hashlib.blake2b(about.encode(), digest_size=6).hexdigest()
        self.file = Path(f"{path}.{key}.npz")
        self.size, self.best, self.written = len(first), np.inf, time.monotonic()

    def start(self) -> Floats | None:
        """Where a solver was when it was last kept; None where it has not begun."""
        if not self.file.exists():
            return None
        with np.load(self.file, allow_pickle=False) as kept:
            theta: Floats = kept["theta"]
        if theta.shape != (self.size,) or not np.isfinite(theta).all():
            return None
        logger.info("the fit goes on from %s", self.file)
        return theta

    def watch(self, problem: Any) -> Any:
        """The same problem; what a solver sees of it is kept now and then."""
        evaluate = problem.value_and_gradient

        def watched(theta: Any) -> tuple[float, Any]:
            value, gradient = evaluate(theta)
            if len(theta) == self.size and value < self.best:
                self.best = value
                if time.monotonic() - self.written >= _BETWEEN:
                    write_beside(self.file, lambda file: np.savez(file, theta=theta))
                    self.written = time.monotonic()
            return value, gradient

        problem.value_and_gradient = watched
        return problem


def forget(path: str | Path | None) -> None:
    """Remove what was kept of a fit that is finished."""
    if path is not None:
        for file in Path(path).parent.glob(f"{glob.escape(Path(path).name)}.*.npz"):
            file.unlink(missing_ok=True)
