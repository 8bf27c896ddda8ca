"""The grid of times, in any unit and however long the log."""

from __future__ import annotations

import numpy as np
import pytest

from belated.data.time_grid import grid_step

DAY_OVER = {"week": 1 / 7, "day": 1, "hour": 24, "15 minutes": 96, "minute": 1440, "second": 86400}


@pytest.mark.parametrize("unit", [1.0, 24.0, 1440.0, 86400.0], ids=["days", "hours", "minutes", "seconds"])
@pytest.mark.parametrize("days", [40, 90, 800])
@pytest.mark.parametrize("grid", DAY_OVER)
def test_the_step_is_the_greatest_common_divisor(grid, days, unit):
    rng = np.random.default_rng(0)
    for rows in (3, 50, 5000):
        steps = rng.integers(1, int(days * DAY_OVER[grid]) + 2, rows)
        found = grid_step(unit * steps / DAY_OVER[grid])
        assert found == pytest.approx(unit * np.gcd.reduce(steps) / DAY_OVER[grid], rel=1e-9)


def test_there_is_none_in_times_that_are_exact():
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 100.0):
        assert grid_step(rng.exponential(scale, 2000)) == 0.0
    assert grid_step(np.rint(rng.exponential(5.0, 2000) * 86400e6) / 86400e6) == 0.0  # to the microsecond
    assert grid_step(np.zeros(3)) == 0.0
