"""A fit of rows in partitions is the fit of the same rows together, for every method."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from partitions import cut, log_in_parts
from scipy import sparse

from belated import (
    BoostingModel,
    DelayedFeedbackClassifier,
    EventLog,
    FieldMatrix,
    LinearModel,
    NetworkModel,
    TableEncoder,
    TrainedModel,
    backtest,
    diagnose,
    ingest_parquet,
    load,
    train,
)
from belated.cluster.base import HereCluster
from belated.datasets import simulate_campaigns
from belated.methods import METHODS
from belated.models import solver_checkpoints
from belated.models.cluster_rows import ClusterObjective
from belated.models.linear_objective import LinearObjective

COLUMNS = {"arrival": "click_time", "outcome": "conversion_time", "until": "2024-03-01"}
ASK = {"as_of": "2024-02-10", "horizon": "14d"}


@pytest.fixture(scope="module")
def table():
    return simulate_campaigns(5000)


@pytest.fixture(scope="module")
def here(table):
    return EventLog.from_frame(table, **COLUMNS)


@pytest.fixture(scope="module")
def parts(table):
    return log_in_parts(cut(table, 1, 1, 2500), **COLUMNS)  # one row, none, many


def probabilities(log, X, method, **model):
    clf = DelayedFeedbackClassifier(method, window=7.0, model=LinearModel(**model)).fit_snapshot(log.snapshot(**ASK))
    return clf.predict_proba(X)[:, 1]


@pytest.mark.parametrize("method", METHODS)
def test_every_method(method, here, parts):
    p, q = (probabilities(log, here.frame, method, l2=1e-4) for log in (here, parts))
    # Weibull's likelihood is so flat that rounding alone moves its minimum by as much.
    assert_allclose(p, q, atol=3e-5 if method == "dfm-weibull" else 1e-5)


@pytest.mark.parametrize(
    "method", sorted(set(METHODS) - {"dfm", "nodef", "hazard", "nndf"} - {m for m in METHODS if m.startswith("dfm")})
)
def test_trees(method, here, parts):
    """Of one worker with all rows they are the local ones, up to rounding in sums of gradients."""
    clf = DelayedFeedbackClassifier(method, window=7.0, model=BoostingModel(rounds=20, min_data_in_leaf=50))
    p, q = (clf.fit_snapshot(log.snapshot(**ASK)).predict_proba(here.frame)[:, 1] for log in (here, parts))
    assert_allclose(p, q, atol=1e-6)


def test_a_backtest_of_trees(here, parts):
    ask = {
        "horizon": "10d",
        "cutoffs": 2,
        "methods": ["tw", "stc"],
        "progress": False,
        "model": BoostingModel(rounds=15),
    }
    one, two = backtest(here, n_jobs=1, **ask), backtest(parts, **ask)
    assert one.recommend().why == two.recommend().why


LINEAR, TREES = LinearModel(l2=1e-4), BoostingModel(rounds=10, min_data_in_leaf=50)


@pytest.mark.parametrize(
    ("method", "model"),
    [*((method, LINEAR) for method in ("convdf", "fsiw", "dfm-piecewise", "person-period")), ("tw", TREES)],
)
def test_sample_weights(method, model, here, parts):
    """A column, and ages: rows of weight 0 are no rows."""
    clf = DelayedFeedbackClassifier(method, window=7.0, model=model)
    found = []
    for log in (here, parts):
        snap = log.snapshot(**ASK)
        pages = np.asarray(snap.X["pages_viewed"]) if log is here else snap.X["pages_viewed"]
        weight = np.where(pages > 8, 0.0, np.exp(-snap.elapsed / 20.0))
        found.append(clf.fit_snapshot(snap, sample_weight=weight).predict_proba(here.frame)[:, 1])
    assert_allclose(*found, atol=1e-5)
    assert abs(found[0] - clf.fit_snapshot(here.snapshot(**ASK)).predict_proba(here.frame)[:, 1]).max() > 1e-3


def test_sample_weights_that_are_none(here, parts):
    snap, other, clf = (
        parts.snapshot(**ASK),
        parts.snapshot("2024-02-05", horizon="14d"),
        DelayedFeedbackClassifier("bl"),
    )
    for weight, message in (
        (np.ones(len(snap.y)), "must be an array of the same snapshot"),
        (other.elapsed, "where there are .* rows"),
        (snap.elapsed - 1.0, r"sample_weight: [\d,]+ rows not finite or negative, one of them -"),
        (np.zeros_like(snap.elapsed), "every row of class 0 has sample_weight 0"),
    ):
        with pytest.raises(ValueError, match=message):
            clf.fit_snapshot(snap, sample_weight=weight)
    with pytest.raises(ValueError, match="no column 'nothing': it has campaign"):
        snap.X["nothing"]
    with pytest.raises(ValueError, match="column 'device' holds large_string, and no numbers"):
        snap.X["device"].sum()


@pytest.mark.parametrize("method", ["tw", "dfm-piecewise", "fsiw"])
def test_l2_is_chosen_alike(method, here, parts):
    p, q = (probabilities(log, here.frame, method, l2=None) for log in (here, parts))
    assert_allclose(p, q, atol=1e-5)


@pytest.mark.parametrize("method", ["bl", "nndf", "hazard", "ulc", "person-period"])
def test_hashed_fields(method, table, here):
    far = log_in_parts(cut(table, 1200, 1200), hash_columns=2**16, **COLUMNS)
    fields = far.frame.encoder.transform(here.frame)
    assert isinstance(fields, FieldMatrix)
    local = EventLog(fields, *here.times, here.clock, here.zoned, here.until)
    # Hazards of rare values are flat where l2 is small: at 1e-4 solvers that both reach 1e-11 of the minimum differ by 1.1e-5.
    clf, other = (
        DelayedFeedbackClassifier(method, window=7.0, model=LinearModel(l2=1e-3, tol=1e-12)).fit_snapshot(
            log.snapshot(**ASK)
        )
        for log in (far, local)
    )
    assert_allclose(clf.predict_proba(fields), other.predict_proba(fields), atol=1e-5)
    assert_allclose(clf.predict_proba(here.frame), other.predict_proba(fields), atol=1e-5)


@pytest.mark.parametrize("method", ["tw", "nndf", "hazard", "dfm-piecewise", "dfm-weibull"])
@pytest.mark.parametrize("hash_columns", [None, 2**16])
def test_the_objective_is_the_local_one(method, hash_columns, table, here, monkeypatch):
    """Value and gradient, anywhere."""
    far = log_in_parts(cut(table, 1200, 1200), hash_columns=hash_columns, **COLUMNS)
    local = here
    if hash_columns:
        fields = far.frame.encoder.transform(here.frame)
        local = EventLog(fields, *here.times, here.clock, here.zoned, here.until)
    found, solve = [], {kind: kind.solve for kind in (LinearObjective, ClusterObjective)}
    for kind in solve:
        monkeypatch.setattr(kind, "solve", lambda self, *args: found.append(self) or solve[type(self)](self, *args))
    for log in (local, far):
        DelayedFeedbackClassifier(method, window=7.0, model=LinearModel(l2=1e-3)).fit_snapshot(log.snapshot(**ASK))
    one, two = found[0], found[len(found) // 2]
    assert type(one) is not type(two)
    rng = np.random.default_rng(0)
    for theta in (one.start(), one.start() + rng.normal(0, 0.3, len(one.start()))):
        (value, gradient), (value_far, gradient_far) = one.value_and_gradient(theta), two.value_and_gradient(theta)
        assert_allclose(value_far, value, rtol=1e-12)
        # Of delays to the second, what a cell's two ends add to the gradient is large and cancels, up to rounding.
        assert_allclose(gradient_far, gradient, rtol=1e-9, atol=5e-9)


def test_hashed_as_ingested(table, tmp_path):
    """Fractions are numbers, whole numbers are categories."""
    table = table.append_column("price", pa.array(np.random.default_rng(0).uniform(1, 9, len(table))))
    pq.write_table(table, tmp_path / "clicks.parquet")
    asked = {"arrival": "click_time", "outcome": "conversion_time"}
    ingest_parquet(tmp_path / "clicks.parquet", tmp_path / "clicks.log", n_columns=2**16, **asked)
    far = log_in_parts(cut(table, 2000), hash_columns=2**16, **asked)
    assert_array_equal(far.collect().frame.indices, EventLog.open(tmp_path / "clicks.log").frame.indices)


def test_numbers_far_from_zero_and_constants(table):
    """Columns that a solver must centre, also where a partition alone would not."""
    rng = np.random.default_rng(0)
    table = table.append_column("year", pa.array(2024.0 + rng.normal(0, 0.5, len(table))))
    table = table.append_column("same", pa.array(np.full(len(table), 7.0)))
    X, found = EventLog.from_frame(table, **COLUMNS).frame, []
    for log in (EventLog.from_frame(table, **COLUMNS), log_in_parts(cut(table, 2000), **COLUMNS)):
        found.append(probabilities(log, X, "tw", l2=1e-4, encoder=TableEncoder(numbers="standardise")))
    assert_allclose(*found, atol=1e-5)


def test_constants_in_wide_tables_are_left_out(table):
    rng = np.random.default_rng(0)
    many = pa.array([f"k{k}" for k in rng.integers(0, 1500, len(table))])
    table = table.append_column("many", many).append_column("same", pa.array(["x"] * len(table)))
    found = []
    for log in (EventLog.from_frame(table, **COLUMNS), log_in_parts(cut(table, 2000), **COLUMNS)):
        model = LinearModel(l2=1e-3, tol=1e-11, encoder=TableEncoder(max_categories=2000))
        found.append(DelayedFeedbackClassifier("tw", window=7.0, model=model).fit_snapshot(log.snapshot(**ASK)))
    assert found[0].coef_.shape[1] > 1000
    one, two = (np.asarray(sparse.csr_array(clf.coef_).todense()) for clf in found)
    assert_allclose(one, two, atol=1e-4)
    (place,) = [k for k, name in enumerate(found[1].get_feature_names_out()) if name == "same=x"]
    assert two[0, place] == 0.0


def test_the_method_is_chosen_alike(here, parts):
    found = [
        DelayedFeedbackClassifier("auto", window=7.0, model=LinearModel(l2=1e-4)).fit_snapshot(log.snapshot(**ASK))
        for log in (here, parts)
    ]
    assert type(found[0].method_) is type(found[1].method_)
    assert found[0].selection_.keys() == found[1].selection_.keys()
    for name, loss in found[0].selection_.items():
        assert loss == found[1].selection_[name] if isinstance(loss, str) else True
        assert_allclose(loss, found[1].selection_[name], rtol=1e-4)


def test_a_backtest_is_the_local_one(here, parts, tmp_path, caplog):
    ask = {"horizon": "10d", "cutoffs": 2, "methods": ["tw", "fsiw"], "progress": False, "group": "device"}
    one, two = backtest(here, n_jobs=1, **ask), backtest(parts, cache=tmp_path, **ask)
    assert one.settings == two.settings
    for mine, theirs in zip(one.cutoffs, two.cutoffs, strict=True):
        assert mine.rows == theirs.rows and mine.values == theirs.values
        order = [np.argsort(cutoff.days, kind="stable") for cutoff in (mine, theirs)]
        assert (mine.group[order[0]] == theirs.group[order[1]]).all()
        for name in mine.p:
            assert_allclose(mine.p[name][order[0]], theirs.p[name][order[1]], atol=1e-5)
    assert one.recommend().why == two.recommend().why
    files = sorted(tmp_path.iterdir())
    with caplog.at_level("WARNING", "belated"):  # of what cannot be read, and is fitted again
        again = backtest(parts, cache=tmp_path, **ask)
    assert files and sorted(tmp_path.iterdir()) == files and not caplog.messages
    assert_allclose(again.cutoffs[0].p["tw"], two.cutoffs[0].p["tw"])


def test_a_sample_can_be_brought_here(here, parts):
    some = parts.sample(0.2)
    assert 0.1 * len(here) < len(some) < 0.3 * len(here)
    local = some.collect()
    assert not local.on_cluster and len(local) == len(some) and local.features == here.features
    whole = parts.collect()
    assert [part.tolist() for part in whole.times] == [part.tolist() for part in here.times]
    assert whole.frame.to_pydict() == pa.table(here.frame).to_pydict()


def test_the_fitted_model_is_an_ordinary_one(here, parts, tmp_path):
    clf = DelayedFeedbackClassifier(model=LinearModel(l2=1e-4)).fit_snapshot(parts.snapshot(**ASK))
    clf.save(tmp_path / "m.skops")
    assert_allclose(load(tmp_path / "m.skops").predict_proba(here.frame), clf.predict_proba(here.frame))
    assert "campaign" in clf.feature_names_in_ and len(clf.get_feature_names_out()) == clf.coef_.shape[1]


@pytest.mark.parametrize("method", ["nndf", "dfm-piecewise", "fsiw"])
def test_a_fit_that_was_killed_goes_on(method, parts, here, tmp_path, monkeypatch):
    monkeypatch.setattr(solver_checkpoints, "_BETWEEN", 0.0)
    path, seen, evaluate = tmp_path / "fit", [], ClusterObjective.value_and_gradient
    whole = probabilities(parts, here.frame, method, l2=1e-4)

    def dies(self, theta):
        seen.append(0)
        if len(seen) == limit:
            raise KeyboardInterrupt
        return evaluate(self, theta)

    monkeypatch.setattr(ClusterObjective, "value_and_gradient", dies)
    limit = np.inf
    probabilities(parts, here.frame, method, l2=1e-4)
    every, limit = len(seen), int(0.8 * len(seen))
    seen.clear()
    with pytest.raises(KeyboardInterrupt):
        probabilities(parts, here.frame, method, l2=1e-4, checkpoint=path)
    assert list(tmp_path.iterdir())
    limit = np.inf
    seen.clear()
    assert_allclose(probabilities(parts, here.frame, method, l2=1e-4, checkpoint=path), whole, atol=1e-5)
    assert len(seen) < 0.75 * every and not list(tmp_path.iterdir())


_KILLS_ITSELF = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from test_fits_in_parts import *
solver_checkpoints._BETWEEN = 0.0
seen, evaluate = [], ClusterObjective.value_and_gradient
def dies(self, theta):
    seen.append(0)
    if len(seen) == {limit}:
        os.kill(os.getpid(), signal.SIGKILL)
    return evaluate(self, theta)
ClusterObjective.value_and_gradient = dies
table = simulate_campaigns(5000)
parts, here = log_in_parts(cut(table, 1, 1, 2500), **COLUMNS), EventLog.from_frame(table, **COLUMNS)
probabilities(parts, here.frame, "dfm-piecewise", l2=1e-4, checkpoint={path!r})
"""


