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
    assert all(one.variance < 0.05**2 for one in shifts([(0.0, 0.1)] * 5))


@pytest.mark.parametrize("share_changed", [0.0, 0.5, 1.0])
def test_what_is_believed_is_as_near_the_truth_as_it_says(share_changed):
    """Of changes of the usual size, measured well and badly, some of which are none."""
    rng = np.random.default_rng(4)
    true = np.log(2.0) * rng.normal(size=4000) * (rng.uniform(size=4000) < share_changed)
    error = rng.choice([0.1, 0.4, 1.0], 4000)
    found = shifts(list(zip((true + error * rng.normal(size=4000)).tolist(), error.tolist(), strict=True)))
    off = np.array([(one.mean - t) / np.sqrt(one.variance) for one, t in zip(found, true, strict=True)])
    assert np.mean(np.abs(off) < 1.96) > 0.91


def test_rows_too_young_to_show_a_change_seem_to_show_it_no_more_often_than_by_chance():
    """Delays of 12 days, in rows of at most 6: the factor may come out anywhere, and is not believed."""
    scaled, rng = reference(mean=12.0), np.random.default_rng(5)
    found = shifts([scaled.measure(*positives(rng, 300, 12.0, 6.0)) for _ in range(300)])
    assert np.mean([abs(one.z) > 1.96 for one in found]) < 0.08
    assert np.mean([abs(one.mean) / np.sqrt(one.variance) < 1.96 for one in found if one.variance > 0]) > 0.9


def test_it_works_where_everything_comes_at_once():
    scaled = ScaledDelays(SeenShares(np.array([2.0]), np.array([0.0]), np.zeros(1)), H, 1.0)
    assert scaled.measure(np.full(50, 2.0), np.full(50, 9.0))[0] == pytest.approx(0.0, abs=1e-9)
    assert scaled.measure(np.full(50, 4.0), np.full(50, 9.0))[0] > 0.5
