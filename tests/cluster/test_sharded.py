"""Arrays whose rows are in partitions do what NumPy's do, wherever the cuts are."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from effort import given_some
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit

from belated.cluster.base import SOURCE, HereCluster, Kept
from belated.cluster.sharded import Elsewhere, Leaf, Sharded, by_rows, ranked, row_numbers, several
from belated.features.quantiles import weighted_quantiles

NUMBERS = st.floats(-1e6, 1e6).map(lambda x: round(x, 2))
PARTS = st.lists(arrays(np.float64, st.integers(0, 6), elements=NUMBERS), min_size=1, max_size=5).filter(
    lambda parts: sum(map(len, parts)) > 0
)


def both(parts):
    """An array in parts and as one, each with weights."""
    weights = [1.0 + np.arange(len(part)) % 3 for part in parts]
    cluster = HereCluster(list(zip(parts, weights, strict=True)))
    far = [Sharded(cluster, Leaf(Kept(SOURCE), item)) for item in (0, 1)]
    return *far, np.concatenate(parts), np.concatenate(weights)


@given_some(PARTS)
def test_row_by_row(parts):
    x, w, here, weight = both(parts)
    for function in (
        lambda x, w: np.where(x > 1, w, -x) * 2.0 + expit(x / 1e6),
        lambda x, w: np.maximum(x, 0.0)[:, None] * np.array([1.0, 2.0]),
        lambda x, w: x[(x > 0) & (w > 1)],
        lambda x, w: np.searchsorted([0.0, 10.0], x),
        lambda x, w: np.zeros_like(x, dtype=bool) | ~(x <= 0),
        lambda x, w: 1.0 - np.clip(x, -1.0, 1.0),
    ):
        assert_array_equal(function(x, w).collect(), function(here, weight))


@given_some(PARTS)
def test_of_all_rows(parts):
    x, w, here, weight = both(parts)
    assert len(x) == len(here)
    for function in (
        lambda x, w: x.sum(),
        lambda x, w: (x * w)[:, None].sum(axis=0),
        lambda x, w: x.max(),
        lambda x, w: x[x > 5].min(initial=7.0),
        lambda x, w: (x > 0).any(),
        lambda x, w: (x > 0).all(),
        lambda x, w: np.einsum("i,i->", x, w),
        lambda x, w: np.bincount((w > 1).astype(int), w, 3),
        lambda x, w: np.gcd.reduce(w.astype(int)),
        lambda x, w: np.unique(np.rint(x)),
        lambda x, w: np.stack([x, w]).T.sum() if isinstance(x, np.ndarray) else (x + w).sum(),
    ):
        assert_allclose(function(x, w), function(here, weight), rtol=1e-12, atol=1e-6)


@given_some(PARTS)
def test_quantiles_are_exact(parts):
    x, w, here, weight = both(parts)
    for count in (2, 3, 7, 8):
        ones, here_ones = (np.ones_like(one) / 2035.0 for one in (w, weight))
        assert_array_equal(weighted_quantiles(x, ones, count), weighted_quantiles(here, here_ones, count))
        assert_array_equal(weighted_quantiles(x, w, count), weighted_quantiles(here, weight, count))
    levels = [0.0, 0.3, 0.98, 1.0]
    assert_allclose(np.quantile(x, levels), np.quantile(here, levels), rtol=1e-12, atol=1e-9)
    ranks = [0, len(here) // 2, len(here) - 1]
    assert_array_equal(ranked(x, ranks), np.sort(here)[ranks])
    assert_array_equal(ranked(here, ranks), np.sort(here)[ranks])


def test_objects_that_hold_arrays_and_functions_with_several_results():
    x, w, here, weight = both([np.arange(3.0), np.arange(0.0), np.arange(4.0)])
    pair = {"x": x, "inner": (w, [x])}
    found = by_rows(lambda p: p["x"] + p["inner"][0] * p["inner"][1][0], pair)
    assert_array_equal(found.collect(), here + weight * here)
    big, small = several(2, lambda v: (v[v > 1], v[v <= 1]), x)
    assert_array_equal(big.collect(), [2.0, 2.0, 3.0])
    assert_array_equal(small.collect(), [0.0, 1.0, 0.0, 1.0])
    assert_array_equal(row_numbers(x).collect(), [0, 1, 2, 0, 1, 2, 3])
    assert by_rows(np.add, 1, 2) == 3 and several(2, divmod, 7, 2) == (3, 1)


def test_rows_are_not_brought_here_by_accident():
    x, *_ = both([np.arange(3.0)])
    with pytest.raises(TypeError, match="would bring them all here"):
        np.asarray(x)
    with pytest.raises(ValueError, match="say any"):
        bool(x > 1)
    assert isinstance(pickle.loads(pickle.dumps(x)), Elsewhere)


def test_what_nobody_holds_is_forgotten():
    x, *_ = both([np.arange(3.0), np.arange(2.0)])
    kept = (x + 1).kept()
    later = (kept * 2).kept()
    assert [sorted(part.kept) for part in x.cluster.parts] == [[SOURCE, 0, 1]] * 2
    del kept
    assert later.sum() == 2 * (1 + 2 + 3 + 1 + 2)
    del later
    x.sum()
    assert [sorted(part.kept) for part in x.cluster.parts] == [[SOURCE]] * 2


def test_what_needs_all_rows_is_that_of_all_rows_or_refused():
    """A function that is not known to go row by row would be right on each partition and wrong of all."""
    rng = np.random.default_rng(0)
    values = rng.gamma(2.0, size=300)
    far, *_ = both(np.split(values, [40, 41]))
    for what in (np.mean, np.std, np.var, np.median, np.sum, np.average, np.count_nonzero):
        assert_allclose(what(far), what(values))
    assert_allclose(np.percentile(far, [10, 50, 99]), np.percentile(values, [10, 50, 99]))
    assert_allclose(far.mean(), values.mean())
    assert_allclose(np.interp(far, [0.0, 5.0], [1.0, 2.0]).collect(), np.interp(values, [0.0, 5.0], [1.0, 2.0]))
    for what in (np.argsort, np.cumsum, np.sort, np.nanmean, np.ptp, np.argmax, np.histogram, np.prod):
        with pytest.raises(TypeError, match=rf"np\.{what.__name__} is not there for rows on a cluster"):
            what(far)
    for what in (list, sum, lambda x: 1.0 in x):
        with pytest.raises(TypeError, match="do not come one by one"):
            what(far)