def test_a_driver_that_was_killed_goes_on(parts, here, tmp_path, monkeypatch):
    """By SIGKILL, in a process of its own."""
    whole, path = probabilities(parts, here.frame, "dfm-piecewise", l2=1e-4), tmp_path / "fit"
    tests = Path(__file__).parent
    program = _KILLS_ITSELF.format(tests=str(tests), limit=75, path=str(path))
    paths = os.pathsep.join([str(tests), str(tests.parent)])
    ended = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert ended.returncode == -signal.SIGKILL and list(tmp_path.iterdir())
    seen, evaluate = [], ClusterObjective.value_and_gradient
    monkeypatch.setattr(
        ClusterObjective, "value_and_gradient", lambda self, theta: seen.append(0) or evaluate(self, theta)
    )
    again = probabilities(parts, here.frame, "dfm-piecewise", l2=1e-4, checkpoint=path)
    assert_allclose(again, whole, atol=1e-5)
    resumed = len(seen)
    seen.clear()
    probabilities(parts, here.frame, "dfm-piecewise", l2=1e-4)
    assert resumed < 0.75 * len(seen) and not list(tmp_path.iterdir())


def test_nothing_is_left_behind(table):
    far = log_in_parts(cut(table, 2000), **COLUMNS)
    before = [sorted(part.kept) for part in far.times[0].cluster.parts]
    for method in ("fsiw", "soft-labels"):
        DelayedFeedbackClassifier(method, window=7.0, model=LinearModel(l2=1e-4)).fit_snapshot(far.snapshot(**ASK))
    gc.collect()
    len(far.times[0] + 1)
    assert [sorted(part.kept) for part in far.times[0].cluster.parts] == before


