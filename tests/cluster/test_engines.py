"""The same on real engines: Dask with two worker processes, Spark with two executors."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path

import engines
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from belated import BoostingModel, DelayedFeedbackClassifier, EventLog, LinearModel, OutcomeWarning
from belated.cluster.base import Cluster
from belated.datasets import simulate_campaigns

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]

COLUMNS = {"arrival": "click_time", "outcome": "conversion_time", "until": "2024-03-05"}
ASK = {"as_of": "2024-02-10", "horizon": "14d"}


class OnDask:
    read = staticmethod(EventLog.from_dask)

    def __init__(self):
        self.cluster, self.client = engines.dask_client()

    def frame(self, table, folder, parts=3):
        import dask.dataframe as dd

        return dd.from_pandas(table, npartitions=parts)

    def collect(self, frame):
        return frame.compute()

    def processes(self):
        return list(self.client.run(os.getpid).values())

    def stop(self):
        self.client.close()
        self.cluster.close()


class OnSpark:
    read = staticmethod(EventLog.from_spark)

    def __init__(self):
        self.session = engines.spark_session()

    def frame(self, table, folder, parts=3):
        path = str(folder / f"{id(table)}.parquet")
        table.to_parquet(path, index=False)
        return self.session.read.parquet(path).repartition(parts)

    def collect(self, frame):
        return frame.toPandas()

    def processes(self):
        """The executors."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if "CoarseGrainedExecutorBackend" in (folder / "cmdline").read_text():
                    found.append(int(folder.name))
        return found

    def stop(self):
        self.session.stop()


@pytest.fixture(scope="module", params=[OnDask, OnSpark], ids=["dask", "spark"])
def engine(request):
    found = request.param()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def table():
    table = simulate_campaigns(3000).to_pandas()
    for name in ("click_time", "conversion_time"):
        table[name] = table[name].astype("datetime64[us]")
    return table


@pytest.fixture(scope="module")
def here(table):
    return EventLog.from_frame(table, **COLUMNS)


@pytest.fixture(scope="module")
def there(engine, table, tmp_path_factory):
    return engine.read(engine.frame(table, tmp_path_factory.mktemp("log")), **COLUMNS)


def probabilities(log, X, method, **model):
    clf = DelayedFeedbackClassifier(method, window=7.0, model=LinearModel(l2=1e-4, **model))
    return clf.fit_snapshot(log.snapshot(**ASK)).predict_proba(X)[:, 1]


@pytest.mark.parametrize("method", ["bl", "nndf", "dfm-piecewise", "fsiw", "person-period"])
def test_a_fit_is_the_local_one(method, here, there):
    assert_allclose(*(probabilities(log, here.frame, method) for log in (here, there)), atol=1e-5)


def test_sample_weights_are_arrays_of_the_snapshot(here, there):
    found = []
    for log in (here, there):
        snap = log.snapshot(**ASK)
        weight = np.where(snap.elapsed > 30.0, 0.0, np.exp(-snap.elapsed / 20.0))
        clf = DelayedFeedbackClassifier(model=LinearModel(l2=1e-4)).fit_snapshot(snap, sample_weight=weight)
        found.append(clf.predict_proba(here.frame)[:, 1])
    assert_allclose(*found, atol=1e-5)


@pytest.mark.parametrize("method", ["convdf", "fsiw", "person-period"])
def test_trees_are_the_local_ones(method, here, there):
    """While all rows fit in the sample by which numbers are cut into bins; LightGBM counts the rows of a leaf otherwise there, and draws other columns."""
    model = BoostingModel(rounds=30, num_leaves=4, min_data_in_leaf=1, feature_fraction=1.0)
    clf = DelayedFeedbackClassifier(method, window=7.0, model=model)
    p, q = (clf.fit_snapshot(log.snapshot(**ASK)).predict_proba(here.frame)[:, 1] for log in (here, there))
    assert_allclose(p, q, atol=1e-6)
    clf.set_params(model=BoostingModel(rounds=30, min_data_in_leaf=50))
    p, q = (clf.fit_snapshot(log.snapshot(**ASK)).predict_proba(here.frame)[:, 1] for log in (here, there))
    assert np.corrcoef(p, q)[0, 1] > 0.97 and abs(p.mean() - q.mean()) < 0.01


