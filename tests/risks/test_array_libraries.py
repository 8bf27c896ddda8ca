"""The same lines run on NumPy and on torch, and the default curvature agrees with the exact one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulate import simulate
from stubs import StubLearner, flat

from belated import ConvDF, NnDF
from belated.arrays import between, moved, namespace, safe_exp, sigmoid, softplus, sums_by
from belated.data.labels import check_labels
from belated.methods import METHODS, resolve_method
from belated.risks.base import Risk

ALL = [*METHODS, NnDF("paper"), NnDF(ascent=True), ConvDF(loss="squared"), ConvDF(loss="double_hinge")]


def make_risk(name, n=90, grid=False):
    data = simulate(seed=3, n=n)
    if grid:
        data.elapsed, data.delay = np.ceil(data.elapsed), np.floor(data.delay)
    labels = check_labels(data.y == 1, data.elapsed, data.delay, np.linspace(0.5, 2.0, n), 5.0, 20.0)
    return flat(resolve_method(name).risk(labels, StubLearner(n)), n)


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("name", ALL, ids=str)
def test_torch_gives_what_numpy_gives(name, grid):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    risk, n = make_risk(name, grid=grid)
    there = risk.moved(torch.as_tensor)
    rng = np.random.default_rng(0)
    for size in (1.0, 6.0):
        margins, shared = size * rng.normal(size=(n, risk.n_margins)), rng.normal(-1.0, 0.5, risk.n_shared)
        expected = (*risk.value_and_gradient(margins, shared), risk.curvature(margins, shared))
        tensors = torch.as_tensor(margins), torch.as_tensor(shared)
        found = (*there.value_and_gradient(*tensors), there.curvature(*tensors))
        assert isinstance(found[0], float) and all(torch.is_tensor(part) for part in found[1:])
        for one, other in zip(expected, found, strict=True):
            assert_allclose(np.asarray(other), one, rtol=1e-9, atol=1e-14)


def test_moving_a_risk_leaves_the_original_alone():
    risk, _ = make_risk("dfm-piecewise")
    doubled = risk.moved(lambda array: array if array.dtype == bool else 2 * array)
    assert_allclose(doubled.law.knots, 2 * risk.law.knots)
    assert_allclose(doubled.weight.sum(), 2 * risk.weight.sum())
    assert risk.law is not doubled.law
    assert moved("text", None) == "text"


@pytest.mark.parametrize("name", ["convdf", "dfm-weibull", "hazard", "stc"])
def test_the_default_curvature_is_near_the_exact_one(name):
    risk, _ = make_risk(name)
    margins, shared = np.random.default_rng(0).normal(size=(90, risk.n_margins)), np.full(risk.n_shared, -0.7)
    assert_allclose(Risk.curvature(risk, margins, shared), risk.curvature(margins, shared), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_functions_beyond_the_standard(name):
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    make = library.asarray
    x = np.array([-800.0, -40.0, -1.0, 0.0, 2.0, 40.0, 800.0])
    assert_allclose(np.asarray(softplus(make(x))), np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), rtol=1e-14)
    assert_allclose(np.asarray(sigmoid(make(x))), np.exp(-np.logaddexp(0.0, -x)), rtol=1e-12)
    assert np.isfinite(np.asarray(safe_exp(make(x)))).all()
    assert_allclose(np.asarray(between(make(x), -1.0, 2.0)), np.clip(x, -1.0, 2.0))
    index, values = np.array([2, 0, 2, 1, 2]), np.arange(5.0)
    first, second = sums_by(make(index), 4, make(values), make(values**2))
    assert_allclose(np.asarray(first), [1.0, 3.0, 6.0, 0.0])
    assert_allclose(np.asarray(second), [1.0, 9.0, 20.0, 0.0])
    assert name in namespace(make(x)).__name__
