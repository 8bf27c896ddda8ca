"""The same data in other units: shifted, scaled, far from zero. Probabilities stay, or a warning says why not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from simulate import simulate
from sklearn.exceptions import ConvergenceWarning
from stubs import FIXED, UNPENALISED

from belated import DelayedFeedbackClassifier, LinearModel
from belated.solvers.centring import far_centre

UNITS = {
    "years": (1.0, 2024.0),
    "unix seconds": (1e6, 1.7e9),
    "large and steady": (1.0, 1e6),
    "small": (1e-4, 0.0),
    "far below zero": (10.0, -1e5),
}


def predict(method, data, X, **model):
    clf = DelayedFeedbackClassifier(method, 5.0, 20.0, LinearModel(**model))
    return clf.fit(X, data.y, elapsed=data.elapsed, delay=data.delay).predict_proba(X)[:, 1]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", UNPENALISED, ids=str)
def test_units_change_no_probability(method, kind):
    data = simulate(seed=0, n=1500)
    expected = predict(method, data, kind(data.X), l2=0.0)
    for scale, shift in UNITS.values():
        for columns in ([0], [1], [0, 1, 2]):
            X = data.X.copy()
            X[:, columns] = scale * X[:, columns] + shift
            assert_allclose(predict(method, data, kind(X), l2=0.0), expected, atol=1e-5)


@pytest.mark.parametrize("method", FIXED, ids=str)
def test_a_shift_changes_nothing_under_a_penalty(method):
    data = simulate(seed=1, n=1500)
    assert_allclose(predict(method, data, data.X + 2024.0, l2=1e-3), predict(method, data, data.X, l2=1e-3), atol=1e-5)


@pytest.mark.parametrize("method", FIXED, ids=str)
def test_a_shift_changes_nothing_on_wide_data(method):
    data = simulate(seed=2, n=1500)
    group = np.random.default_rng(0).integers(0, 1100, 1500)
    wide = sparse.csr_array((np.ones(1500), (np.arange(1500), group)), shape=(1500, 1100))
    found = [
        predict(method, data, sparse.csr_array(sparse.hstack([data.X + shift, wide])), l2=1e-2, tol=1e-12)
        for shift in (0.0, 2024.0)
    ]
    assert_allclose(*found, atol=1e-5 if isinstance(method, str) else 3e-5)  # a teacher is fitted to its own tolerance


def test_scaling_all_columns_is_scaling_the_penalty():
    data = simulate(seed=3, n=1500)
    for method in ("bl", "dfm-piecewise", "hazard"):
        assert_allclose(
            predict(method, data, 1e3 * data.X, l2=1e-3 * 1e6), predict(method, data, data.X, l2=1e-3), atol=1e-6
        )


def test_two_columns_that_differ_by_little_beside_their_size():
    data = simulate(seed=4, n=1500)
    expected = predict("bl", data, data.X, l2=0.0)
    X = data.X.copy()
    X[:, 0] = 1e6 * X[:, 0] + 1.7e9
    X[:, 1] = X[:, 0] + X[:, 1]
    assert_allclose(predict("bl", data, X, l2=0.0), expected, atol=1e-5)


def test_the_centre_of_columns_far_from_zero():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=100), 5.0 + rng.normal(size=100), np.full(100, 7.0), rng.uniform(size=100) < 0.8]
    )
    for kind in (np.asarray, sparse.csr_array):
        assert_allclose(far_centre(kind(X)), [0.0, X[:, 1].mean(), 7.0, 0.0])
        assert far_centre(kind(X[:, [0, 3]])) is None


def test_a_column_that_the_penalty_holds_at_nothing_is_told():
    data = simulate(seed=5, n=1000)
    X = data.X * np.array([1.0, 1e-5, 1, 1, 1, 1])
    with pytest.warns(UserWarning, match=r"column 1 varies by 1e-05 only.*l2=1e-05.*[Ss]tandardise"):
        predict("bl", data, X, l2=1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predict("bl", data, X, l2=0.0)
        predict("bl", data, data.X, l2=1e-2)


def test_numbers_too_large_to_add_up_are_refused_with_their_column():
    data = simulate(seed=6, n=1000)
    X = data.X.copy()
    X[:, 2] *= 1e200
    with pytest.raises(ValueError, match=r"cannot be fitted: the sums overflow. The largest values are in column 2"):
        predict("bl", data, X, l2=1e-5)


def test_a_fit_that_did_not_converge_says_so():
    data = simulate(seed=7, n=1000)
    clf = DelayedFeedbackClassifier("dfm-piecewise", horizon=20.0, model=LinearModel(max_iter=2))
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
        clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
    assert not clf.model_.converged_
    clf.set_params(model=LinearModel())
    assert clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay).model_.converged_


@pytest.mark.parametrize("method", FIXED, ids=str)
@pytest.mark.parametrize("scale", [1e-13, 1 / 1500, 1e6])
def test_the_scale_of_weights_does_not_matter(method, scale):
    data = simulate(seed=8, n=1500)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 1500)
    found = []
    for factor in (1.0, scale):
        clf = DelayedFeedbackClassifier(method, 5.0, 20.0, LinearModel(l2=1e-3))
        clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay, sample_weight=factor * weight)
        found.append(clf.predict_proba(data.X)[:, 1])
    assert_allclose(*found, atol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 7.0, 1e9 / 3])
def test_a_constant_column_changes_nothing(value, kind):
    data = simulate(seed=9, n=1500)
    expected = predict("bl", data, kind(data.X), l2=0.0)
    more = np.column_stack([data.X, np.full(1500, value)])
    assert_allclose(predict("bl", data, kind(more), l2=0.0), expected, atol=1e-7)
