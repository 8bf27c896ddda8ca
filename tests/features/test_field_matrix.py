"""FieldMatrix: checks, files, rows, and what other libraries make of it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression

from belated import FieldMatrix


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


def test_scikit_learn_takes_the_csr_matrix():
    rng = np.random.default_rng(0)
    fields, y = FieldMatrix(rng.integers(0, 50, (300, 3)), 50), rng.integers(0, 2, 300)
    matrix = fields.to_csr()
    assert matrix.indptr.dtype == matrix.indices.dtype == np.int32
    for solver in ("liblinear", "saga", "lbfgs"):
        assert LogisticRegression(solver=solver, max_iter=5000).fit(matrix, y).coef_.shape == (1, 50)
    assert FieldMatrix(np.zeros((3, 0), dtype=int), 5).to_csr().shape == (3, 5)
