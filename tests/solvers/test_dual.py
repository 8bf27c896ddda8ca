"""Dual coordinate ascent and its certificate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from wide_problems import big_problem

from belated import LinearModel
from belated.risks.weighted import WeightedRisk
from belated.solvers import dual
from belated.solvers.rows import PlainRows, SparseRows


@pytest.mark.parametrize("l2", [1e-3, 1e-4])
def test_the_reported_gap_bounds_the_distance_from_the_minimum(l2):
    fields, a, b = big_problem()
    rows = SparseRows.compact(fields)
    best = LinearModel(l2=l2, tol=1e-13).fit(rows, WeightedRisk(a, b)).objective_
    for tol in (1e-2, 1e-4, 1e-6):
        found = dual.minimise_dual(rows, WeightedRisk(a, b), l2, True, tol, 100)
        value = WeightedRisk(a, b).value_and_gradient(rows.margins(found.coef[None], np.array([found.intercept])))[0]
        excess = value + l2 * found.coef @ found.coef - best
        assert -1e-12 <= excess <= found.gap <= tol


def test_dual_ascent_hands_over_when_it_is_slow(monkeypatch):
    fields, a, b = big_problem()
    rows = SparseRows.compact(fields)
    plain = LinearModel(l2=1e-4, tol=1e-12).fit(PlainRows(fields.to_csr()), WeightedRisk(a, b))
    monkeypatch.setattr(dual, "_TOO_SLOW", 0.0)
    handed = LinearModel(l2=1e-4, tol=1e-12).fit(rows, WeightedRisk(a, b))
    assert_allclose(handed.objective_, plain.objective_, rtol=1e-9)
    assert np.isnan(handed.gap_)
