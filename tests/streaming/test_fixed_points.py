"""Each method's fixed point is the true rate, with exact auxiliary models; the papers' weights drift where they should."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from belated import LinearModel, Stream
from belated.risks.weighted import WeightedRisk
from belated.streaming.methods import resolve_stream_method
from belated.streaming.methods.double_negatives import DDFM
from belated.streaming.methods.elapsed_sampling import ESDFM
from belated.streaming.methods.fake_negatives import FNW
from belated.streaming.methods.label_correction import DEFUSE
from belated.streaming.methods.real_negatives import DEFER

WINDOW, HORIZON = 2.0, 20.0
P = np.array([0.05, 0.2, 0.5])  # by group of rows
MEAN = np.array([1.0, 5.0, 12.0])  # delay of those that turn positive
WEIGHTED = [FNW(), ESDFM(), DEFER(), DEFUSE(0.0), DEFUSE(0.5), DEFUSE(1.0), DDFM()]


@pytest.fixture(scope="module")
def rows():
    """Rows of three groups, with how likely each is to be positive within the window and the horizon."""
    rng = np.random.default_rng(0)
    n = 300_000
    group = rng.integers(0, 3, n)
    turns = rng.uniform(size=n) < P[group]
    delay = rng.exponential(MEAN[group])
    # The shares of these very rows, so that chance plays no part.
    by_window, by_end = (np.bincount(group, turns & (delay <= age)) / np.bincount(group) for age in (WINDOW, HORIZON))
    return group, np.sort(rng.uniform(0, 1000.0, n)), turns, delay, by_window, by_end


def records_of(method, rows):
    group, time, turns, delay, _, _ = rows
    stream = Stream({"it": method}, window=WINDOW, horizon=HORIZON)
    stream.arrive(np.arange(len(time)), group[:, None].astype(float), time)
    stream.outcome(np.flatnonzero(turns), (time + delay)[turns])
    stream.advance(2000.0)
    found = stream.records("it")
    return found[~found.is_mature]


def fixed_point(method, records, q, z, encode, rounds=60):
    """Fit the weighted records, weigh them by what was fitted, and again, until nothing changes."""
    group = records.X[:, 0].astype(int)
    design = encode[group]
    f = np.full(3, 0.3)
    for _ in range(rounds):
        costs = method.costs(records.label, records.kind, f[group], q[group], z[group])
        model = LinearModel(l2=0.0, tol=1e-10)
        # The cost is the same for all records of a group and a label: one row each.
        a, b = (np.bincount(group, part, 3) / len(group) for part in (costs.a, costs.b))
        model.fit(model.encode(encode, np.ones(3)), WeightedRisk(a, b))
        before, f = f, expit(model.margins(encode)[:, 0])
        if np.abs(f - before).max() < 1e-9:
            break
    assert design.shape[1] == encode.shape[1]
    return f


@pytest.mark.parametrize("method", WEIGHTED, ids=str)
def test_the_fixed_point_is_the_rate(method, rows):
    _, _, _, _, by_window, by_end = rows
    q, z = by_end - by_window, (1 - by_end) / (1 - by_window)
    found = fixed_point(method, records_of(method, rows), q, z, np.eye(3))
    assert_allclose(found, by_end, rtol=0.01)


# Weights of DEFER and DDFM follow the model's own prediction, and where that is wrong so are they: see the next test.
@pytest.mark.parametrize("method", [m for m in WEIGHTED if not isinstance(m, DEFER | DDFM)], ids=str)
def test_a_model_that_cannot_fit_everything_ends_where_final_labels_would_take_it(method, rows):
    """With one intercept for all groups, or one slope: the minimum of the ideal risk, not the rate of each group."""
    _, _, _, _, by_window, by_end = rows
    q, z = by_end - by_window, (1 - by_end) / (1 - by_window)
    line = np.array([[0.0], [1.0], [0.2]])
    shares = np.bincount(rows[0]) / len(rows[0])
    wanted = ideal_fit(line, shares, by_end)
    assert np.abs(wanted - by_end).max() > 0.05
    found = fixed_point(method, records_of(method, rows), q, z, line)
    assert_allclose(found, wanted, rtol=0.02 if isinstance(method, FNW) else 0.01)


@pytest.mark.parametrize("method", [DEFER(), DDFM()], ids=str)
def test_weights_that_follow_a_wrong_prediction_go_astray(method, rows):
    _, _, _, _, by_window, by_end = rows
    q, z = by_end - by_window, (1 - by_end) / (1 - by_window)
    shares = np.bincount(rows[0]) / len(rows[0])
    level = fixed_point(method, records_of(method, rows), q, z, np.zeros((3, 1)))[0]
    assert abs(level / (shares @ by_end) - 1) > 0.05


@pytest.mark.parametrize("method", [ESDFM("paper"), DEFUSE(weights="paper")], ids=str)
def test_the_papers_weights_are_drawn_towards_rows_that_count_more(method, rows):
    """Right for each group by itself; with one line for all they minimise another risk, in which a row counts 1 + q times."""
    _, _, _, _, by_window, by_end = rows
    q, z = by_end - by_window, (1 - by_end) / (1 - by_window)
    records = records_of(method, rows)
    assert_allclose(fixed_point(method, records, q, z, np.eye(3)), by_end, rtol=0.01)
    line, shares = np.array([[0.0], [1.0], [0.2]]), np.bincount(rows[0]) / len(rows[0])
    plain, drawn = (ideal_fit(line, factor * shares, by_end) for factor in (1.0, 1.0 + q))
    found = fixed_point(method, records, q, z, line)
    assert_allclose(found, drawn, rtol=0.01)
    assert np.abs(found / plain - 1).max() > 0.05


def test_the_papers_weights_of_fnw_are_right_for_each_group(rows):
    found = fixed_point(FNW("paper"), records_of(FNW("paper"), rows), np.zeros(3), np.ones(3), np.eye(3))
    assert_allclose(found, rows[-1], rtol=0.01)


def ideal_fit(line, shares, rate):
    """What a model of one line makes of final labels."""
    model = LinearModel(l2=0.0, tol=1e-10)
    model.fit(model.encode(line, np.ones(3)), WeightedRisk(shares * rate, shares * (1 - rate)))
    return expit(model.margins(line)[:, 0])


def test_fnc_serves_the_rate_and_never_more_than_one(rows):
    method = resolve_stream_method("fnc")
    records = records_of(method, rows)
    share = np.array([records.label[records.X[:, 0] == k].mean() for k in range(3)])
    margins = np.log(share / (1 - share))[:, None]
    assert_allclose(method.probability(margins), rows[-1], rtol=1e-9)
    assert 0.99999 < method.probability(np.array([[9.0]]))[0] < 1.0


def test_the_hazards_of_each_interval_multiply_to_the_rate(rows):
    method = resolve_stream_method("hazard-heads")
    records = records_of(method, rows)
    margins = np.empty((3, 6))
    for k in range(3):
        for head in range(6):
            share = records.label[(records.X[:, 0] == k) & (records.kind == head)].mean()
            margins[k, head] = np.log(share / (1 - share))
    assert_allclose(method.probability(margins), rows[-1], rtol=1e-9)


def test_the_slope_of_fixed_ages_is_that_of_their_cost():
    from belated.streaming.online_kernels import _slope

    for a, b, c in ((1.0, 0.0, 0.3), (0.0, 1.0, 0.3), (0.0, 1.0, 1.0), (0.4, 1.2, 0.9)):
        for g in (-3.0, 0.1, 2.5):
            cost = lambda m: a * np.log1p(np.exp(-m)) - b * np.log(1 - c * expit(m))  # noqa: B023, E731
            assert_allclose(_slope(g, a, b, c), (cost(g + 1e-5) - cost(g - 1e-5)) / 2e-5, rtol=1e-6, atol=1e-9)
