"""LinearModel on wide sparse data, against SciPy and against the narrow path."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit
from simulate import simulate
from stubs import FIXED
from wide_problems import big_problem, random_problem, steep

from belated import DelayedFeedbackClassifier, FieldMatrix, LinearModel
from belated.data.labels import check_labels
from belated.evaluation.fitting import fit_path
from belated.methods import resolve_method
from belated.risks.non_negative import NonNegativeRisk
from belated.risks.separate_risks import SeparateRisks
from belated.risks.weighted import WeightedRisk
from belated.solvers.rows import PlainRows, SparseRows


def reference(X, a, b, l2, intercept=True):
    X = np.column_stack([X, np.ones(len(a))]) if intercept else X
    free = np.ones(X.shape[1])
    free[X.shape[1] - intercept :] = 0.0

    def objective(w):
        z = X @ w
        value = (a + b) @ np.logaddexp(0, z) - a @ z + l2 * (free * w) @ w
        return value, X.T @ ((a + b) * expit(z) - a) + 2 * l2 * free * w

    found = minimize(objective, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.fun, expit(X @ found.x)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("l2", [1e-3, 0.05, 2.0])
def test_both_engines_equal_scipy(seed, l2, monkeypatch):
    fields, csr, a, b = random_problem(seed)
    for matrix, X in ((fields, fields.to_csr().toarray()), (csr, csr.toarray())):
        rows = SparseRows.compact(matrix)
        for intercept in (True, False):
            value, p = reference(X, a, b, l2, intercept)
            for use_dual in (True, False):
                model = LinearModel(l2=l2, fit_intercept=intercept, tol=1e-12)
                with monkeypatch.context() as patch:
                    patch.setattr(
                        "belated.models.linear_objective.LinearObjective._suits_dual",
                        lambda self, answer=use_dual: answer,
                    )
                    model.fit(rows, WeightedRisk(a, b))
                assert_allclose(model.objective_, value, rtol=1e-7, atol=1e-10)
                assert_allclose(expit(X @ model.coef_[0] + model.intercept_[0]), p, atol=2e-4)


def test_the_number_of_threads_changes_not_a_bit():
    fields, a, b = big_problem(n=70_000)  # enough for passes by several threads
    results = []
    for threads in (1, 2):
        nb.set_num_threads(min(threads, nb.config.NUMBA_NUM_THREADS))
        for l2 in (1e-3, 1e-7):
            model = LinearModel(l2=l2, tol=1e-5)
            model.fit(SparseRows.compact(fields), WeightedRisk(a, b))
            results.append(expit(fields.to_csr() @ model.coef_[0]))
    assert_array_equal(results[0], results[2])
    assert_array_equal(results[1], results[3])


def test_same_input_gives_the_same_bits():
    fields, a, b = big_problem()
    first, second = (LinearModel(l2=1e-3).fit(SparseRows.compact(fields), WeightedRisk(a, b)) for _ in range(2))
    assert_array_equal(first.coef_, second.coef_)


def test_corrected_risk_on_the_wide_engine():
    fields, a, b = big_problem(n=3000)
    b = np.where(np.arange(3000) % 9 == 0, -a * 0.99, b)
    risk = NonNegativeRisk(a, b)
    wide_fit = LinearModel(l2=1e-5, tol=1e-12).fit(SparseRows.compact(fields), risk)
    plain = LinearModel(l2=1e-5).fit(PlainRows(fields.to_csr()), risk)
    assert_allclose(wide_fit.objective_, plain.objective_, rtol=1e-6)


@pytest.mark.parametrize("method", FIXED, ids=str)
def test_every_method_on_fields_and_on_the_same_narrow_matrix(method):
    data = simulate(seed=0, n=3000)
    rng = np.random.default_rng(0)
    indices = np.column_stack(
        [np.digitize(data.X[:, j], [-1, 0, 1]) + 5 * j for j in range(3)] + [rng.integers(20, 40, 3000)]
    )
    fields = FieldMatrix(indices, 2**20)
    narrow = FieldMatrix(indices, 40).to_csr().toarray()
    fits = []
    for X in (fields, narrow):
        clf = DelayedFeedbackClassifier(method=method, window=5.0, horizon=20.0, model=LinearModel(l2=1e-3, tol=1e-11))
        fits.append(clf.fit(X, data.y, elapsed=data.elapsed, delay=data.delay).predict_proba(X))
    assert_allclose(fits[0], fits[1], atol=1e-4)


def test_field_matrix_that_does_not_match_fit():
    fields, a, _ = big_problem(n=500)
    clf = DelayedFeedbackClassifier(method="bl").fit(fields, a > 0)
    assert clf.predict_proba(fields[:3]).shape == (3, 2)
    assert clf.n_features_in_ == 5
    with pytest.raises(
        ValueError, match="does not match fit, where X was a FieldMatrix of 2000 columns with 5 features"
    ):
        clf.predict(FieldMatrix(fields.indices[:, :2], 2000))
    with pytest.raises(ValueError, match="does not match fit"):
        clf.predict(FieldMatrix(fields.indices, 4000))


@pytest.mark.parametrize("tol", [1e-5, 1e-10])
def test_a_path_ends_where_separate_fits_do(tol):
    fields, a, b = big_problem()
    values = [1e-4, 1e-2, 1e-3]
    for risk in (WeightedRisk(a, b), NonNegativeRisk(a, b)):
        model = LinearModel(tol=tol)
        rows = model.encode(fields, None)
        path = list(model.path(rows, risk, values))
        assert [m.l2 for m in path] == sorted(values, reverse=True)
        for found in path:
            alone = LinearModel(l2=found.l2, tol=1e-12).fit(rows, risk)
            assert_allclose(found.objective_, alone.objective_, rtol=2 * tol)
            assert_array_equal(found.margins(fields).shape, (len(a), 1))


def test_separate_risks_are_solved_one_by_one():
    fields, a, b = big_problem(n=3000)
    parts = WeightedRisk(a, b), WeightedRisk(b, a)
    joint = SeparateRisks(parts, parts[0].link)
    rows = SparseRows.compact(fields)
    for intercept in (True, False):
        model = LinearModel(l2=1e-3, tol=1e-11, fit_intercept=intercept).fit(rows, joint)
        # A second margin always has its intercept.
        alone = [
            LinearModel(1e-3, free, 1e-11).fit(rows, part) for part, free in zip(parts, (intercept, True), strict=True)
        ]
        assert_allclose(model.objective_, sum(m.objective_ for m in alone))
        assert_allclose(model.coef_[0], alone[0].coef_[0], atol=1e-6)
        assert_allclose(model.intercept_[0], alone[0].intercept_[0], atol=1e-6)


@pytest.mark.parametrize("method", ["hazard", "dfm", "dfm-weibull", "dfm-piecewise"])
def test_the_unit_of_time_changes_nothing_on_the_wide_engine(method):
    X, days = steep()
    minutes = check_labels(days.y, 1440 * days.elapsed, 1440 * days.delay, None, 1440 * 5.0, None)
    p = []
    for labels in (days, minutes):
        model = LinearModel(l2=1e-4, tol=1e-8)
        encoded = model.encode(X, labels.weight)
        (fit,) = fit_path(model, encoded, resolve_method(method), labels, [1e-4])
        p.append(fit.predict(X))
    assert_allclose(p[0], p[1], atol=2e-3)
