"""Delays that have changed: found by how much, told from a change of the rate, and not found where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from belated.evaluation.seen_shares import SeenShares, seen_shares
from belated.monitoring.delay_shifts import ScaledDelays, shifts

H = 30.0


def positives(rng, n, mean, oldest=H, grid=None):
    """Delays and ages of positives that have been seen; exponential delays cut at the horizon."""
    delay, age = -mean * np.log1p(-rng.uniform(size=n) * -np.expm1(-H / mean)), rng.uniform(0, oldest, n)
    if grid is not None:
        delay, age = np.ceil(delay / grid) * grid, np.ceil(age / grid) * grid
    seen = delay <= age
    return delay[seen], age[seen]


def reference(mean=5.0, grid=None):
    rng = np.random.default_rng(99)
    delay, age = positives(rng, 200_000, mean, oldest=2 * H, grid=grid)
    return ScaledDelays(seen_shares(delay, np.minimum(age, H)), H, grid or 0.0)


@pytest.mark.parametrize("grid", [None, 1.0])
@pytest.mark.parametrize("times", [0.6, 1.0, 1.5])
def test_the_factor_is_found_with_its_error(times, grid):
    scaled, rng = reference(grid=grid), np.random.default_rng(0)
    found = np.array([scaled.measure(*positives(rng, 1500, 5.0 * times, 12.0, grid)) for _ in range(40)])
    assert found[:, 0].mean() == pytest.approx(np.log(times), abs=0.06)
    assert found[:, 0].std(ddof=1) == pytest.approx(found[:, 1].mean(), rel=0.35)


def test_the_order_of_rows_does_not_matter_and_few_say_nothing():
    scaled = reference()
    delay, age = positives(np.random.default_rng(1), 500, 5.0)
    order = np.random.default_rng(2).permutation(len(delay))
    assert scaled.measure(delay[order], age[order]) == pytest.approx(scaled.measure(delay, age))
    assert scaled.measure(delay[:9], age[:9]) == (0.0, np.inf)


def test_scaled_delays_are_a_share_that_grows_to_one():
    scaled, ages = reference(), np.linspace(0, H, 200)
    for log_s in (-2.0, -0.3, 0.0, 0.3, 2.0):
        found = scaled.at(ages, log_s)
        assert (np.diff(found) >= 0).all() and found[-1] == pytest.approx(1.0) and found[0] >= 0
    assert (scaled.at(ages, 0.3) <= scaled.at(ages, 0.0) + 1e-3).all()
    assert scaled.at(np.array([-1.0]), 0.5).tolist() == [0.0]


def test_groups_that_do_not_differ_are_taken_to_be_alike():
    rng = np.random.default_rng(3)
    found = shifts([(float(0.1 * rng.normal()), 0.1) for _ in range(400)])
    assert np.mean([abs(one.z) > 2.6 for one in found]) < 0.03
    assert np.mean([abs(one.mean) for one in found]) < 0.05


def test_a_group_that_differs_is_believed_and_stays_unsure_of_what_nobody_has_seen():
    found = shifts([(0.0, 0.1)] * 10 + [(0.8, 0.1), (0.0, np.inf)])
    assert found[-2].mean == pytest.approx(0.8, rel=0.05) and found[-2].variance > 0.3**2
    assert found[0].mean == 0.0 and found[-1].mean == 0.0 and found[-1].z == 0.0
    assert all(one.variance == 0.0 for one in shifts([(0.0, 0.1)] * 5))


def test_it_works_where_everything_comes_at_once():
    scaled = ScaledDelays(SeenShares(np.array([2.0]), np.array([0.0]), np.zeros(1)), H, 1.0)
    assert scaled.measure(np.full(50, 2.0), np.full(50, 9.0))[0] == pytest.approx(0.0, abs=1e-9)
    assert scaled.measure(np.full(50, 4.0), np.full(50, 9.0))[0] > 0.5