def test_trees_of_workers_whose_rows_cost_nothing(engine, table, tmp_path):
    """In a table in order of time, the newest rows are no mature ones."""
    ordered = table.sort_values("click_time", ignore_index=True)
    if isinstance(engine, OnSpark):
        path = str(tmp_path / "ordered.parquet")
        ordered.to_parquet(path, index=False)
        frame = engine.session.read.parquet(path).repartitionByRange(2, "click_time")
    else:
        frame = engine.frame(ordered, tmp_path, 2)
    far, here = engine.read(frame, **COLUMNS), EventLog.from_frame(ordered, **COLUMNS)
    clf = DelayedFeedbackClassifier("tw", window=14.0, model=BoostingModel(rounds=10, min_data_in_leaf=20))
    p, q = (clf.fit_snapshot(log.snapshot(**ASK)).predict_proba(here.frame)[:, 1] for log in (here, far))
    assert np.corrcoef(p, q)[0, 1] > 0.97 and abs(p.mean() - q.mean()) < 0.01


def test_hashed_fields(engine, table, tmp_path):
    far = engine.read(engine.frame(table, tmp_path), hash_columns=2**14, **COLUMNS)
    clf = DelayedFeedbackClassifier("tw", window=7.0, model=LinearModel(l2=1e-4, tol=1e-10))
    p = clf.fit_snapshot(far.snapshot(**ASK)).predict_proba(table)[:, 1]
    fields = far.frame.encoder.transform(table)
    here = EventLog.from_frame(table, **COLUMNS)
    local = EventLog(fields, *here.times, here.clock, here.zoned, here.until).snapshot(**ASK)
    assert_allclose(clf.fit_snapshot(local).predict_proba(fields)[:, 1], p, atol=1e-5)


def test_predictions_are_a_column_of_the_frame(engine, table, here, tmp_path):
    clf = DelayedFeedbackClassifier(model=LinearModel(l2=1e-4)).fit_snapshot(here.snapshot(**ASK))
    numbered = table.assign(row=np.arange(len(table)))
    found = clf.predict_proba(engine.frame(numbered, tmp_path))
    assert list(found.columns) == [*numbered.columns, "probability"]
    rows = engine.collect(found).sort_values("row")
    assert_allclose(rows["probability"], clf.predict_proba(here.frame)[:, 1], atol=1e-12)
    with pytest.raises(ValueError, match="'probability' already"):
        clf.predict_proba(found)


@pytest.mark.parametrize("method", ["dfm-piecewise", "tw"])
def test_rows_that_have_waited(method, engine, here, there, table, tmp_path):
    """Ages, labels and expected labels as columns of a frame on the cluster; the delays of tw are learned there."""
    clf, local = (DelayedFeedbackClassifier(method, window=7.0, model=LinearModel(l2=1e-4)) for _ in range(2))
    clf.fit_snapshot(there.snapshot(**ASK))
    local.fit_snapshot(here.snapshot(**ASK))
    known = table.assign(row=range(len(table)), age=np.arange(len(table)) % 15.0, y=0)
    frame = engine.frame(known, tmp_path)
    found = clf.predict_delay(clf.predict_incidence(clf.expected_label(frame, "y", "age"), [1, 7]), [0.5])
    rows = engine.collect(found).sort_values("row")
    waited = local.predict_proba(here.frame, elapsed=known["age"])[:, 1]
    assert_allclose(rows["expected_label"], waited, atol=1e-4)
    assert_allclose(rows[["positive_by_1", "positive_by_7"]], local.predict_incidence(here.frame, [1, 7]), atol=1e-4)
    assert_allclose(rows["delay_0.5"], local.predict_delay(here.frame)[:, 0], rtol=1e-2)
    again = engine.collect(clf.predict_proba(frame, elapsed="age")).sort_values("row")
    assert_allclose(again["probability"], waited, atol=1e-4)


