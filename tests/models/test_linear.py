"""LinearModel against independent solvers, on dense, sparse and awkward inputs."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit
from simulate import simulate
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from belated import BL, DFM, FSIW, PNUTW, PUTW, TW, ConvDF, DelayedFeedbackClassifier, Hazard, LinearModel, NnDF
from belated.data.labels import check_labels
from belated.methods import METHODS
from belated.risks.weighted import WeightedRisk

L2 = 1e-3


def fit(method, data, model=None, X=None):
    clf = DelayedFeedbackClassifier(method=method, window=5.0, horizon=20.0, model=model or LinearModel(l2=L2))
    return clf.fit(data.X if X is None else X, data.y, elapsed=data.elapsed, delay=data.delay)


def weights_of(method, data):
    """a and b as written in the table of methods, with plain loops over masks."""
    y, elapsed, n = data.y == 1, data.elapsed, len(data.y)
    mature = elapsed >= 5.0
    m = mature.sum()
    late = mature & y & ~(np.nan_to_num(data.delay, nan=np.inf) <= elapsed - 5.0)
    return {
        "bl": (y / n, ~y / n),
        "tw": (mature * y / m, mature * ~y / m),
        "putw": (mature * y / m, 1 / n - mature * y / m),
        "pnutw": (mature * y / m, 0.5 * (1 / n - mature * y / m) + 0.5 * mature * ~y / m),
        "convdf-paper": (y / n + late / m, ~y / n - late / m),
    }[method]


def duplicated_logistic(X, a, b):
    """scikit-learn on every row twice, once for each class: J + l2 ||w||^2 as sum(w loss) + ||w||^2 / (2 C)."""
    both, labels = np.vstack([X, X]), np.repeat([1, 0], len(X))
    reference = LogisticRegression(C=1 / (2 * L2), tol=1e-12, max_iter=1000, solver="newton-cholesky")
    return reference.fit(both, labels, sample_weight=np.concatenate([a, b])).predict_proba(X)[:, 1]


@pytest.mark.parametrize("name", ["bl", "tw"])
def test_equals_scikit_learn(name):
    data = simulate(seed=0)
    expected = duplicated_logistic(data.X, *weights_of(name, data))
    assert_allclose(fit(name, data).predict_proba(data.X)[:, 1], expected, atol=1e-6)


def test_last_stage_of_fsiw_equals_scikit_learn():
    data = simulate(seed=1)
    clf = fit(FSIW(), data)
    labels = check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0, 20.0)

    model = LinearModel(l2=L2)
    risk = FSIW().risk(labels, partial(model.auxiliary_margin, model.encode(data.X, np.ones(len(data.y)))))
    assert_allclose(clf.predict_proba(data.X)[:, 1], duplicated_logistic(data.X, risk.a, risk.b), atol=1e-6)


def test_auxiliary_models_of_fsiw_equal_scikit_learn():
    data = simulate(seed=2)
    rng = np.random.default_rng(0)
    rows, target = rng.uniform(size=len(data.y)) < 0.5, rng.uniform(size=len(data.y)) < 0.3
    groups = rng.integers(0, 5, len(data.y))
    share = 1 / rows.sum()
    risk = WeightedRisk(share * target[rows], share * ~target[rows])
    model = LinearModel(l2=L2)
    margin = model.auxiliary_margin(
        model.encode(data.X, np.ones(len(data.y))), risk, rows, groups[rows], np.roll(groups, 1)
    )
    reference = LogisticRegression(C=1 / (2 * L2 * rows.sum()), tol=1e-12, max_iter=1000, solver="newton-cholesky")
    reference.fit(np.column_stack([data.X, np.eye(5)[groups]])[rows], target[rows])
    expected = reference.predict_proba(np.column_stack([data.X, np.eye(5)[np.roll(groups, 1)]]))[:, 1]
    assert_allclose(expit(margin), expected, atol=1e-6)


@pytest.mark.parametrize(("name", "method"), [("putw", PUTW()), ("pnutw", PNUTW()), ("convdf-paper", ConvDF("paper"))])
def test_negative_weights_equal_scipy(name, method):
    data = simulate(seed=3, n=800)
    a, b = weights_of(name, data)
    X = np.column_stack([data.X, np.ones(len(a))])

    def objective(w):
        z = X @ w
        value = a @ np.logaddexp(0, -z) + b @ np.logaddexp(0, z) + L2 * w[:-1] @ w[:-1]
        return value, X.T @ ((a + b) * expit(z) - a) + 2 * L2 * np.append(w[:-1], 0.0)

    reference = minimize(objective, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10})
    clf = fit(method, data)
    assert_allclose(clf.predict_proba(data.X)[:, 1], expit(X @ reference.x), atol=1e-6)
    assert_allclose(clf.model_.objective_, reference.fun, rtol=1e-10)


def dfm_reference(data, law, starts):
    """Chapelle's likelihood written down plainly, minimised by scipy from several places."""
    y, t = data.y == 1, np.where(data.y == 1, data.delay, np.minimum(data.elapsed, 20.0))
    X = np.column_stack([data.X, np.ones(len(y))])
    d = X.shape[1]

    def objective(w):
        p, rate = expit(X @ w[:d]), np.exp(X @ w[d : 2 * d])
        k = np.exp(w[2 * d]) if law == "weibull" else 1.0
        survival, density = np.exp(-rate * t**k), rate * k * t ** (k - 1) * np.exp(-rate * t**k)
        likelihood = np.where(y, p * density, 1 - p + p * survival)
        return -np.log(likelihood).mean() + L2 * (w[: d - 1] @ w[: d - 1] + w[d : 2 * d - 1] @ w[d : 2 * d - 1])

    size = 2 * d + (law == "weibull")
    rng = np.random.default_rng(0)
    found = [
        minimize(objective, 0.3 * rng.normal(size=size), method="BFGS", options={"gtol": 1e-6}) for _ in range(starts)
    ]
    best = min(found, key=lambda result: result.fun)
    return best.fun, X @ best.x[:d], X @ best.x[d : 2 * d]