def test_snapshots_are_those_of_the_whole(here, parts):
    for ask in (ASK, {"as_of": "2024-01-20", "lookback": "5d"}):
        one, two = here.snapshot(**ask), parts.snapshot(**ask)
        assert len(one) == len(two) and repr(one) == repr(two)
        for name in ("y", "elapsed", "delay"):
            assert_allclose(getattr(two, name).collect(), getattr(one, name))
    one, two = (log.matured("2024-01-10", "2024-01-12", "14d") for log in (here, parts))
    assert_allclose(two.y.collect(), one.y)


def test_complaints_name_the_partition(table):
    times = table["click_time"].to_pylist()
    times[3000] = None
    bad = table.set_column(table.column_names.index("click_time"), "click_time", pa.array(times))
    with pytest.raises(ValueError, match=r"partition 1: column 'click_time': 1 row is missing.*first at row 1000"):
        log_in_parts(cut(bad, 2000), **COLUMNS)
    with pytest.raises(ValueError, match="until='2024-01-02' is before the latest time"):
        log_in_parts(cut(table, 2000), **{**COLUMNS, "until": "2024-01-02"})
    one = table.set_column(0, table.column_names[0], table.column(0))
    text = pa.array([str(value) + "+00:00" for value in table["click_time"].to_pylist()])
    zoned = one.set_column(one.column_names.index("click_time"), "click_time", text)
    zoned = zoned.set_column(zoned.column_names.index("conversion_time"), "conversion_time", pa.nulls(len(table)))
    with pytest.raises(ValueError, match="partitions do not agree on what their times are"):
        log_in_parts([table, zoned], **COLUMNS)