def two_tables(table):
    """Arrivals and outcomes, some of them twice, too early, or of nobody."""
    table = table.assign(id=np.arange(len(table)))
    outcomes = table.loc[table["conversion_time"].notna(), ["id", "conversion_time"]]
    again = outcomes.sample(100, random_state=0).assign(
        conversion_time=lambda rows: rows["conversion_time"] + pd.Timedelta("1D")
    )
    early = outcomes.sample(5, random_state=1).assign(conversion_time=pd.Timestamp("2023-12-01"))
    nobodys = pd.DataFrame({"id": [10**6, 10**6 + 1], "conversion_time": [pd.Timestamp("2024-02-01")] * 2})
    outcomes = pd.concat([outcomes, again, early, nobodys]).sample(frac=1.0, random_state=2)
    return table.drop(columns="conversion_time"), outcomes.astype({"conversion_time": "datetime64[us]"})


def test_two_tables_are_joined_there(engine, table, tmp_path):
    arrivals, outcomes = two_tables(table)
    ask = {"key": "id", "arrival": "click_time", "outcome": "conversion_time"}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        far = engine.read(engine.frame(arrivals, tmp_path), engine.frame(outcomes, tmp_path, 2), **ask)
        said = [str(w.message) for w in told if w.category is OutcomeWarning]
        here = EventLog.from_frames(arrivals, outcomes, **ask)
    assert [text.split(" and ")[0] for text in said] == [
        f"2 of {len(outcomes)} outcomes match no arrival",
        f"5 of {len(outcomes)} outcomes come before their arrival",
    ]
    assert repr(far) == repr(here)
    mine, theirs = (
        sorted(zip(*(np.asarray(part).tolist() for part in times), strict=True))
        for times in (here.times, [part.collect() for part in far.times])
    )
    assert mine == theirs
    assert_allclose(*(probabilities(log, here.frame, "tw") for log in (here, far)), atol=1e-5)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("keys", ["numbers", "text"])
def test_any_two_tables_are_joined_as_they_are_here(engine, keys, zone, tmp_path):
    """Row for row: few minutes and few keys, so that ties, early, double and unmatched outcomes abound."""
    if isinstance(engine, OnDask):
        pytest.skip("test_joins does it for Dask")
    rng = np.random.default_rng([len(keys), zone is None])
    start = pd.Timestamp("2024-03-30 22:00")  # near a change of clocks

    def named(numbers):
        return numbers if keys == "numbers" else np.array([f"k{number}" for number in numbers])

    def minutes(size):
        found = pd.Series(start + pd.to_timedelta(rng.integers(0, 12, size), unit="min")).astype("datetime64[us]")
        return found if zone is None else found.dt.tz_localize("UTC").dt.tz_convert(zone)

    arrivals = pd.DataFrame({"id": named(np.arange(300)), "at": minutes(300), "row": np.arange(300)})
    outcomes = pd.DataFrame({"id": named(rng.integers(0, 330, 400)), "at": minutes(400)})
    ask = {"key": "id", "arrival": "at", "outcome": "at", "features": ["row"]}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        far = engine.read(engine.frame(arrivals, tmp_path), engine.frame(outcomes, tmp_path, 2), **ask).collect()
        here = EventLog.from_frames(arrivals, outcomes, **ask)
    said = [str(w.message).split(",")[0] for w in told if w.category is OutcomeWarning]
    assert len(said) == 4 and said[:2] == [text.split(",")[0] for text in said[2:]]
    order = np.argsort(far.frame["row"].to_numpy())
    for mine, theirs in zip(here.times, far.times, strict=True):
        assert mine.tolist() == theirs[order].tolist()
    assert far.until == here.until and far.zoned == here.zoned


def stamped(days, hours=0.0):
    return pd.Series(pd.Timestamp("2024-03-01") + pd.to_timedelta(np.asarray(days) + hours / 24, "D")).astype("M8[us]")


