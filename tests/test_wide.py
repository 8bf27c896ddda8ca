"""FieldMatrix and the compiled engine for wide sparse data, against SciPy and against the narrow path."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from simulate import simulate

from belated import DelayedFeedbackClassifier, FieldMatrix, LinearModel
from belated.data.labels import observe
from belated.evaluation.validation import fit_path
from belated.methods import METHODS
from belated.risks.base import NonNegativeRisk, SeparateRisks, WeightedRisk
from belated.solvers import dual, long_lbfgs
from belated.solvers.rows import PlainRows, SparseRows


def random_problem(seed):
    """A small problem with negative b, repeated columns and, as CSR, empty rows and values other than 1."""
    rng = np.random.default_rng(seed)
    n, k, columns = int(rng.integers(1, 60)), int(rng.integers(1, 5)), int(rng.integers(1, 30))
    fields = FieldMatrix(rng.integers(0, columns, (n, k)), columns)
    csr = sparse.random_array((n, columns), density=0.2, rng=rng, format="csr") * 3.0
    a = rng.uniform(0.05, 1, n) / n
    b = np.where(rng.uniform(size=n) < 0.3, -0.9 * a, rng.uniform(0.05, 1, n) / n)
    if not b.sum() > 0.1 * a.sum():
        b = np.abs(b)
    return fields, csr, a, b


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
                        "belated.models.linear._Problem._suits_dual", lambda self, risk, answer=use_dual: answer
                    )
                    model.fit(rows, WeightedRisk(a, b))
                assert_allclose(model.objective_, value, rtol=1e-7, atol=1e-10)
                assert_allclose(expit(X @ model.coef_[0] + model.intercept_[0]), p, atol=2e-4)


def big_problem(n=20000, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.column_stack([rng.zipf(1.3, n) % size + 100 * i for i, size in enumerate((50, 97, 89, 60, 99))])
    fields = FieldMatrix(indices.astype(np.int32), 2000)
    y = rng.uniform(size=n) < expit(-1 + (indices % 7 == 0).sum(axis=1) - (indices % 5 == 0).sum(axis=1))
    return fields, y / n, ~y / n


@pytest.mark.parametrize("l2", [1e-3, 1e-4])
def test_the_reported_gap_bounds_the_distance_from_the_minimum(l2):
    fields, a, b = big_problem()
    rows = SparseRows.compact(fields)
    best = LinearModel(l2=l2, tol=1e-13).fit(rows, WeightedRisk(a, b)).objective_
    for tol in (1e-2, 1e-4, 1e-6):
        found = dual.minimise_dual(rows, a, b, l2, True, tol, 100)
        value = WeightedRisk(a, b).value_and_gradient(rows.margins(found.coef[None], np.array([found.intercept])))[0]
        excess = value + l2 * found.coef @ found.coef - best
        assert found.converged
        assert -1e-12 <= excess <= found.gap <= tol


def test_dual_ascent_hands_over_when_it_is_slow(monkeypatch):
    fields, a, b = big_problem()
    rows = SparseRows.compact(fields)
    plain = LinearModel(l2=1e-4, tol=1e-12).fit(PlainRows(fields.to_csr()), WeightedRisk(a, b))
    monkeypatch.setattr(dual, "_TOO_SLOW", 0.0)
    handed = LinearModel(l2=1e-4, tol=1e-12).fit(rows, WeightedRisk(a, b))
    assert_allclose(handed.objective_, plain.objective_, rtol=1e-9)
    assert np.isnan(handed.gap_)


def test_threads_change_nothing_but_rounding():
    fields, a, b = big_problem()
    results = []
    for threads in (1, 2):
        nb.set_num_threads(min(threads, nb.config.NUMBA_NUM_THREADS))
        for l2 in (1e-3, 1e-7):
            model = LinearModel(l2=l2, tol=1e-10)
            model.fit(SparseRows.compact(fields), WeightedRisk(a, b))
            results.append(expit(fields.to_csr() @ model.coef_[0]))
    assert_allclose(results[0], results[2], atol=1e-6)
    assert_allclose(results[1], results[3], atol=1e-6)


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


@pytest.mark.parametrize("method", METHODS)
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


def test_wide_lbfgs_on_a_quadratic():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 50))
    A = A @ A.T + np.eye(50)
    target = rng.normal(size=50)

    def objective(theta):
        gap = theta - target
        return float(1 + gap @ A @ gap / 2), A @ gap

    found = long_lbfgs.minimise_wide(objective, lambda theta: np.diag(A), np.zeros(50), 1e-15, 500)
    assert_allclose(found.theta, target, atol=1e-6)


def test_field_matrix_is_checked_saved_and_sliced(tmp_path):
    fields = FieldMatrix(np.arange(12).reshape(4, 3), 12)
    fields.save(tmp_path / "log.fields")
    again = FieldMatrix.open(tmp_path / "log.fields")
    assert isinstance(again.indices, np.memmap)
    assert_array_equal(again.indices, fields.indices)
    assert again.shape == (4, 12)
    assert not list(tmp_path.glob("*.partial"))
    fields[:2].save(tmp_path / "log.fields")  # over an older one
    assert len(FieldMatrix.open(tmp_path / "log.fields")) == 2
    assert_array_equal(fields[np.array([True, False, True, False])].indices, fields.indices[[0, 2]])
    assert_array_equal(again[2:].to_csr().toarray(), fields.to_csr().toarray()[2:])
    with pytest.raises(ValueError, match="the first that does not is 11, at row 3 of field 2"):
        FieldMatrix(np.arange(12).reshape(4, 3), 11)
    with pytest.raises(ValueError, match="must be a matrix of whole numbers"):
        FieldMatrix(np.zeros(3), 4)
    with pytest.raises(ValueError, match="holds no FieldMatrix"):
        FieldMatrix.open(tmp_path / "nothing")


def test_field_matrix_that_does_not_match_fit():
    fields, a, _ = big_problem(n=500)
    clf = DelayedFeedbackClassifier(method="bl").fit(fields, a > 0)
    assert clf.predict_proba(fields[:3]).shape == (3, 2)
    assert clf.n_features_in_ == 5
    with pytest.raises(ValueError, match="does not match fit, where there were 5 features"):
        clf.predict(FieldMatrix(fields.indices[:, :2], 2000))
    with pytest.raises(ValueError, match="does not match fit"):
        clf.predict(FieldMatrix(fields.indices, 4000))


@pytest.mark.parametrize("matrix", ["fields", "csr", "binary csr"])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_compiled_products_equal_scipy(matrix, m):
    fields, csr, a, _ = random_problem(7)
    X = {"fields": fields, "csr": csr, "binary csr": (csr != 0).astype(float).tocsr()}[matrix]
    rows, rng = SparseRows.compact(X), np.random.default_rng(0)
    dense = X.to_csr().toarray() if matrix == "fields" else X.toarray()
    dense = dense[:, rows.columns]
    coef, level, pulled = rng.normal(size=(m, dense.shape[1])), rng.normal(size=m), rng.normal(size=(len(a), m))
    assert_allclose(rows.margins(coef, level), dense @ coef.T + level)
    assert_allclose(rows.pull(pulled), pulled.T @ dense, atol=1e-13)
    if matrix != "fields":  # of fields that share a column, the squares of single entries count
        assert_allclose(rows.pull(pulled, squared=True), pulled.T @ dense**2, atol=1e-13)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_fused_pass_equals_its_parts(intercept):
    rng = np.random.default_rng(0)
    for seed in range(5):
        fields, csr, a, b = random_problem(seed)
        for matrix in (fields, csr):
            rows, risk = SparseRows.compact(matrix), WeightedRisk(a, b)
            theta = rng.normal(size=rows.shape[1] + intercept)
            level = theta[rows.shape[1] :].sum(keepdims=True)
            coef = theta[None, : rows.shape[1]]
            value, d_margins, _ = risk.value_and_gradient(rows.margins(coef, level))
            fused = rows.logistic(theta, risk, 0.3, np.empty((2, 2 * rows.shape[1])))
            assert_allclose(fused[0], value + 0.3 * (coef**2).sum())
            parts = [rows.pull(d_margins)[0] + 0.6 * coef[0], d_margins.sum(axis=0)[:intercept]]
            assert_allclose(fused[1], np.concatenate(parts), atol=1e-13)


@pytest.mark.parametrize("tol", [1e-5, 1e-10])
def test_a_path_ends_where_separate_fits_do(tol):
    fields, a, b = big_problem()
    values = [1e-4, 1e-2, 1e-3]
    for risk in (WeightedRisk(a, b), NonNegativeRisk(a, b)):
        model = LinearModel(tol=tol)
        rows = model.encode(fields, None)
        path = model.path(rows, risk, values)
        assert [m.l2 for m in path] == values
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


def steep(n=4000, seed=0):
    """Fields whose effect on hazards spans orders of magnitude, so that curvature far from the start is another."""
    rng = np.random.default_rng(seed)
    fields = np.column_stack([rng.integers(0, 40, n) + 40 * j for j in range(6)])
    X = FieldMatrix(fields, 2000)
    pace = rng.normal(0.0, 1.5, 2000)[fields].sum(axis=1)
    converts = rng.uniform(size=n) < expit(rng.normal(-0.2, 0.5, 2000)[fields].sum(axis=1))
    delay, elapsed = rng.exponential(np.exp(pace)), rng.uniform(0, 20, n)
    y = converts & (delay <= elapsed)
    return X, observe(y, elapsed, np.where(y, delay, np.nan), None, 5.0, None)


@pytest.mark.parametrize("method", ["hazard", "dfm"])
def test_stiff_risks_reach_the_minimum_that_scipy_finds(method):
    X, observed = steep()
    model = LinearModel(l2=1e-5, tol=1e-9)
    encoded = model.encode(X, observed.weight)
    assert isinstance(encoded, SparseRows)
    risk = METHODS[method]().risk(observed, None)
    fitted = model.fit(encoded, risk)
    plain = LinearModel(l2=1e-5, tol=1e-9).fit(PlainRows(X.to_csr()[:, :240]), risk)
    assert_allclose(fitted.objective_, plain.objective_, rtol=0, atol=2e-6)


def test_short_steps_and_fresh_curvature_spare_evaluations():
    X, observed = steep()
    counts = []
    for stiff in (True, False):
        risk = METHODS["hazard"]().risk(observed, None)
        risk.stiff = stiff
        calls, ask = [0], risk.value_and_gradient

        def count(*args, calls=calls, ask=ask):
            calls[0] += 1
            return ask(*args)

        risk.value_and_gradient = count
        model = LinearModel(l2=1e-7, tol=1e-6)
        model.fit(model.encode(X, observed.weight), risk)
        counts.append(calls[0])
    assert counts[0] < counts[1]


@pytest.mark.parametrize("method", ["hazard", "dfm", "dfm-weibull", "dfm-piecewise"])
def test_the_unit_of_time_changes_nothing_on_the_wide_engine(method):
    X, days = steep()
    minutes = observe(days.y, 1440 * days.elapsed, 1440 * days.delay, None, 1440 * 5.0, None)
    p = []
    for observed in (days, minutes):
        model = LinearModel(l2=1e-4, tol=1e-8)
        encoded = model.encode(X, observed.weight)
        (fit,) = fit_path(model, encoded, METHODS[method](), observed, [1e-4])
        p.append(fit.predict(X))
    assert_allclose(p[0], p[1], atol=2e-3)
