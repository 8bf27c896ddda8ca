"""OnlineClassifier: it learns what a stream brings, follows a rate that drifts, and can start from a snapshot."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from belated import DelayedFeedbackClassifier, EventLog, FieldMatrix, OnlineClassifier, OnlineLinearModel, Stream
from belated.datasets import simulate_campaigns
from belated.streaming.methods import STREAM_METHODS
from belated.streaming.methods.base import Costs
from belated.streaming.methods.elapsed_sampling import ESDFM
from belated.streaming.methods.hazard_heads import HazardHeads

METHODS = list(STREAM_METHODS)


def simulate_stream(n=60_000, seed=0, hours=2000.0, rate=lambda x, t: expit(-1.0 + x), mean=20.0):
    rng = np.random.default_rng(seed)
    time = np.sort(rng.uniform(0, hours, n))
    group = rng.integers(0, 4, n)
    x = group - 1.5
    turns = rng.uniform(size=n) < rate(x, time / hours)
    delay = rng.exponential(mean, n)
    return group, time, turns, delay


def run(method, data, model=None, step=20.0, **more):
    group, time, turns, delay = data
    X = FieldMatrix(group[:, None], 4)
    clf = OnlineClassifier(
        method, model or OnlineLinearModel(learning_rate=0.1), window=7200, horizon=86400 * 5, **more
    )
    stream = clf.stream()
    stream.arrive(np.arange(len(time)), X, 3600 * time)
    stream.outcome(np.flatnonzero(turns), 3600 * (time + delay)[turns])
    for now in np.arange(0, time[-1] + step, step):
        stream.advance(3600.0 * now)
        if now:
            clf.learn(stream)
    return clf, stream


GROUPS = FieldMatrix(np.arange(4)[:, None], 4)


@pytest.mark.parametrize("method", METHODS)
def test_it_learns_the_rate(method):
    data = simulate_stream()
    clf, _ = run(method, data)
    p = clf.predict_proba(GROUPS)[:, 1]
    group, _, turns, delay = data
    final = turns & (delay <= 120.0)
    truth = np.array([final[group == k].mean() for k in range(4)])
    if method == "vanilla":
        assert (p < 0.5 * truth).all()  # labels after two hours miss most
    else:
        assert_allclose(p, truth, rtol=0.2, atol=0.02)
    again = clone(clf)
    assert not hasattr(again, "model_") and repr(again) == repr(clf)


@pytest.mark.parametrize("method", ["es-dfm", "hazard-heads", "dfm-stream", "fnw", "defuse"])
def test_a_drifting_rate_is_followed(method):
    """The rate doubles and the delays stay: what is learned at the end is far from the mean of the past."""
    data = simulate_stream(n=120_000, rate=lambda x, t: np.where(t < 0.5, 0.1, 0.4) * np.ones_like(x))
    clf, _ = run(method, data, OnlineLinearModel(learning_rate=0.3))
    p = clf.predict_proba(GROUPS)[:, 1]
    assert (p > 0.3).all()


def test_without_delays_it_is_plain_online_learning():
    group, time, turns, _ = simulate_stream(n=5000)
    clf, _ = run("vanilla", (group, time, turns, np.zeros(len(time))), batch=100)
    plain = OnlineLinearModel(learning_rate=0.1)
    plain.open(GROUPS, 1)
    seen = time + 2.0 <= np.arange(0, time[-1] + 20, 20)[-1]
    X, y = FieldMatrix(group[seen][:, None], 4), turns[seen]
    plain.learn(X, np.zeros(len(y), dtype=np.int64), Costs(y.astype(float), (~y).astype(float)))
    assert_array_equal(clf.model_.state_, plain.state_)


def test_the_compiled_pass_is_ftrl():
    """Against the rule as its paper writes it, one coordinate at a time."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.uniform(size=200) < 0.3
    model = OnlineLinearModel(learning_rate=0.2, beta=0.7, l1=0.3, l2=0.1)
    model.open(X, 1)
    model.learn(X, np.zeros(200, dtype=np.int64), Costs(y.astype(float), (~y).astype(float)))
    z, n = np.zeros(4), np.zeros(4)
    for x, label in zip(np.column_stack([X, np.ones(200)]), y, strict=True):
        w = np.where(np.abs(z) <= 0.3, 0.0, -(z - np.sign(z) * 0.3) / ((0.7 + np.sqrt(n)) / 0.2 + 0.1))
        g = (expit(w @ x) - label) * x
        z += g - (np.sqrt(n + g**2) - np.sqrt(n)) / 0.2 * w
        n += g**2
    assert_allclose(model.state_[:, 0, 0], z, rtol=1e-3, atol=1e-4)
    assert_allclose(model.state_[:, 0, 1], n, rtol=1e-4)
    fields = FieldMatrix(rng.integers(0, 40, (500, 3)), 40)
    label = rng.uniform(size=500) < 0.4
    costs, head = Costs(label.astype(float), (~label).astype(float)), np.zeros(500, dtype=np.int64)
    for rule in ("ftrl", "adagrad"):
        by_field, by_number = OnlineLinearModel(rule, 0.1), OnlineLinearModel(rule, 0.1)
        by_field.open(fields, 1)
        by_number.open(np.zeros((1, 40)), 1)
        some = np.array(
            [len(set(row)) == 3 for row in fields.indices.tolist()]
        )  # a field twice in a row is two entries
        by_field.learn(fields[some], head[some], costs.take(some))
        by_number.learn(fields[some].to_csr().toarray(), head[some], costs.take(some))
        assert_allclose(by_field.margins(fields), by_number.margins(fields.to_csr().toarray()), atol=1e-5)
        assert by_field.coef_.shape == (1, 40)