@pytest.mark.parametrize("law", ["exponential", "weibull"])
def test_dfm_equals_scipy_from_several_starts(law):
    data = simulate(seed=4, n=1500)
    value, g, h = dfm_reference(data, law, starts=3)
    model = fit(DFM(law), data).model_
    assert_allclose(model.objective_, value, rtol=1e-8)
    margins = model.margins(data.X)
    assert_allclose(margins[:, 0], g, atol=2e-3)
    assert_allclose(margins[:, 1], h, atol=2e-3)


def test_piecewise_dfm_is_at_a_minimum():
    data = simulate(seed=5, n=1500)
    clf = fit(DFM("piecewise"), data)
    model = clf.model_
    labels = check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0, 20.0)
    risk = DFM("piecewise").risk(labels, None)
    best = model.objective_
    for seed in range(30):
        rng = np.random.default_rng(seed)
        coef = model.coef_ + 0.01 * rng.normal(size=model.coef_.shape)
        margins = data.X @ coef.T + model.intercept_ + [0.01 * rng.normal(), 0.0]
        value = risk.value_and_gradient(margins, model.shared_ + 0.01 * rng.normal(size=model.shared_.shape))[0]
        assert value + L2 * (coef**2).sum() > best


def test_hazard_equals_poisson_regression():
    """Piecewise-constant hazards are a Poisson model of events on exposures, one row for each interval lived through."""
    data = simulate(seed=6, n=800)
    clf = fit(Hazard(intervals=3, smoothing=1e-3), data)
    y, t = data.y == 1, np.where(data.y == 1, data.delay, np.minimum(data.elapsed, 20.0))
    edges = np.concatenate([[0.0], clf.link_.law.knots, [np.inf]])
    d, intervals = data.X.shape[1], len(edges) - 1

    def objective(w):
        value = 0.0
        for k in range(intervals):
            exposure = np.clip(t, edges[k], edges[k + 1]) - edges[k]
            event = y & (edges[k] < t) & (t <= edges[k + 1])
            log_hazard = data.X @ w[:d] + w[d + k]
            value += (exposure * np.exp(log_hazard) - event * log_hazard).mean()
        return value + L2 * w[:d] @ w[:d] + 1e-3 / 800 * (np.diff(w[d:]) ** 2).sum()

    reference = minimize(objective, np.zeros(d + intervals), method="BFGS", options={"gtol": 1e-7})
    assert_allclose(clf.model_.objective_, reference.fun, rtol=1e-8)
    total = np.exp(reference.x[d:]) @ (np.minimum(edges[1:], 20.0) - edges[:-1])
    expected = 1 - np.exp(-total * np.exp(data.X @ reference.x[:d]))
    assert_allclose(clf.predict_proba(data.X)[:, 1], expected, atol=1e-4)


