"""L-BFGS for long vectors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from wide_problems import steep

from belated import LinearModel
from belated.methods import resolve_method
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
