"""The grid on which times were recorded, such as whole days."""

from __future__ import annotations

import numpy as np

from belated.typing import Floats

_MICROSECONDS = (86400e6, 3600e6, 60e6, 1e6)  # in a day, an hour, a minute, a second: ages come in any of these
_FINEST = 1e-8  # of the largest value: a finer grid is as good as none


def grid_step(values: Floats) -> float:
    """The step of the grid on which values lie (1 for whole days), or 0 where they lie on none.

    >>> grid_step(np.array([6.0, 10.0, 14.0]))
    2.0
    """
    largest = float(np.abs(values).max(initial=0.0))
    if not largest > 0:
        return 0.0
    fine = False
    for micros in _MICROSECONDS:
        whole = values * micros
        if largest * micros < 2**50 and np.abs(whole - np.rint(whole)).max() < 0.05:
            step = int(np.gcd.reduce(np.rint(whole).astype(np.int64))) / micros
            if step > _FINEST * largest:
                return step
            fine = True
    if fine:
        return 0.0
    distinct = np.unique(values)
    # Whatever the unit, values that come close together tell their step themselves.
    gaps = np.diff(distinct)
    gaps = gaps[gaps > 1e-12 * largest]  # rounding may make two values of one
    step = float(gaps.min()) if len(gaps) else 0.0
    return step if step and on_grid(distinct, step) else 0.0


def on_grid(values: Floats, step: float) -> bool:
    steps = values / step
    return bool(np.abs(steps - np.rint(steps)).max() < 1e-6)


def whole_steps(length: float, step: float) -> float:
    """A length as a whole number of steps, at least one; as it is where there is no grid."""
    return max(round(length / step), 1) * step if step else length
