"""L-BFGS for long vectors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from wide_problems import random_problem, steep

from belated import LinearModel
from belated.methods import resolve_method
from belated.models.linear_objective import LinearObjective
from belated.risks.weighted import WeightedRisk
from belated.solvers import long_vector_lbfgs
from belated.solvers.rows import PlainRows, SparseRows


def test_wide_lbfgs_on_a_quadratic():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 50))
    A = A @ A.T + np.eye(50)
    target = rng.normal(size=50)

    def objective(theta):
        gap = theta - target
        return float(1 + gap @ A @ gap / 2), A @ gap

    found = long_vector_lbfgs.minimise_long(objective, lambda theta: np.diag(A), np.zeros(50), 1e-15, 500)
    assert_allclose(found.theta, target, atol=1e-6)


def _logistic(intercept, l2=0.01):
    fields, _, a, b = random_problem(3)
    return LinearObjective(SparseRows.compact(fields), WeightedRisk(a, b), l2, intercept)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_product_with_ones_is_the_change_of_the_gradient_along_them(intercept):
    problem = _logistic(intercept)
    theta = problem.start()
    ones, h = np.ones_like(theta), 1e-4
    change = problem.value_and_gradient(theta + h * ones)[1] - problem.value_and_gradient(theta - h * ones)[1]
    assert_allclose(problem._of_ones(problem.diagonal(theta)), change / (2 * h), rtol=1e-6)


def test_knowing_the_steepest_direction_spares_evaluations_and_changes_nothing():
    found, counts = [], []
    for known in (True, False):
        problem, calls = _logistic(True, l2=1e-3), [0]

        def objective(theta, problem=problem, calls=calls):
            calls[0] += 1
            return problem.value_and_gradient(theta)

        of_ones = problem._of_ones if known else None
        solution = long_vector_lbfgs.minimise_long(
            objective, problem.diagonal, problem.start(), 1e-10, 200, of_ones=of_ones
        )
        found.append(solution)
        counts.append(calls[0])
    assert_allclose(found[0].value, found[1].value, rtol=1e-9)
    assert counts[0] < counts[1]


@pytest.mark.parametrize("method", ["hazard", "dfm"])
def test_stiff_risks_reach_the_minimum_that_scipy_finds(method):
    X, labels = steep()
    model = LinearModel(l2=1e-5, tol=1e-9)
    encoded = model.encode(X, labels.weight)
    assert isinstance(encoded, SparseRows)
    risk = resolve_method(method).risk(labels, None)
    fitted = model.fit(encoded, risk)
    plain = LinearModel(l2=1e-5, tol=1e-9).fit(PlainRows(X.to_csr()[:, :240]), risk)
    assert_allclose(fitted.objective_, plain.objective_, rtol=0, atol=2e-6)


def test_short_steps_and_fresh_curvature_spare_evaluations():
    X, labels = steep()
    counts = []
    for stiff in (True, False):
        risk = resolve_method("hazard").risk(labels, None)
        risk.stiff = stiff
        calls, ask = [0], risk.value_and_gradient

        def count(*args, calls=calls, ask=ask):
            calls[0] += 1
            return ask(*args)

        risk.value_and_gradient = count
        model = LinearModel(l2=1e-7, tol=1e-6)
        model.fit(model.encode(X, labels.weight), risk)
        counts.append(calls[0])
    assert counts[0] < counts[1]