def test_what_a_cluster_does_not_do_yet(parts):
    snap = parts.snapshot(**ASK)
    with pytest.raises(ValueError, match=r"BoostingModel on a cluster needs rounds=.*sample\(0.1\)"):
        DelayedFeedbackClassifier(model=BoostingModel()).fit_snapshot(snap)
    with pytest.raises(ValueError, match=r"NetworkModel\(\) cannot be fitted on a cluster"):
        DelayedFeedbackClassifier(model=NetworkModel()).fit_snapshot(snap)
    for method in ("dfm-piecewise", "hazard", "nndf"):
        with pytest.raises(ValueError, match=r"sums over rows alone.*use LinearModel"):
            DelayedFeedbackClassifier(method, model=BoostingModel(rounds=3)).fit_snapshot(snap)


def test_partitions_that_no_worker_could_hold_are_refused(table, monkeypatch):
    monkeypatch.setattr(HereCluster, "worker_memory", lambda self: 100_000)
    with pytest.raises(ValueError, match=r"partition 1 has .* GiB, and to work on it takes about .* a worker may use"):
        log_in_parts(cut(table, 1000), **COLUMNS)
    assert len(log_in_parts(cut(table, *range(20, 5000, 20)), **COLUMNS)) == 5000


def test_threads_take_turns(here, parts):
    """Two fits of one log at once."""
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda method: probabilities(parts, here.frame, method), ("bl", "tw", "bl", "tw")))
    for method, p in zip(("bl", "tw", "bl", "tw"), found, strict=True):
        assert_allclose(p, probabilities(here, here.frame, method), atol=1e-5)


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_that_are_numbers(unit):
    """Read alike in all partitions, though each has another first time; a partition may have no outcome."""
    rng = np.random.default_rng(0)
    at = np.sort(rng.integers(0, 30 * 86400, 300)) + 1_700_000_000
    came = np.where((rng.random(300) < 0.3) & (np.arange(300) > 100), at + 86400.0, np.nan)
    scale = 1 if unit == "s" else 1000
    table = pa.table(
        {"x": rng.choice(["a", "b"], 300), "at": at * scale, "came": pa.array(came * scale, from_pandas=True)}
    )
    ask = {"arrival": "at", "outcome": "came"}
    here, there = EventLog.from_frame(table, **ask), log_in_parts(cut(table, 100, 200), **ask)
    assert repr(there) == repr(here) and sorted(there.notes) == sorted(here.notes) and len(here.notes) == 2
    mixed = [table.slice(0, 150), table.slice(150).set_column(1, "at", pa.array(at[150:] * 1000 // scale))]
    with pytest.raises(ValueError, match=r"partition 1: |do not agree on what their times are"):
        log_in_parts(mixed, **ask)


def test_training_is_the_local_one(here, parts, tmp_path):
    found = [train(log, horizon="14d", method="tw", window="7d", l2=1e-4) for log in (here, parts)]
    assert found[1].features == found[0].features
    assert found[1].about["mean_prediction"] == pytest.approx(found[0].about["mean_prediction"], abs=1e-6)
    found[1].save(tmp_path / "model.skops")
    again = TrainedModel.load(tmp_path / "model.skops")
    assert_allclose(again.predict(here.frame), found[0].predict(here.frame), atol=1e-5)
    some = parts.without_features("device")
    assert some.features == here.without_features("device").features
    with pytest.raises(ValueError, match="no feature 'nothing'"):
        parts.without_features("nothing")
    with pytest.raises(ValueError, match=r"wants its rows here: diagnose\(log.sample"):
        diagnose(parts, horizon="14d")


def test_a_log_that_was_closed_says_so(table):
    log = log_in_parts(cut(table, 1000), **COLUMNS)
    log.close()
    with pytest.raises(ValueError, match="this log was closed"):
        log.snapshot(**ASK)


def test_what_is_bad_in_a_partition_is_said_of_it(table):
    price = np.ones(len(table))
    price[2600] = np.inf
    log = log_in_parts(cut(table.append_column("price", pa.array(price)), 1000, 2500), **COLUMNS)
    with pytest.raises(ValueError, match=r"partition 2: .*column 'price': 1 row is infinite"):
        DelayedFeedbackClassifier("bl").fit_snapshot(log.snapshot(**ASK))


def test_categories_that_are_written_as_numbers_stay_categories(table):
    codes = pd.Series(np.arange(len(table)) % 5).astype("category")
    frame = table.to_pandas().assign(code=codes)
    log = log_in_parts([frame.iloc[:2000].reset_index(drop=True), frame.iloc[2000:].reset_index(drop=True)], **COLUMNS)
    here = EventLog.from_frame(frame, **COLUMNS)
    p, q, r = (probabilities(one, here.frame, "bl", l2=1e-4) for one in (here, log, log.collect()))
    assert_allclose(p, q, atol=1e-5)
    assert_allclose(p, r, atol=1e-5)