def test_more_columns_than_the_model_has_are_folded():
    fields = FieldMatrix(np.array([[3, 70], [9, 70]]), 100)
    model = OnlineLinearModel(columns=64, shared=False)
    model.open(fields, 2)
    model.learn(fields, np.array([0, 1]), Costs(np.ones(2), np.zeros(2)))
    assert model.state_.shape == (65, 2, 2)
    assert np.flatnonzero(model.coef_[0]).tolist() == [3, 6] and np.flatnonzero(model.coef_[1]).tolist() == [6, 9]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("teacher", [None, "tw", "hazard"])
def test_a_snapshot_can_start_a_stream(method, teacher):
    if teacher is not None and method not in ("hazard-heads", "defer", "fnc"):
        pytest.skip("one teacher is enough for methods that start alike")
    clicks = simulate_campaigns(20_000)
    log = EventLog.from_frame(
        clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01", features=["campaign"]
    )
    snap = log.snapshot(as_of="2024-02-10", lookback="30d", horizon="10d")
    batch = None
    if teacher is not None:
        batch = DelayedFeedbackClassifier(teacher, window=5.0).fit_snapshot(snap)
    clf = OnlineClassifier(method, OnlineLinearModel(learning_rate=0.3), window="1d", horizon="10d")
    clf.start(snap, batch, passes=3)
    wanted = (batch or DelayedFeedbackClassifier().fit_snapshot(snap)).predict_proba(snap.X)[:, 1]
    assert_allclose(clf.predict_proba(snap.X)[:, 1].mean(), wanted.mean(), rtol=0.1)
    assert np.corrcoef(clf.predict_proba(snap.X)[:, 1], wanted)[0, 1] > 0.9


def test_what_cannot_be_is_said():
    clf = OnlineClassifier("es-dfm", window="1h", horizon="1d")
    with pytest.raises(NotFittedError, match="has learned nothing yet"):
        clf.predict_proba(GROUPS)
    with pytest.raises(TypeError, match="takes the records of a Stream"):
        clf.partial_fit(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="horizon is not set"):
        OnlineClassifier().stream()
    with pytest.raises(ValueError, match="makes records of fnw"):
        clf.learn(Stream("fnw", horizon="1d"))
    with pytest.raises(ValueError, match="another window or horizon"):
        clf.learn(Stream("es-dfm", window="1h", horizon="2d"))
    with pytest.raises(ValueError, match="makes records of it"):
        clf.learn(Stream({"it": ESDFM("paper")}, window="1h", horizon="1d"))
    data = simulate_stream(n=100)
    for model, message in (
        (OnlineLinearModel("sgd"), "rule='sgd' is not known"),
        (OnlineLinearModel(learning_rate=0), "learning_rate=0 must be"),
        (OnlineLinearModel("adagrad", l1=1.0), "l1 belongs to"),
        (LinearLike(), "cannot learn from a stream"),
    ):
        with pytest.raises(ValueError, match=message):
            run("fnw", data, model)