def two_odd_tables(kind):
    """Tables that could be read otherwise in parts than as a whole, with what more to ask."""
    n = 8
    a = pd.DataFrame({"id": np.arange(n), "at": stamped(np.arange(n), 10.0), "x": list("abab") * 2})
    o = pd.DataFrame({"id": [0, 1, 2, 5], "when": stamped([3, 3, 9, 20], 11.0), "kind": ["won", "lost", "lost", "won"]})
    more = {}
    if kind == "a condition":
        more = {"outcome_where": 'kind == "won"'}
    elif kind == "a condition that nothing meets":
        more = {"outcome_where": 'kind == "maybe"'}
    elif kind in ("seconds since 1970", "milliseconds since 1970"):
        unit = "s" if kind[0] == "s" else "ms"
        a["at"], o["when"] = (t.astype(f"M8[{unit}]").astype("int64") for t in (a["at"], o["when"]))
    elif kind == "seconds from 0":
        a["at"], o["when"] = np.arange(n) * 10.0, np.array([50.0, 60.0, 70.0, 80.0])
    elif kind == "outcomes by the day":
        o["when"] = stamped([0, 1, 9, 20])
    elif kind == "both by the day":
        a["at"], o["when"] = stamped(np.arange(n)), stamped([0, 1, 9, 20])
    elif kind == "keys with fractions":
        a["id"], o["id"] = a["id"] + np.where(a["id"] == 7, 0.5, 0.0), [0.0, 1.0, 2.0, 7.5]
    elif kind == "padded keys":
        o["id"] = [f"{key:03d}" for key in o["id"]]
    elif kind == "keys of nobody":
        o["id"] += 100
    elif kind == "one has a zone":
        o["when"] = o["when"].dt.tz_localize("UTC")
    elif kind == "a missing arrival":
        a.loc[6, "at"] = pd.NaT
    elif kind == "a missing outcome":
        o.loc[3, "when"] = pd.NaT
    return a, o, more


ODD = [
    *(
        "a condition",
        "a condition that nothing meets",
        "seconds since 1970",
        "milliseconds since 1970",
        "seconds from 0",
    ),
    *(
        "outcomes by the day",
        "both by the day",
        "keys with fractions",
        "padded keys",
        "keys of nobody",
        "one has a zone",
    ),
    *("a missing arrival", "a missing outcome"),
]


@pytest.mark.parametrize("kind", ODD)
def test_odd_tables_are_read_or_refused_as_they_are_here(engine, kind, tmp_path):
    a, o, more = two_odd_tables(kind)
    ask = {"key": "id", "arrival": "at", "outcome": "when", "features": ["x"], **more}

    def read(make):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                log = make()
            except Exception as error:  # of the engine's own, around ours
                return " ".join(str(error).split()), None, None
            said = [str(w.message).split(",")[0] for w in told if w.category is OutcomeWarning]
            return repr(log), said, log.notes

    here = read(lambda: EventLog.from_frames(a, o, **ask))
    there = read(lambda: engine.read(engine.frame(a, tmp_path, 2), engine.frame(o, tmp_path, 2), **ask))
    if here[1] is None:
        sentence = here[0].split(",")[0].split(". Keys")[0].removesuffix(".")
        if kind == "one has a zone":
            sentence = "do not agree on what their times are (datetime, datetime with a zone)"
        assert sentence in there[0] and there[1] is None
        assert not kind.startswith("a missing") or "partition" in there[0]
    else:
        assert there == here


def test_bad_rows_are_refused_as_they_are_here(engine, table, tmp_path):
    bad = table.copy()
    bad.loc[len(bad) - 1, "conversion_time"] = pd.Timestamp("2023-01-01")
    with pytest.raises(Exception, match=r"partition \d+: column 'conversion_time': 1 row is before the arrival"):
        engine.read(engine.frame(bad, tmp_path), **COLUMNS)
    with pytest.raises(Exception, match="'nothing'"):
        engine.read(engine.frame(table, tmp_path), arrival="nothing", outcome="conversion_time")
    arrivals, outcomes = two_tables(table)
    twice = pd.concat([arrivals, arrivals[:3]], ignore_index=True)
    with pytest.raises(ValueError, match="3 rows are a repeat of an earlier key"):
        engine.read(
            engine.frame(twice, tmp_path),
            engine.frame(outcomes, tmp_path),
            key="id",
            arrival="click_time",
            outcome="conversion_time",
        )