@pytest.mark.parametrize("method", [BL(loss="squared"), TW(loss="squared"), ConvDF(loss="squared")], ids=str)
def test_squared_loss_equals_ridge(method):
    data = simulate(seed=7, n=800)
    labels = check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0, 20.0)
    risk = method.risk(labels, None)
    X = np.column_stack([data.X, np.ones(800)])
    # (a+b)(g^2 + 1)/4 - (a-b) g/2 + l2 w^2 is least where ((a+b)/2 X'X + 2 l2) w = X'(a-b)/2.
    penalty = 2 * L2 * np.diag([1.0] * data.X.shape[1] + [0.0])
    w = np.linalg.solve(X.T @ ((risk.a + risk.b)[:, None] / 2 * X) + penalty, X.T @ (risk.a - risk.b) / 2)
    assert_allclose(fit(method, data).decision_function(data.X), X @ w, atol=1e-6)


@pytest.mark.parametrize(
    "method", [BL(loss="double_hinge"), ConvDF(loss="double_hinge"), NnDF(loss="double_hinge")], ids=str
)
def test_double_hinge_reaches_its_minimum(method):
    data = simulate(seed=8, n=400)
    risk = method.risk(check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0, 20.0), None)
    model = fit(method, data).model_

    def objective(w):
        margins = data.X @ w[:-1, None] + w[-1]
        return risk.value_and_gradient(margins)[0] + L2 * w[:-1] @ w[:-1]

    here = np.append(model.coef_[0], model.intercept_)
    assert_allclose(model.objective_, objective(here), rtol=1e-12)
    better = minimize(objective, here, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-12})
    assert better.fun > model.objective_ - 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_dense_sparse_and_column_of_ones_agree(method):
    data = simulate(seed=9, n=1000)
    before = data.X.copy()
    dense = fit(method, data)
    for kind in (sparse.csr_array, sparse.csr_matrix, sparse.coo_array):
        spare = fit(method, data, X=kind(data.X))
        assert_allclose(spare.predict_proba(kind(data.X)), dense.predict_proba(data.X), atol=2e-6)
    assert_array_equal(data.X, before)


def test_columns_of_very_different_size_converge():
    data = simulate(seed=10, n=2000)
    scale = 10.0 ** np.arange(-3, 3)
    model = LinearModel(l2=0.0)
    small = fit("convdf", data, model=model)
    large = fit("convdf", data, model=model, X=data.X * scale)
    assert_allclose(large.predict_proba(data.X * scale), small.predict_proba(data.X), atol=1e-6)


def test_wide_sparse_matrix():
    """Beyond the size of a dense preconditioner."""
    rng = np.random.default_rng(0)
    data = simulate(seed=11, n=2000)
    X = sparse.hstack(
        [sparse.csr_array(data.X), sparse.random_array((2000, 3000), density=0.002, random_state=rng)], format="csr"
    )
    clf = fit("bl", data, X=X, model=LinearModel(l2=L2, tol=1e-13))
    reference = LogisticRegression(C=1 / (2 * L2 * 2000), tol=1e-10, max_iter=10000).fit(X, data.y)
    assert_allclose(clf.predict_proba(X), reference.predict_proba(X), atol=1e-5)


def test_no_intercept():
    data = simulate(seed=12)
    clf = fit("bl", data, model=LinearModel(l2=L2, fit_intercept=False))
    reference = LogisticRegression(C=1 / (2 * L2 * len(data.y)), fit_intercept=False, tol=1e-10, max_iter=1000)
    assert_allclose(clf.predict_proba(data.X), reference.fit(data.X, data.y).predict_proba(data.X), atol=1e-6)
    assert clf.model_.intercept_ == 0
    assert fit("nndf", data, model=LinearModel(fit_intercept=False)).model_.intercept_ == 0


def test_says_when_it_did_not_converge():
    data = simulate(seed=13)
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations"):
        fit("bl", data, model=LinearModel(max_iter=1))


def test_same_input_gives_the_same_bits():
    data = simulate(seed=14, frame="pandas")
    first, second = fit("dfm-piecewise", data), fit("dfm-piecewise", data)
    assert_array_equal(first.predict_proba(data.X), second.predict_proba(data.X))
