"""Products of rows with weights, and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from wide_problems import random_problem

from belated.risks.weighted import WeightedRisk
from belated.solvers.rows import SparseRows


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
    assert_allclose(rows.transpose_dot(pulled), pulled.T @ dense, atol=1e-13)
    if matrix != "fields":  # of fields that share a column, the squares of single entries count
        assert_allclose(rows.transpose_dot(pulled, squared=True), pulled.T @ dense**2, atol=1e-13)


@pytest.mark.parametrize("matrix", ["fields", "csr", "binary csr"])
def test_what_the_start_of_a_fit_makes_short_is_the_same(matrix):
    """Weights of 0, and the same number for every row."""
    fields, csr, a, _ = random_problem(7)
    X = {"fields": fields, "csr": csr, "binary csr": (csr != 0).astype(float).tocsr()}[matrix]
    rows = SparseRows.compact(X)
    known = replace(rows, counts=None)
    same = np.full((len(a), 2), 0.25)
    for squared in (False, True):
        assert_allclose(rows.transpose_dot(same, squared), known.transpose_dot(same, squared), rtol=1e-13)
    some = np.arange(len(a)) % 3 == 0
    assert_allclose(rows.take(some).transpose_dot(same[some]), known.take(some).transpose_dot(same[some]), rtol=1e-13)
    level = np.array([0.5, -1.0])
    dot = np.finfo(float).tiny  # not 0, so nothing is left out
    assert_allclose(
        rows.margins(np.zeros((2, rows.shape[1])), level), rows.margins(np.full((2, rows.shape[1]), dot), level)
    )


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
            fused = rows.logistic_pass(theta, (a, b), 0.3, np.empty((2, 2 * rows.shape[1])))
            assert_allclose(fused[0], value + 0.3 * (coef**2).sum())
            parts = [rows.transpose_dot(d_margins)[0] + 0.6 * coef[0], d_margins.sum(axis=0)[:intercept]]
            assert_allclose(fused[1], np.concatenate(parts), atol=1e-13)