def test_a_worker_that_is_killed_costs_time_and_not_the_result(engine, here, there, monkeypatch):
    expected = probabilities(here, here.frame, "dfm-piecewise")
    victim, asked, total = engine.processes()[0], [], Cluster.total

    def kill_in_the_middle(self, work, value=None):
        asked.append(work)
        if len(asked) == 25:
            os.kill(victim, signal.SIGKILL)
        return total(self, work, value)

    monkeypatch.setattr(Cluster, "total", kill_in_the_middle)
    found = probabilities(there, here.frame, "dfm-piecewise")
    assert len(asked) > 50 and victim not in engine.processes()
    assert_allclose(found, expected, atol=1e-5)
    assert repr(there) == repr(here)


def test_a_worker_that_is_killed_in_the_middle_of_a_wide_fit(engine, table, tmp_path, monkeypatch):
    """Weights of so many columns are not sent with each task."""
    wide = table.assign(id=[f"k{k}" for k in np.random.default_rng(0).integers(0, 10**6, len(table))])
    far = engine.read(engine.frame(pd.concat([wide] * 3, ignore_index=True), tmp_path), hash_columns=2**18, **COLUMNS)

    def fitted():
        clf = DelayedFeedbackClassifier("tw", window=7.0, model=LinearModel(l2=1e-5, tol=1e-8))
        return clf.fit_snapshot(far.snapshot(**ASK)).predict_proba(wide)[:, 1]

    total, asked = Cluster.total, []

    def kill_in_the_middle(self, work, value=None):
        asked.append(work)
        if len(asked) == victim[0]:
            os.kill(victim[1], signal.SIGKILL)
        return total(self, work, value)

    monkeypatch.setattr(Cluster, "total", kill_in_the_middle)
    victim = (0, 0)
    expected = fitted()
    victim = (int(0.6 * len(asked)), engine.processes()[0])
    assert len(asked) > 20
    asked.clear()
    assert_allclose(fitted(), expected, atol=1e-6)
    assert victim[1] not in engine.processes()


def test_what_is_forgotten_leaves_nothing_behind(engine, there):
    """Neither at the workers nor with those who tell them what to do."""
    if not isinstance(engine, OnDask):
        pytest.skip("of Dask's scheduler")
    elapsed = there.snapshot(**ASK).elapsed
    elapsed.sum()
    time.sleep(1)
    before = len(engine.cluster.scheduler.tasks)
    for k in range(5):
        kept = (elapsed + k).kept()
        kept.sum()
        del kept
    elapsed.sum()
    time.sleep(1)
    assert len(engine.cluster.scheduler.tasks) <= before


def test_what_is_closed_or_refused_leaves_nothing_behind(engine, table, tmp_path):
    if isinstance(engine, OnDask):
        pytest.skip("Dask has no files of its own")

    def left():
        cached = engine.session.sparkContext._jsc.getPersistentRDDs().size()
        return cached, set(Path(tempfile.gettempdir()).glob(f"belated-{os.getuid()}-*"))

    before = left()
    arrivals, outcomes = two_tables(table)
    ask = {"key": "id", "arrival": "click_time", "outcome": "conversion_time"}
    far = engine.read(engine.frame(arrivals, tmp_path), engine.frame(outcomes, tmp_path, 2), **ask)
    assert left() != before
    far.close()
    bad = table.copy()
    bad.loc[3, "conversion_time"] = pd.Timestamp("2023-01-01")
    with pytest.raises(Exception, match="before the arrival"):
        engine.read(engine.frame(bad, tmp_path), **COLUMNS)
    assert left() == before


def test_spark_without_a_direct_line(engine, here, there, monkeypatch):
    """As where executors cannot reach the driver: each sum is a job."""
    if isinstance(engine, OnDask):
        pytest.skip("Dask has its own")
    from belated.cluster import spark_channel

    cluster = there.times[0].cluster
    cluster._hang_up()
    monkeypatch.setattr(cluster, "direct", True)  # and again after this test
    monkeypatch.setattr(spark_channel, "_TO_CONNECT", 0.0)
    assert there.times[0].max() == here.times[0].max() and not cluster.direct
    one, two = (log.snapshot(**ASK) for log in (here, there))
    assert_allclose(two.elapsed.sum(), one.elapsed.sum())
    assert_allclose(np.sort(two.elapsed.collect()), np.sort(one.elapsed))


