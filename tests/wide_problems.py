"""Small wide problems that several tests share."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import expit

from belated import FieldMatrix
from belated.data.labels import check_labels


def random_problem(seed):
    """A small problem with negative b, repeated columns and, as CSR, empty rows and values other than 1."""
    rng = np.random.default_rng(seed)
    n, k, columns = int(rng.integers(1, 60)), int(rng.integers(1, 5)), int(rng.integers(1, 30))
    fields = FieldMatrix(rng.integers(0, columns, (n, k)), columns)
    csr = sparse.random_array((n, columns), density=0.2, random_state=rng, format="csr") * 3.0
    a = rng.uniform(0.05, 1, n) / n
    b = np.where(rng.uniform(size=n) < 0.3, -0.9 * a, rng.uniform(0.05, 1, n) / n)
    if not b.sum() > 0.1 * a.sum():
        b = np.abs(b)
    return fields, csr, a, b


def big_problem(n=20000, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.column_stack([rng.zipf(1.3, n) % size + 100 * i for i, size in enumerate((50, 97, 89, 60, 99))])
    fields = FieldMatrix(indices.astype(np.int32), 2000)
    y = rng.uniform(size=n) < expit(-1 + (indices % 7 == 0).sum(axis=1) - (indices % 5 == 0).sum(axis=1))
    return fields, y / n, ~y / n


def steep(n=4000, seed=0):
    """Fields whose effect on hazards spans orders of magnitude, so that curvature far from the start is another."""
    rng = np.random.default_rng(seed)
    fields = np.column_stack([rng.integers(0, 40, n) + 40 * j for j in range(6)])
    X = FieldMatrix(fields, 2000)
    pace = rng.normal(0.0, 1.5, 2000)[fields].sum(axis=1)
    converts = rng.uniform(size=n) < expit(rng.normal(-0.2, 0.5, 2000)[fields].sum(axis=1))
    delay, elapsed = rng.exponential(np.exp(pace)), rng.uniform(0, 20, n)
    y = converts & (delay <= elapsed)
    return X, check_labels(y, elapsed, np.where(y, delay, np.nan), None, 5.0, None)