class LinearLike:
    def get_params(self, deep=True):
        return {}


def test_a_network_learns_from_the_same_records():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from belated import NetworkModel

    assert torch is not None
    data = simulate_stream(n=30_000)
    for method in ("hazard-heads", "es-dfm", "dfm-stream"):
        clf, _ = run(method, data, NetworkModel(width=16, depth=1, learning_rate=3e-3), batch=500)
        p = clf.predict_proba(GROUPS)[:, 1]
        group, _, turns, delay = data
        truth = [(turns & (delay <= 120.0))[group == k].mean() for k in range(4)]
        assert_allclose(p, truth, rtol=0.3, atol=0.05)


def test_a_table_of_categories_is_hashed():
    import pandas as pd

    group, time, turns, delay = simulate_stream(n=8000)
    table = pd.DataFrame({"group": np.array(["a", "b", "c", "d"])[group]})
    clf = OnlineClassifier("hazard-heads", horizon=86400 * 5)
    stream = clf.stream()
    stream.arrive(np.arange(len(time)), table, 3600 * time)
    stream.outcome(np.flatnonzero(turns), 3600 * (time + delay)[turns])
    stream.advance(3600.0 * 3000)
    clf.learn(stream)
    p = clf.predict_proba(pd.DataFrame({"group": ["a", "b", "c", "d"]}))[:, 1]
    assert (np.diff(p) > 0).all()


def test_rows_of_another_kind_are_refused_before_anything_compiled_sees_them():
    def told(k, n=10):
        stream = clf.stream()
        stream.arrive(np.arange(n), np.ones((n, k)), np.arange(float(n)))
        stream.advance(5000.0)
        return stream

    clf = OnlineClassifier("final", horizon=100.0)
    clf.learn(told(2))
    with pytest.raises(ValueError, match="X is numbers of 20000 columns"):
        clf.learn(told(20_000))
    with pytest.raises(
        ValueError, match="X is a FieldMatrix of 8 columns, and the classifier has learned from numbers"
    ):
        clf.predict_proba(FieldMatrix(np.zeros((1, 2), dtype=int), 8))
    with pytest.raises(ValueError, match="NaN"):
        clf.predict_proba([[np.nan, 1.0]])
    many = OnlineClassifier(HazardHeads([1.0, 2.0]), horizon=100.0)
    stream = Stream(HazardHeads(6), horizon=100.0)
    stream.arrive(np.arange(10), np.ones((10, 2)), np.arange(10.0))
    stream.advance(5000.0)
    with pytest.raises(ValueError, match="they are of another method"):
        many.partial_fit(stream.records())


def test_low_rates_are_learned_however_long_the_stream_is():
    """In single precision the gradient of a negative is lost in the sum of all, and predictions drift upwards."""
    model, rng, n = OnlineLinearModel(), np.random.default_rng(1), 500_000
    X, head = np.zeros((n, 0)), np.zeros(n, dtype=np.int64)
    model.open(X, 1)
    for _ in range(24):
        y = (rng.uniform(size=n) < 1e-3).astype(float)
        model.learn(X, head, Costs(y, 1 - y))
    assert 0.85 < expit(model.intercept_[0]) / 1e-3 < 1.12


def test_two_classifiers_of_one_method():
    a, b = (OnlineClassifier("final", OnlineLinearModel(learning_rate=rate), horizon=100.0) for rate in (0.1, 0.5))
    stream = Stream({"slow": "final", "fast": "final"}, horizon=100.0)
    stream.arrive([1, 2], np.eye(2), [0.0, 1.0])
    stream.advance(500.0)
    with pytest.raises(ValueError, match="under several names, slow, fast: say which"):
        a.learn(stream)
    a.learn(stream, "slow")
    b.learn(stream, "fast")
    assert a.n_records_ == b.n_records_ == 2
    a.set_params(method="es-dfm", window=1.0)
    with pytest.raises(ValueError, match="the classifier has begun with"):
        a.learn(Stream("es-dfm", window=1.0, horizon=100.0))
