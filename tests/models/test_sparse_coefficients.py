"""Weights of few columns out of very many: the same margins as a dense vector gives, without making one."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from wide_problems import big_problem

from belated import DelayedFeedbackClassifier, FieldMatrix, LinearModel
from belated.models.sparse_coefficients import SparseCoefficients
from belated.risks.weighted import WeightedRisk
from belated.solvers.rows import SparseRows


def fitted(n_columns=2**24):
    fields, a, b = big_problem(n=3000)
    fields = FieldMatrix(fields.indices.astype(np.int64) * 7919 % n_columns, n_columns)
    model = LinearModel(l2=1e-4)
    return model.fit(model.encode(fields, None), WeightedRisk(a, b)), fields


@pytest.mark.parametrize("rows", [1, 5, 3000])
def test_few_rows_and_many_rows_give_what_a_dense_vector_gives(rows):
    model, fields = fitted(2**20)
    some = fields[:rows]
    expected = some.to_csr() @ model.coef_[0] + model.intercept_[0]
    assert_allclose(model.margins(some)[:, 0], expected, rtol=1e-12)
    assert_allclose(model.margins(some.to_csr())[:, 0], expected, rtol=1e-12)


def test_columns_not_seen_in_training_count_nothing():
    model, fields = fitted()
    unseen = np.setdiff1d(np.arange(1000), fields.indices)[:5]
    assert_allclose(model.margins(FieldMatrix(unseen[None, :], 2**24)), model.intercept_[None, :])
    empty = sparse.csr_array((1, 2**24))
    assert_allclose(model.margins(empty), model.intercept_[None, :])


def test_values_other_than_one_and_empty_rows():
    rng = np.random.default_rng(0)
    weights, columns = rng.normal(size=(2, 50)), rng.permutation(10**6)[:50].astype(np.int32)
    rows = SparseRows(0, 0, columns[:0], np.zeros(1, np.int64), None, columns, 10**6)
    coef = SparseCoefficients.of(weights, rows)
    matrix = sparse.random_array((20, 10**6), density=1e-5, random_state=rng, format="csr") + sparse.csr_array(
        (rng.normal(size=30), (rng.integers(0, 20, 30), rng.choice(columns, 30))), shape=(20, 10**6)
    )
    expected = matrix @ coef.dense().T + [0.5, -0.5]
    assert matrix.nnz * 100 < 10**6  # few enough to be looked up
    assert_allclose(coef.margins(matrix.tocsr(), np.array([0.5, -0.5])), expected, rtol=1e-12)


def test_dense_rows_after_a_fit_on_sparse_ones():
    rng = np.random.default_rng(0)
    X, y = sparse.random_array((400, 2000), density=0.01, random_state=rng, format="csr"), rng.integers(0, 2, 400)
    clf = DelayedFeedbackClassifier("bl").fit(X, y)
    assert_allclose(clf.predict_proba(X.toarray()), clf.predict_proba(X), rtol=1e-10)
    assert clf.get_feature_names_out()[-1] == "x1999"  # nothing was hashed


def test_one_row_makes_no_long_vector():
    fields = fitted()[1]
    clf = DelayedFeedbackClassifier("bl").fit(fields, np.arange(3000) % 3 == 0)
    clf.predict_proba(fields[:1])
    tracemalloc.start()
    clf.predict_proba(fields[:1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000  # bytes; the dense vector has 134 million