def test_partitions_move_to_disk_where_memory_ends(engine, here, there):
    if isinstance(engine, OnDask):
        pytest.skip("Dask has its own")
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not have the tests
    cluster = there.times[0].cluster
    rooms, files = zip(*cluster.together(_with_little_room), strict=True)
    try:
        one, two = (log.snapshot(**ASK) for log in (here, there))
        assert_allclose(np.sort(two.elapsed.collect()), np.sort(one.elapsed))
        assert sum(count for _, count in cluster.together(_with_little_room)) > sum(files)
    finally:
        cluster.together(_with_room, rooms[0])


def _with_little_room(parts, value):
    """In a worker: how much room it has, and how many files of moved partitions; then only one partition fits."""
    from belated.cluster import spark_worker

    room, spark_worker.ROOM = spark_worker.ROOM, 1
    found = [spark_worker._moved_file(*key).parent for key in spark_worker._here]
    return room, len({file for folder in found for file in folder.glob(f"*.{os.getpid()}")})


def _with_room(parts, room):
    from belated.cluster import spark_worker

    spark_worker.ROOM = room


def test_cores_are_given_back(engine, there):
    """Other jobs of a session do not wait for long once a fit is over."""
    if isinstance(engine, OnDask):
        pytest.skip("Dask has its own")
    cluster = there.times[0].cluster
    cluster.direct = True
    there.times[0].max()
    assert cluster.channel.open
    begin = time.monotonic()
    assert engine.session.range(100).repartition(4).count() == 100
    assert time.monotonic() - begin < 30 and not cluster.channel.open


def test_features_of_two_tables_in_any_order_and_no_others(engine, table, tmp_path):
    arrivals, outcomes = two_tables(table)
    ask = {"key": "id", "arrival": "click_time", "outcome": "conversion_time"}

    def read(features):
        return engine.read(
            engine.frame(arrivals, tmp_path), engine.frame(outcomes, tmp_path, 2), features=features, **ask
        )

    names = ["pages_viewed", "device", "campaign", "device"]
    log = read(names)
    assert log.features == EventLog.from_frames(arrivals, outcomes, features=names, **ask).features == names[:3]
    assert sorted(log.collect().frame.column_names) == sorted(names[:3])
    for features, message in (
        (["id", "device"], "'id' cannot be a feature"),
        (["click_time"], "'click_time' cannot be a feature"),
        ("device", "must be a list of columns"),
    ):
        with pytest.raises(ValueError, match=message):
            read(features)
    log.close()


def test_outcomes_without_a_key_are_counted_as_they_are_here(engine, tmp_path):
    arrivals = pd.DataFrame({"id": ["1", "2", "3", "4"], "at": stamped([0, 1, 2, 3]), "x": list("abab")})
    outcomes = pd.DataFrame({"id": ["1", None, "z0", None], "when": stamped([5, 5, 6, 7])})
    ask = {"key": "id", "arrival": "at", "outcome": "when"}
    said = []
    for make in (
        lambda: EventLog.from_frames(arrivals, outcomes, **ask),
        lambda: engine.read(engine.frame(arrivals, tmp_path, 2), engine.frame(outcomes, tmp_path, 2), **ask),
    ):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            log = make()
        said.append((log.positives, [str(w.message).split(" and ")[0] for w in told if w.category is OutcomeWarning]))
    assert said[0] == said[1] == (1, ["3 of 4 outcomes match no arrival"])


def test_frames_and_names_that_an_engine_cannot_take_are_refused(engine, table, tmp_path):
    with pytest.raises(ValueError, match=r"takes a (Dask|Spark) DataFrame, got pandas.*from_frame"):
        engine.read(table, **COLUMNS)
    if isinstance(engine, OnSpark):
        with pytest.raises(ValueError, match=r"'a\.b': Spark takes a dot .*withColumnRenamed\('a\.b', 'a_b'\)"):
            engine.read(engine.frame(table.assign(**{"a.b": 1}), tmp_path), **COLUMNS)
        arrivals, outcomes = two_tables(table)
        wrong = outcomes.assign(conversion_time="rubbish")
        with pytest.raises(ValueError, match=r"^partition \d+.*'conversion_time'"):
            engine.read(
                engine.frame(arrivals, tmp_path),
                engine.frame(wrong, tmp_path, 2),
                **{"key": "id", "arrival": "click_time", "outcome": "conversion_time"},
            )
