"""Rows that have waited: what is still to come of them, when, and that all of it agrees with itself."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from numpy.testing import assert_allclose
from simulate import reveal, simulate
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from belated import DelayedFeedbackClassifier, EventLog, FieldMatrix, LinearModel, OnlineClassifier, SoftLabels, load
from belated.datasets import simulate_campaigns
from belated.methods import METHODS
from belated.training import train

AGES = [0.5, 1.0, 2.0, 4.0]
# Of delays; each takes the law where it has one, and else learns it from the positives.
OWN_LAW = {"dfm", "dfm-weibull", "dfm-piecewise", "dfm-kernel", "hazard"}


def fitted(data, method="dfm-piecewise", horizon=5.0, **more):
    method = SoftLabels(l2=1e-3) if method == "soft-labels" else method
    clf = DelayedFeedbackClassifier(method, horizon=horizon, model=LinearModel(l2=1e-5), **more)
    return clf.fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)


@pytest.fixture(scope="module")
def data():
    return simulate(seed=3, n=6000)


@pytest.mark.parametrize("method", METHODS)
def test_all_of_it_agrees(method, data, tmp_path):
    clf = fitted(data, method)
    X, n = data.X[:500], 500
    p, by = clf.predict_proba(X)[:, 1], clf.predict_incidence(X, [0, *AGES, 5.0, 9.0])
    assert clf.delays_from == ("method" if method in OWN_LAW else "features")
    assert by.shape == (n, 7) and (np.diff(by, axis=1) >= -1e-12).all()
    assert_allclose(by[:, 0], 0.0, atol=0.05)
    assert_allclose(by[:, 5], p, rtol=1e-9)
    assert_allclose(by[:, 6], p, rtol=1e-9)
    for k, age in enumerate(AGES):
        # Either it has come by then, or it comes later: the mixture of both is what was predicted at arrival.
        later = clf.predict_proba(X, elapsed=np.full(n, age))
        assert_allclose(later.sum(axis=1), 1.0)
        assert_allclose(by[:, k + 1] + (1 - by[:, k + 1]) * later[:, 1], p, rtol=1e-9)
    # A quantile of the delay is the age by which that share of the positives has come.
    delays = clf.predict_delay(X, [0.25, 0.75])
    assert (delays[:, 0] <= delays[:, 1]).all() and (delays <= 5.0 + 1e-9).all()
    for k, share in enumerate((0.25, 0.75)):
        reached = [clf.predict_incidence(X[i : i + 1], [delays[i, k]])[0, 0] / p[i] for i in range(20)]
        assert_allclose(reached, share, atol=1e-6)
    expected = clf.expected_label(X, data.y[:n], data.elapsed[:n])
    assert (expected[data.y[:n] == 1] == 1).all()
    open_rows = data.y[:n] == 0
    assert_allclose(expected[open_rows], clf.predict_proba(X, elapsed=data.elapsed[:n])[open_rows, 1])
    clf.save(tmp_path / "m.skops")
    again = load(tmp_path / "m.skops")
    assert_allclose(again.predict_incidence(X, AGES), clf.predict_incidence(X, AGES), rtol=1e-12)
    assert_allclose(again.predict_proba(X, elapsed=np.full(n, 1.0)), clf.predict_proba(X, elapsed=np.full(n, 1.0)))


@pytest.mark.parametrize("method", ["dfm-piecewise", "dfm-weibull", "fsiw", "tw", "dual"])
def test_open_rows_are_calibrated_at_every_age(method):
    """Simulated, with delays that depend on features: what is said of open rows is what comes of them."""
    data = simulate(seed=5, n=60_000)
    clf = fitted(data, method)
    still = clf.predict_proba(data.X, elapsed=data.elapsed)[:, 1]
    open_rows = (data.y == 0) & (data.elapsed < 5.0)
    for low, high in ((0, 0.5), (0.5, 1), (1, 2), (2, 3.5), (3.5, 5)):
        some = open_rows & (data.elapsed >= low) & (data.elapsed < high)
        came, error = data.truth[some].sum(), np.sqrt((still[some] * (1 - still[some])).sum())
        # Draws, and up to 12% for what the method's own law or window gets wrong
        assert abs(came - still[some].sum()) < 3 * error + 0.12 * came, (low, high)


def test_delays_that_differ_are_told_apart():
    """One kind of row turns positive early, the other late: a method without a law of delays learns it from the positives."""
    rng = np.random.default_rng(0)
    n = 30_000
    slow = rng.uniform(size=n) < 0.5
    truth, elapsed = rng.uniform(size=n) < 0.4, rng.uniform(0, 30, n)
    wait = np.minimum(rng.exponential(np.where(slow, 6.0, 0.5)), 10.0)
    data = reveal(slow[:, None].astype(float), truth, np.full(n, 0.4), elapsed, wait)
    clf = fitted(data, "tw", horizon=10.0)
    fast, late = clf.predict_delay(np.array([[0.0], [1.0]]), [0.5])[:, 0]
    assert 0.25 < fast < 0.45 and 3.4 < late < 4.9  # 0.35 and 4.2
    ages = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
    by = clf.predict_incidence(np.array([[0.0], [1.0]]), ages) / clf.predict_proba(np.array([[0.0], [1.0]]))[:, 1:]
    assert_allclose(by, 1 - np.exp(-ages / np.array([[0.5], [6.0]])), atol=0.05)
    open_now = clf.predict_proba(np.array([[0.0], [1.0]]), elapsed=[3.0, 3.0])[:, 1]
    assert open_now[0] < 0.08 < 0.22 < open_now[1] < 0.36  # of the fast ones next to none is left; of the slow ones .29


def test_few_positives_share_one_curve():
    data = simulate(seed=1, n=600)
    assert fitted(data, "tw").delays_from == "all rows"
    assert fitted(data, "dfm-piecewise").delays_from == "method"


def test_one_delay_alone():
    data = simulate(seed=1, n=600)
    data.delay[data.y == 1], data.elapsed[data.y == 1] = 1.5, np.maximum(data.elapsed[data.y == 1], 1.5)
    clf = fitted(data, "tw")
    p, by = clf.predict_proba(data.X)[:, 1], clf.predict_incidence(data.X, [0.0, 1.4, 1.5, 3.0])
    assert_allclose(by[:, :2], 0.0, atol=1e-9)
    assert_allclose(by[:, 2:], p[:, None].repeat(2, axis=1), rtol=1e-6)


def test_ages_that_nobody_has_reached_add_nothing():
    """A horizon longer than the history: what nobody is old enough to show is not made up."""
    data = simulate(seed=1, n=6000, history=8.0)
    clf = fitted(data, "bl", horizon=40.0)
    at_oldest, at_end = clf.predict_incidence(data.X, [8.0, 40.0]).mean(axis=0)
    assert at_oldest > 0.95 * at_end


def test_days_on_a_grid():
    """Delays by the day: at age e all that was recorded on days 0 to e has been seen."""
    data = simulate(seed=2, n=40_000)
    whole = reveal(data.X, data.truth, data.rate, np.floor(data.elapsed), np.floor(data.full_delay))
    for method in ("dfm-piecewise", "tw"):
        clf = fitted(whole, method, horizon=6.0)
        open_rows = (whole.y == 0) & (whole.elapsed < 6)
        still = clf.predict_proba(whole.X, elapsed=whole.elapsed)[:, 1]
        for day in (0, 1, 3):
            some = open_rows & (whole.elapsed == day)
            assert abs(still[some].sum() - whole.truth[some].sum()) < 3 * np.sqrt(still[some].sum()), (method, day)


def test_scikit_learn_routes_ages(data):
    sklearn.set_config(enable_metadata_routing=True)
    try:
        clf = DelayedFeedbackClassifier(horizon=5.0).set_fit_request(elapsed=True, delay=True)
        clf.set_predict_proba_request(elapsed=True)
        pipe = make_pipeline(StandardScaler(), clf).fit(data.X, data.y, elapsed=data.elapsed, delay=data.delay)
        waited = pipe.predict_proba(data.X, elapsed=data.elapsed)[:, 1]
        assert waited[data.elapsed > 4].mean() < 0.2 * pipe.predict_proba(data.X)[data.elapsed > 4, 1].mean()
        found = cross_validate(clf, data.X, data.y, params={"elapsed": data.elapsed, "delay": data.delay}, cv=2)
        assert len(found["test_score"]) == 2
    finally:
        sklearn.set_config(enable_metadata_routing=False)


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow"])
def test_tables(frame):
    data = simulate(seed=4, n=5000, frame=frame)
    for method in ("dfm-piecewise", "tw"):
        clf = fitted(data, method)
        found = clf.predict_proba(data.X, elapsed=data.elapsed)[:, 1]
        assert np.isfinite(found).all() and (found <= clf.predict_proba(data.X)[:, 1] + 1e-12).all()


@pytest.mark.parametrize("method", ["convdf", "dfm-piecewise"])
def test_hashed_fields(method):
    data = simulate(seed=4, n=8000)
    fields = FieldMatrix((data.X[:, 3:] + 2 * np.arange(3)).astype(np.int32), 6)
    clf = DelayedFeedbackClassifier(method, horizon=5.0, model=LinearModel(l2=1e-5))
    clf.fit(fields, data.y, elapsed=data.elapsed, delay=data.delay)
    by = clf.predict_incidence(fields, [1.0, 5.0])
    assert (by[:, 0] < by[:, 1]).all()


def test_a_trained_model_and_its_log(tmp_path):
    log = EventLog.from_frame(simulate_campaigns(8000), arrival="click_time", outcome="conversion_time")
    trained = train(log, horizon="14d", method="dfm-piecewise", l2=1e-4)
    rows = log.frame
    waited = trained.predict(rows, elapsed=np.full(len(log), 7.0))
    assert (waited < trained.predict(rows)).all()


@pytest.mark.parametrize("method", ["hazard-heads", "es-dfm", "dfm-stream", "vanilla", "fnw"])
def test_streams(method, tmp_path):
    rng = np.random.default_rng(0)
    n = 20_000
    X, hours = rng.normal(size=(n, 2)), np.sort(rng.uniform(0, 600, n))
    turns, delay = rng.uniform(size=n) < 0.3, np.minimum(rng.exponential(10.0, n), 48.0)
    clf = OnlineClassifier(method, horizon="48h", window=None if method in ("hazard-heads", "dfm-stream") else "12h")
    stream = clf.stream()
    stream.arrive(np.arange(n), X, 3600 * hours)
    stream.outcome(np.flatnonzero(turns), 3600 * (hours + delay)[turns])
    for hour in range(0, 601, 6):
        stream.advance(3600 * hour)
        clf.learn(stream)
    p, by = clf.predict_proba(X)[:, 1], clf.predict_incidence(X, [10 / 24, 2.0])
    assert_allclose(by[:, 1], p, rtol=1e-9)
    assert abs(by[:, 0].sum() / p.sum() - (1 - np.exp(-1))) < 0.06
    later = clf.predict_proba(X, elapsed=np.full(n, 10 / 24))[:, 1]
    assert_allclose(by[:, 0] + (1 - by[:, 0]) * later, p, rtol=1e-9)
    clf.checkpoint(tmp_path / "c", stream)
    other = OnlineClassifier(method, horizon="48h", window=clf.window)
    other.restore(tmp_path / "c", other.stream())
    assert_allclose(other.predict_incidence(X[:10], [1.0]), clf.predict_incidence(X[:10], [1.0]))


def test_bad_input(data):
    clf = fitted(data)
    with pytest.raises(ValueError, match="'elapsed': 1 row is negative, the first at row 2"):
        clf.predict_proba(data.X[:4], elapsed=[1, 2, -1, 3])
    with pytest.raises(ValueError, match="'elapsed' has shape"):
        clf.predict_proba(data.X[:4], elapsed=[1, 2])
    with pytest.raises(ValueError, match="quantiles"):
        clf.predict_delay(data.X, [1.0])
    with pytest.raises(ValueError, match="ages"):
        clf.predict_incidence(data.X, "1d")
    plain = DelayedFeedbackClassifier("bl").fit(data.X, data.y)
    assert plain.delays_from == "nothing"
    with pytest.raises(ValueError, match="nothing about delays"):
        plain.predict_proba(data.X, elapsed=data.elapsed)
    table = pa.table({f"x{k}": data.X[:, k] for k in range(data.X.shape[1])})
    with pytest.raises(ValueError, match="array"):
        clf.predict_proba(table, elapsed=data.elapsed)


def test_labels_that_are_no_labels(data):
    clf, X, elapsed = fitted(data), data.X[:6], data.elapsed[:6]
    y = data.y[:6].astype(float)
    y[:2] = 0.0, 1.0
    right = clf.expected_label(X, y, elapsed)
    for same in (y.astype(int), y == 1, pd.array(y == 1, dtype="boolean"), list(y)):
        assert_allclose(clf.expected_label(X, same, elapsed), right)
    missing = pd.array(y == 1, dtype="boolean")
    missing[3] = pd.NA
    strange = (y.astype(int).astype(str), 2 * y + 2, np.where(y == 1, "yes", "no"))
    for wrong in strange:
        with pytest.raises(ValueError, match="column 'y': 6 rows are neither 0 nor 1, the first at row 0"):
            clf.expected_label(X, wrong, elapsed)
        with pytest.raises(ValueError, match="column 'y': 6 rows are neither 0 nor 1"):
            clf.risk(X, wrong, elapsed=elapsed)
    for wrong in (np.where(np.arange(6) == 3, np.nan, y), missing):
        with pytest.raises(ValueError, match="column 'y': 1 row is neither 0 nor 1, the first at row 3"):
            clf.expected_label(X, wrong, elapsed)
    with pytest.raises(ValueError, match="y has 5 labels, but there are 6 rows"):
        clf.expected_label(X, y[:5], elapsed)
    with pytest.raises(NotFittedError):
        DelayedFeedbackClassifier().expected_label(X, y, elapsed)
    with pytest.raises(ValueError, match="'elapsed' must hold numbers or durations, got truth values"):
        clf.expected_label(X, y, elapsed > 1)
    for wrong in (None, [[0.1, 0.2]], ["0.5"], []):
        with pytest.raises(ValueError, match="must be numbers between 0 and 1"):
            clf.predict_delay(X, wrong)
