"""The grid on which times were recorded, such as whole days."""

from __future__ import annotations

import numpy as np

from belated.typing import Floats


def grid_step(values: Floats) -> float:
    """The step of the grid on which values lie (1 for whole days), or 0 where they lie on none."""
    distinct = np.unique(values)
    gaps = np.diff(distinct)
    # Rounding may make two values of one.
    gaps = gaps[gaps > 1e-12 * distinct[-1]]
    step = float(gaps.min()) if len(gaps) else 0.0
    return step if step and on_grid(distinct, step) else 0.0


def on_grid(values: Floats, step: float) -> bool:
    steps = values / step
    return bool(np.abs(steps - np.rint(steps)).max() < 1e-6)
