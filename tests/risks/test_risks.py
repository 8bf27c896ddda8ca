"""Every risk and loss: derivatives against finite differences, convexity, the non-negative correction."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulate import simulate
from stubs import StubLearner, flat

from belated import ConvDF, NnDF
from belated.data.labels import check_labels
from belated.methods import METHODS, resolve_method
from belated.methods.survival import Hazard
from belated.risks.losses import LOSSES, DoubleHingeLoss
from belated.risks.non_negative import NonNegativeRisk
from belated.risks.weighted import WeightedRisk


def labels_of(data, window=5.0, horizon=20.0, weight=None):
    return check_labels(data.y == 1, data.elapsed, data.delay, weight, window, horizon)


def risk_of(name, seed=0, n=60):
    data = simulate(seed=seed, n=n)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, n)
    return flat(resolve_method(name).risk(labels_of(data, weight=weight), StubLearner(n)), n)


def random_point(risk, seed, n):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, risk.n_margins)), rng.normal(-1.0, 0.5, size=risk.n_shared)


ALL = [*METHODS, ConvDF("paper"), NnDF("paper"), ConvDF(loss="squared")]


def check_derivatives(risk, margins, shared):
    _, d_margins, d_shared = risk.value_and_gradient(margins, shared)
    curvature, step = risk.curvature(margins, shared), 1e-6
    for i, k in [(i, k) for i in range(0, len(margins), 7) for k in range(risk.n_margins)]:
        shift = np.zeros_like(margins)
        shift[i, k] = step
        up, down = risk.value_and_gradient(margins + shift, shared), risk.value_and_gradient(margins - shift, shared)
        assert_allclose(d_margins[i, k], (up[0] - down[0]) / (2 * step), rtol=1e-5, atol=1e-9)
        assert_allclose(curvature[i, k], (up[1][i, k] - down[1][i, k]) / (2 * step), rtol=1e-5, atol=1e-9)
    for j in range(risk.n_shared):
        shift = np.zeros_like(shared)
        shift[j] = step
        up, down = (
            risk.value_and_gradient(margins, shared + shift)[0],
            risk.value_and_gradient(margins, shared - shift)[0],
        )
        assert_allclose(d_shared[j], (up - down) / (2 * step), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("name", ALL, ids=str)
def test_gradient_and_curvature_match_finite_differences(name):
    risk, n = risk_of(name)
    check_derivatives(risk, *random_point(risk, 2, n))


@pytest.mark.parametrize("name", [*ALL, ConvDF(loss="double_hinge"), NnDF(loss="double_hinge")], ids=str)
def test_risks_that_say_they_are_convex_are(name):
    risk, n = risk_of(name)
    if not risk.convex:
        assert str(name).startswith("dfm")
        pytest.skip("the delayed feedback model is not convex, and says so")
    for seed in range(20):
        (m0, s0), (m1, s1) = random_point(risk, seed, n), random_point(risk, seed + 100, n)
        ends = [risk.value_and_gradient(3 * m0, s0)[0], risk.value_and_gradient(3 * m1, s1)[0]]
        for t in (0.1, 0.5, 0.8):
            between = risk.value_and_gradient(3 * ((1 - t) * m0 + t * m1), (1 - t) * s0 + t * s1)[0]
            assert between <= (1 - t) * ends[0] + t * ends[1] + 1e-10


def test_a_risk_with_negative_total_weight_is_not_called_convex():
    assert not WeightedRisk(np.array([0.1]), np.array([-0.2])).convex


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_are_linear_odd(loss):
    z = np.linspace(-5, 5, 101)
    loss = LOSSES[loss]()
    assert_allclose(loss.value(z) - loss.value(-z), -z, atol=1e-12)


@pytest.mark.parametrize("loss", [*(make() for make in LOSSES.values()), DoubleHingeLoss(width=0.4)], ids=str)
def test_loss_derivatives(loss):
    z = np.linspace(-3.03, 3.07, 60)
    step = 1e-6
    assert_allclose(loss.derivative(z), (loss.value(z + step) - loss.value(z - step)) / (2 * step), atol=1e-8)
    if loss.smooth:
        assert_allclose(
            loss.curvature(z), (loss.derivative(z + step) - loss.derivative(z - step)) / (2 * step), atol=1e-8
        )


def test_rounded_double_hinge_stays_near_and_linear_odd():
    z = np.linspace(-3, 3, 601)
    exact = DoubleHingeLoss().value(z)
    assert_allclose(exact, np.maximum(-z, np.maximum(0, (1 - z) / 2)), atol=1e-12)
    for width in (0.5, 0.01):
        rounded = DoubleHingeLoss(width)
        assert np.abs(rounded.value(z) - exact).max() <= width
        assert_allclose(rounded.value(z) - rounded.value(-z), -z, atol=1e-12)


def negative_data(n=40):
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 1, n) / n
    b = np.where(np.arange(n) < 15, -a, rng.uniform(0, 0.5, n) / n)
    return a, b


def test_corrected_risk_is_the_larger_of_two():
    a, b = negative_data()
    risk, plain = NonNegativeRisk(a, b), WeightedRisk(a, b)
    positive = WeightedRisk(a, np.zeros_like(b))
    signs = set()
    for seed in range(50):
        margins = 3 * np.random.default_rng(seed).normal(size=(40, 1))
        values = [r.value_and_gradient(margins)[0] for r in (risk, plain, positive)]
        assert_allclose(values[0], max(values[1:]), rtol=1e-12)
        assert values[0] - values[2] >= -1e-15  # the negative part counts as at least 0
        signs.add(risk.negative_part(margins) > 0)
    assert signs == {True, False}


def test_ascent_climbs_out_of_a_negative_part():
    a, b = negative_data()
    risk = NonNegativeRisk(a, b, ascent=True)
    margins = np.where(np.arange(40) < 15, 5.0, -5.0)[:, None]
    assert risk.negative_part(margins) < 0
    step = margins - 0.1 * risk.value_and_gradient(margins)[1]
    assert risk.negative_part(step) > risk.negative_part(margins)


def test_extreme_margins_stay_finite():
    for name in METHODS:
        risk, n = risk_of(name)
        for size in (-500.0, 500.0):
            margins, shared = np.full((n, risk.n_margins), size), np.zeros(risk.n_shared)
            value, d_margins, d_shared = risk.value_and_gradient(margins, shared)
            assert np.isfinite(value) and np.isfinite(d_margins).all() and np.isfinite(d_shared).all(), name


@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("name", ["bl", "convdf", "dfm", "dfm-weibull", "dfm-piecewise", "dfm-kernel"])
def test_compiled_rows_equal_numpy(name, grid, monkeypatch):
    data = simulate(seed=3, n=500)
    if grid:
        data.elapsed, data.delay = np.ceil(data.elapsed), np.floor(data.delay)
    risk = resolve_method(name).risk(labels_of(data), None)
    for seed in range(3):
        margins, shared = random_point(risk, seed, n=500)
        plain = risk.value_and_gradient(3 * margins, shared)
        with monkeypatch.context() as patch:
            patch.setattr("belated.risks.compiled_costs.MANY", 0)
            compiled = risk.value_and_gradient(3 * margins, shared)
        for one, other in zip(plain, compiled, strict=True):
            assert_allclose(other, one, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("name", ["dfm", "dfm-weibull", "dfm-piecewise", "dfm-kernel", "hazard"])
def test_gradients_on_a_grid_of_delays(name):
    data = simulate(seed=4, n=80)
    data.elapsed, data.delay = np.ceil(data.elapsed), np.floor(data.delay)
    risk = resolve_method(name).risk(labels_of(data), None)
    assert risk.prepared_end is not None
    check_derivatives(risk, *random_point(risk, 5, n=80))


def test_the_start_of_a_piecewise_law_is_its_best_fit_without_features():
    rng = np.random.default_rng(0)
    elapsed, wait = rng.uniform(0, 10, 3000), rng.exponential(2.0, 3000)
    y = wait <= elapsed
    labels = check_labels(y, elapsed, np.where(y, wait, np.nan), None, None, 10.0)
    risk = Hazard(smoothing=0.0).risk(labels, None)
    level, shared = risk.start()
    _, _, gradient = risk.value_and_gradient(np.tile(level, (3000, 1)), shared)
    assert_allclose(gradient, 0.0, atol=1e-5)
    smooth = Hazard(smoothing=1e9).risk(labels, None)
    assert np.ptp(smooth.start()[1]) < 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_a_risk_is_the_sum_of_its_rows_and_some_rows_are_a_part_of_it(method):
    data = simulate(seed=3, n=400)
    labels = check_labels(data.y == 1, data.elapsed, data.delay, None, 5.0, 20.0)
    whole = resolve_method(method).build_risk(labels, StubLearner(400))
    rng, groups = np.random.default_rng(0), whole.occurrences
    count = whole.n_margins if groups is None else groups.count
    margins, shared = rng.normal(size=(400, count)), rng.normal(size=whole.n_shared)

    def value(risk):
        """In groups, of the margins of occurrences."""
        found = risk.occurrences
        at = margins if found is None else margins[found.row, found.group][:, None]
        return (risk if found is None else found.risk).value_and_gradient(at, shared)[0]

    penalty = whole.law.roughness(shared)[0] if whole.n_shared else 0.0
    costs = whole.row_costs(margins, shared)
    if not whole.non_negative:
        assert_allclose(value(whole), costs.sum() + penalty, rtol=1e-10)
    rows = rng.uniform(size=400) < 0.6
    part = whole.take(rows, 1.5)
    assert_allclose(whole.left_out(rows, whole).row_costs(margins[rows], shared), costs[rows], rtol=1e-10)
    if groups is not None:
        return  # some rows have levels of their own
    assert_allclose(part.row_costs(margins[rows], shared), 1.5 * costs[rows], rtol=1e-10)
    assert_allclose(
        part.negative_part(margins[rows]) + 1.5 * whole.take(~rows).negative_part(margins[~rows]),
        1.5 * whole.negative_part(margins),
        rtol=1e-10,
    )
    again = whole.take(np.ones(400, dtype=bool))
    assert_allclose(value(again), value(whole))
    if whole.scale is not None:
        assert_allclose(whole.take(np.ones(400, dtype=bool), 7.0).scale, whole.scale)
