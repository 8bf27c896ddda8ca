"""Exactly once: a stream that is killed and goes on ends with the same model, to the last bit, as one that never stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from belated import FieldMatrix, OnlineClassifier, OnlineLinearModel, Stream
from belated.streaming.methods import STREAM_METHODS

PROGRAM = Path(__file__).parents[2] / "examples" / "streaming" / "two_topics.py"
METHODS = list(STREAM_METHODS)


def events(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    at = np.sort(rng.uniform(0, 1000.0, n))
    X = FieldMatrix(rng.integers(0, 50, (n, 3)), 64)
    turns = rng.uniform(size=n) < 0.3
    when = at + rng.exponential(40.0, n)
    return X, at, np.flatnonzero(turns), when[turns]


def classifier(method, model=None):
    return OnlineClassifier(method, model or OnlineLinearModel(learning_rate=0.1), window=10, horizon=200, batch=64)


def feed(clf, stream, data, steps):
    """The events of some steps of 20 seconds, told as they happen; some arrivals only in the next step."""
    X, at, who, when = data
    for k in steps:
        late = np.arange(len(at)) % 5 == 0
        told = np.floor(at / 20.0) + late == k
        stream.arrive(np.flatnonzero(told), X[told], at[told])
        turned = np.floor(when / 20.0) == k
        stream.outcome(who[turned], when[turned])
        stream.advance(20.0 * (k + 1))
        clf.learn(stream)


def states(clf, stream):
    return {**clf.state(), **{f"stream/{k}": v for k, v in stream.state().items()}}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("method", METHODS)
def test_going_on_is_as_good_as_never_stopping(method, tmp_path):
    data = events()
    whole = classifier(method)
    stream = Stream(method, window=10, horizon=200, tolerance=25)
    feed(whole, stream, data, range(60))
    for stop in (1, 17, 43):
        first = classifier(method)
        before = Stream(method, window=10, horizon=200, tolerance=25)
        assert first.restore(tmp_path / "state.npz", before) is None
        feed(first, before, data, range(stop))
        first.checkpoint(tmp_path / "state.npz", before, {"step": stop})
        again, after = classifier(method), Stream(method, window=10, horizon=200, tolerance=25)
        assert again.restore(tmp_path / "state.npz", after) == {"step": stop}
        assert_same(states(again, after), states(first, before))
        feed(again, after, data, range(stop, 60))
        assert_same(states(again, after), states(whole, stream))
        assert after.counts == stream.counts and again.n_records_ == whole.n_records_
        (tmp_path / "state.npz").unlink()


def test_what_had_been_told_already_is_known_by_its_key(tmp_path):
    """A source that repeats the last steps, as one that does not keep positions exactly."""
    data = events()
    whole, stream = classifier("es-dfm"), Stream("es-dfm", window=10, horizon=200, tolerance=25)
    feed(whole, stream, data, range(60))
    first, before = classifier("es-dfm"), Stream("es-dfm", window=10, horizon=200, tolerance=25)
    feed(first, before, data, range(20))
    X, at, who, when = data
    old = at < 380.0
    before.arrive(np.flatnonzero(old), X[old], at[old])
    before.outcome(who[when < 380.0], when[when < 380.0])
    feed(first, before, data, range(20, 60))
    assert_same(first.state(), whole.state())
    assert before.counts["repeated_arrivals"] + before.counts["expired_arrivals"] > 100


def test_a_network_goes_on_too(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from belated import NetworkModel

    data, model = events(800), NetworkModel(width=8, depth=1, embedding=4)
    for method in ("hazard-heads", "dfm-stream"):
        whole, stream = classifier(method, model), classifier(method).stream()
        feed(whole, stream, data, range(30))
        first, before = classifier(method, model), classifier(method).stream()
        feed(first, before, data, range(12))
        first.checkpoint(tmp_path / "n.npz", before, 12)
        again, after = classifier(method, model), classifier(method).stream()
        assert again.restore(tmp_path / "n.npz", after) == 12
        feed(again, after, data, range(12, 30))
        assert_same(again.state(), whole.state())
        (tmp_path / "n.npz").unlink()


def test_files_that_do_not_fit_are_refused(tmp_path):
    clf, stream = classifier("fnw"), classifier("fnw").stream()
    feed(clf, stream, events(200), range(5))
    file = tmp_path / "state.npz"
    clf.checkpoint(file, stream, 5)
    other = OnlineClassifier("fnw", OnlineLinearModel(learning_rate=0.2), window=10, horizon=200, batch=64)
    with pytest.raises(
        ValueError, match=r"state\.npz: its classifier is .*OnlineLinearModel\(\).* and here it is .*0\.2"
    ):
        other.restore(file, other.stream())
    with pytest.raises(ValueError, match=r"position=.* would not come back"):
        clf.checkpoint(file, stream, {1, 2})
    with pytest.raises(ValueError, match=r"position=.* would not come back"):
        clf.checkpoint(file, stream, {0: 5})
    data = file.read_bytes()
    for damaged in (b"", b"something else", data[:100], data[: len(data) // 2]):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="no checkpoint of a stream, or a damaged one"):
            clf.restore(file, stream)


def test_records_that_were_not_learned_keep_how_their_rows_were_made(tmp_path):
    table = pd.DataFrame({"c": ["a", "b", "c"] * 30})

    def begun():
        clf = OnlineClassifier("fnw", horizon=100.0)
        return clf, clf.stream()

    whole, stream = begun()
    stream.arrive(np.arange(90), FieldMatrix.from_frame(table, 1000, seed=3), np.arange(90.0))
    stream.outcome(np.arange(0, 90, 3), np.arange(0, 90, 3) + 1.0)
    stream.advance(500.0)
    whole.checkpoint(tmp_path / "s.npz", stream, 1)
    again, after = begun()
    again.restore(tmp_path / "s.npz", after)
    new = pd.DataFrame({"c": ["a", "b", "c"]})
    assert_array_equal(again.learn(after).predict_proba(new), whole.learn(stream).predict_proba(new))
    again.restore(tmp_path / "s.npz", after)  # made before anything was learned
    assert not hasattr(again, "model_")


def killed_and_started_again(folder, kills, seed, many):
    """Run the example, killing it at random moments; its last lines."""
    rng = np.random.default_rng(seed)
    command = [sys.executable, str(PROGRAM), str(folder), many]
    interrupted = 0
    while True:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and "going on from" in process.stdout.readline()
        if interrupted < kills:
            time.sleep(rng.uniform(0.0, 0.25))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            interrupted += 1
            continue
        out = process.communicate()[0]
        assert process.returncode == 0
        return out


def check_kills(tmp_path, kills, many):
    whole = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "a"), many], capture_output=True, text=True, check=True
    )
    lines = killed_and_started_again(tmp_path / "b", kills, 0, many)
    assert lines == whole.stdout.partition("\n")[2] and "campaign 00 phone: 0." in lines
    with np.load(tmp_path / "a" / "state.npz") as one, np.load(tmp_path / "b" / "state.npz") as other:
        assert_same(dict(one), dict(other))


def test_killed_in_the_middle(tmp_path):
    check_kills(tmp_path, 1, "150")


@pytest.mark.slow
def test_killed_many_times(tmp_path):
    check_kills(tmp_path, 40, "40")
