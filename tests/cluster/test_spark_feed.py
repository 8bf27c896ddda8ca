"""Structured Streaming: killed and started again, it loses and repeats nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from belated import OnlineClassifier
from belated.streaming.spark_feed import SparkFeed

PROGRAM = Path(__file__).parents[2] / "examples" / "cluster" / "spark_stream.py"


class Batch:
    """A micro-batch as Spark hands it over."""

    def __init__(self, table):
        self.table = table

    def select(self, *names):
        return Batch(self.table.select(list(names)))

    def toArrow(self):
        return self.table


def events(*rows):
    names = ("id", "time", "kind", "shop")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    times = pa.array([np.datetime64(value, "us") for value in columns["time"]])
    return Batch(pa.table({**{name: list(columns[name]) for name in names}, "time": times}))


def feed(path):
    clf = OnlineClassifier("hazard-heads", horizon="14d")
    return SparkFeed(clf, path, key="id", time="time", kind="kind", features=["shop"], columns=64)


def test_a_batch_counts_once(tmp_path):
    path = tmp_path / "model.npz"
    first = feed(path)
    batch = events(("a", "2024-01-02", "arrival", "x"), ("a", "2024-01-03", "outcome", None))
    first(batch, 0)
    first(batch, 0)
    again = feed(path)
    assert again.batch == 0
    again(batch, 0)
    again(events(("b", "2024-01-20", "arrival", "y")), 1)
    assert again.stream.counts["arrivals"] == 2 and again.stream.counts["repeated_arrivals"] == 0
    assert feed(path).batch == 1


def test_the_order_within_a_batch_is_no_matter(tmp_path):
    rows = [
        ("a", "2024-01-02", "arrival", "x"),
        ("b", "2024-01-03", "arrival", "y"),
        ("a", "2024-01-20", "outcome", None),
    ]
    found = []
    for name, order in (("one", rows), ("other", rows[::-1])):
        feed(tmp_path / name)(events(*order), 0)
        found.append(dict(np.load(tmp_path / name)))
    for name in found[0]:
        assert_array_equal(found[0][name], found[1][name])


def test_what_is_no_event_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must be 'arrival' or 'outcome', and holds 'click' too"):
        feed(tmp_path / "m.npz")(events(("a", "2024-01-02", "click", "x")), 0)
    assert not (tmp_path / "m.npz").exists()


@pytest.mark.cluster
def test_a_query_that_is_killed_goes_on(tmp_path):
    pytest.importorskip("pyspark", reason="Spark is not installed (make test-cluster)")
    if shutil.which("java") is None:
        pytest.skip("there is no Java (make test-cluster)")
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}

    def start(folder):
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            start_new_session=True,
        )

    whole = start(tmp_path / "a")
    expected = whole.communicate(timeout=300)[0].splitlines()
    assert whole.returncode == 0 and expected[0] == "going on after batch -1"
    killed = start(tmp_path / "b")
    while not (tmp_path / "b" / "model.npz").exists():  # in the middle of its batches
        assert killed.poll() is None
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    again = start(tmp_path / "b")
    found = again.communicate(timeout=300)[0].splitlines()
    assert again.returncode == 0 and found[1:] == expected[1:]
    assert 0 <= int(found[0].split()[-1]) < 11
    with np.load(tmp_path / "a" / "model.npz") as one, np.load(tmp_path / "b" / "model.npz") as other:
        assert set(one) == set(other)
        for name in one:
            assert_array_equal(one[name], other[name])
