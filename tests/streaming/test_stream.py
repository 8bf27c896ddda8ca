"""Stream: every record's label was known at its time, all records together are what a snapshot knows, and nothing is lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from belated import EventLog, FieldMatrix, Stream
from belated.data.times import NEVER
from belated.streaming.methods import STREAM_METHODS
from belated.streaming.methods.label_correction import DEFUSE
from belated.streaming.stream_records import LATE, MATURE_EARLY, SECOND

WINDOW, HORIZON = 3, 10  # seconds
SECOND_ = 1_000_000
METHODS = list(STREAM_METHODS)


@st.composite
def histories(draw):
    """Rows with times and delays (None: never), and the order in which events and advances are told."""
    n = draw(st.integers(1, 12))
    times = draw(st.lists(st.integers(0, 30), min_size=n, max_size=n))
    delays = draw(st.lists(st.one_of(st.none(), st.integers(0, 14)), min_size=n, max_size=n))
    stops = sorted(draw(st.lists(st.integers(0, 60), min_size=1, max_size=8)))
    lags = draw(st.lists(st.integers(0, 4), min_size=2 * n, max_size=2 * n))
    return times, delays, stops, lags


def tell(stream, history, tolerance):
    """Tell each event at the first stop after its time plus a lag within the tolerance; the records of each method."""
    times, delays, stops, lags = history
    told, found = set(), {name: [] for name in stream.methods}
    stream.arrive([], np.zeros((0, 1)), np.array([], dtype="int64"))
    for stop in [*stops, 200]:
        for k, (t, d) in enumerate(zip(times, delays, strict=True)):
            if ("a", k) not in told and t + min(lags[2 * k], tolerance) <= stop:
                stream.arrive([k], np.array([[float(k)]]), [t])
                told.add(("a", k))
            if d is not None and ("o", k) not in told and t + d + min(lags[2 * k + 1], tolerance) <= stop:
                stream.outcome([k], [t + d])
                told.add(("o", k))
        stream.advance(stop)
        for name in found:
            found[name].append(stream.records(name))
    return found


def expected(name, t, d):
    """The records of a row, from the contract's table: (time, label)."""
    d = np.inf if d is None or d > HORIZON else d
    early, late, never = d <= WINDOW, WINDOW < d <= HORIZON, d > HORIZON
    ages = [HORIZON * SECOND_ // 4**k / SECOND_ for k in range(5, -1, -1)]
    if name in ("fnw", "fnc"):
        return [(t, 0)] + [(t + d, 1)] * (not never)
    if name in ("es-dfm", "defuse"):
        return [(t + WINDOW, int(early))] + [(t + d, 1)] * late
    if name == "defer":
        again = [(t + d, 1)] if late else [(t + HORIZON, int(early))]
        return [(t + WINDOW, int(early)), *again]
    if name == "ddfm":
        return [(t + WINDOW, int(early))] + [(t + d, 1)] * late + [(t + HORIZON, 0)] * never
    if name == "hazard-heads":
        return [(t + b, int(d <= b)) for a, b in zip([-1, *ages], ages, strict=False) if d > a]
    if name == "dfm-stream":
        return [(t + b, int(d <= b)) for b in ages]
    return [(t + (WINDOW if name == "vanilla" else HORIZON), int(d <= (WINDOW if name == "vanilla" else HORIZON)))]


@given(histories(), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_law_of_the_stream(history, tolerance):
    times, delays, stops, _ = history
    more = {"tolerance": tolerance} if tolerance else {}
    stream = Stream(METHODS, window=WINDOW, horizon=HORIZON, **more)
    found = tell(stream, history, tolerance)
    order = np.argsort(times, kind="stable")  # rows are numbered by arrival; those of one time in any order
    for name in METHODS:
        seen = []
        for stop, records in zip([*stops, 200], found[name], strict=True):
            if not len(records):
                continue
            assert (np.diff(records.time) >= 0).all()
            assert (records.time <= (stop - tolerance) * SECOND_).all()
            seen += [
                (int(x), round(t / SECOND_, 6), bool(label))
                for x, t, label, kind in zip(records.X[:, 0], records.time, records.label, records.kind, strict=True)
                if kind < MATURE_EARLY
            ]
        assert all(earlier.time[-1] <= later.time[0] for earlier, later in _pairs(found[name]))
        wanted = [(k, round(t, 6), bool(y)) for k in order for t, y in expected(name, times[k], delays[k])]
        assert sorted(seen) == sorted(wanted)
    assert stream.pending == 0 and stream.counts["arrivals"] == len(times)
    assert sum(stream.counts.values()) == len(times) + sum(d is not None for d in delays)


def _pairs(parts):
    parts = [part for part in parts if len(part)]
    return pairwise(parts)


@given(histories())
@settings(max_examples=40, deadline=None)
def test_at_any_instant_the_records_agree_with_the_snapshot(history):
    """Of fake negatives: the rows that have arrived are those with a negative, the positive ones those with a positive."""
    times, delays, stops, _ = history
    table = pd.DataFrame({"k": range(len(times)), "t": np.array(times, dtype=float)})
    table["o"] = [np.nan if d is None else t + d for t, d in zip(times, delays, strict=True)]
    log = EventLog.from_frame(table, arrival="t", outcome="o", until=400.0, time_unit="s")
    stream = Stream("fnw", horizon=HORIZON)
    stream.arrive(range(len(times)), np.arange(len(times), dtype=float)[:, None], times)
    positive = table.o.notna().to_numpy()
    stream.outcome(np.flatnonzero(positive), table.o[positive].to_numpy())
    all_of_them = []
    for stop in stops:
        stream.advance(stop)
        all_of_them.append(stream.records())
        if stop < min(times):
            continue
        snap = log.snapshot(as_of=float(stop), horizon=HORIZON)
        rows = {int(k): bool(y) for k, y in zip(snap.X["k"], snap.y, strict=True)}
        found = {}
        for records in filter(len, all_of_them):
            for x, label in zip(records.X[:, 0], records.label, strict=True):
                found[int(x)] = found.get(int(x), False) or bool(label)
        assert found == rows


def test_what_is_told_too_late_happens_next():
    stream = Stream(["es-dfm", "fnw"], window=3, horizon=10)
    stream.arrive(["a"], [[0.0]], [0])
    stream.advance(5)  # a has a negative at 3
    stream.outcome(["a"], [2])  # too late: it counts from now on
    stream.arrive(["b"], [[1.0]], [1])
    stream.outcome(["b"], [4])
    stream.advance(20)
    assert {k: v for k, v in stream.counts.items() if v} == {
        "arrivals": 2,
        "late_arrivals": 1,
        "outcomes": 2,
        "late_outcomes": 2,
    }
    records = stream.records("es-dfm")
    main = records[~records.is_mature]
    assert main.label.tolist() == [False, True, True] and main.kind.tolist() == [0, LATE, 0]
    assert (main.time[1:] > 5 * SECOND_).all()


def test_every_irregularity_is_counted():
    stream = Stream("defer", window=3, horizon=10)
    stream.outcome(["x", "early", "orphan"], [1, 0, 2])  # x's arrival is told later
    stream.arrive(["x", "x", "early"], np.zeros((3, 1)), [0, 1, 5])
    stream.outcome(["x", "late"], [4, 15])
    stream.arrive(["late"], [[0.0]], [2])
    stream.advance(14)
    stream.arrive(["x"], [[0.0]], [12])  # known for two horizons
    stream.advance(50)
    stream.arrive(["ancient"], [[0.0]], [1])
    stream.advance(60)
    assert stream.counts == {
        "arrivals": 3,
        "repeated_arrivals": 2,
        "late_arrivals": 0,
        "expired_arrivals": 1,
        "outcomes": 1,
        "repeated_outcomes": 1,
        "late_outcomes": 0,
        "early_outcomes": 1,
        "outcomes_beyond_horizon": 1,
        "unmatched_outcomes": 1,
    }


def test_keys_of_any_kind_and_fields():
    stream = Stream("fnw", horizon="1d")
    fields = FieldMatrix(np.array([[1, 5], [2, 5], [3, 6]]), 8)
    stream.arrive([7, 8, 9], fields, pd.to_datetime(["2024-01-01T00", "2024-01-01T01", "2024-01-01T02"]))
    stream.outcome(pd.Series(["8", "9"]), np.array(["2024-01-01T05", "2024-01-03"], dtype="datetime64[s]"))
    stream.advance("2024-01-02")
    records = stream.records()
    assert records.label.tolist() == [False, False, False, True]
    assert_array_equal(records.X.indices, fields.indices[[0, 1, 2, 1]])
    assert records.delay.tolist() == [NEVER] * 3 + [4 * 3600 * SECOND_]
    assert "known up to 2024-01-02" in repr(stream)


def test_memory_is_that_of_pending_rows():
    rng = np.random.default_rng(0)
    stream = Stream("fnw", horizon=1000)
    sizes = []
    for step in range(60):
        n = 5000
        times = np.sort(rng.uniform(0, 100, n)) + 100 * step
        keys = np.arange(n) + n * step
        stream.arrive(keys, FieldMatrix(rng.integers(0, 99, (n, 4)), 100), times)
        stream.outcome(keys[::7], times[::7] + rng.uniform(0, 2000, len(keys[::7])))
        stream.advance(100.0 * (step + 1))
        stream.records()
        sizes.append(stream.nbytes)
    assert stream.pending == 50_000
    assert max(sizes[30:]) < 2.1 * min(sizes[30:])
    assert stream.nbytes / stream.pending < 400
    done = sum(v for k, v in stream.counts.items() if "outcome" in k and k != "late_outcomes")
    waiting = len(stream._waiting[0]) + sum(len(part[0]) for part in stream._turning)
    assert done + waiting == 60 * len(keys[::7])


def test_what_cannot_be_is_refused():
    for more, message in (
        ({"methods": "es-dfm", "horizon": "1d"}, "needs a window"),
        ({"methods": "es-dfm", "horizon": "1d", "window": "2d"}, "must be shorter"),
        ({"methods": "banana", "horizon": "1d"}, "is not known"),
        ({"methods": [], "horizon": "1d"}, "is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            Stream(**more)
    stream = Stream("fnw", horizon="1d")
    assert len(stream.records()) == 0
    with pytest.raises(ValueError, match="2 keys, 1 times"):
        stream.arrive([1, 2], np.zeros((2, 1)), [0.0])
    with pytest.raises(ValueError, match="column 'keys': 1 row is missing"):
        stream.arrive([1.0, np.nan], np.zeros((2, 1)), [0.0, 1.0])
    with pytest.raises(ValueError, match="column 'X': 1 row is not finite"):
        stream.arrive([1], [[np.inf]], [0.0])
    stream.arrive([1], [[0.0]], [0.0])
    with pytest.raises(ValueError, match="X is numbers with 2 features, and was numbers with 1 before"):
        stream.arrive([1], [[0.0, 1.0]], [0.0])
    with pytest.raises(ValueError, match="clock is 'seconds'"):
        stream.outcome([1], ["2024-01-01"])
    stream.advance(5)
    with pytest.raises(ValueError, match="is none of this stream's"):
        stream.records("defer")


def test_second_records_of_defer_are_all_but_late_ones():
    stream = Stream("defer", window=3, horizon=10)
    stream.arrive([0, 1, 2], np.arange(3.0)[:, None], [0, 0, 0])
    stream.outcome([0, 1], [2, 7])
    stream.advance(100)
    records = stream.records()
    again = records[records.kind == SECOND]
    assert again.X[:, 0].tolist() == [0, 2] and again.label.tolist() == [True, False]


def test_a_call_that_is_refused_changes_nothing():
    stream = Stream("final", horizon=100.0)
    with pytest.raises(ValueError, match="2 keys, 2 times and 3 rows"):
        stream.arrive([1, 2], np.zeros((3, 5)), [0.0, 1.0])
    stream.arrive([1, 2], np.array([[0.5, 1.0], [2.0, 3.0]]), [0.0, 1.0])
    for X, times, message in (
        (FieldMatrix(np.zeros((2, 2), dtype=int), 8), [2.0, 3.0], "X is a FieldMatrix of 8 columns"),
        (np.full((2, 2), 1e20), [2.0, 3.0], "beyond 1e"),
        (np.zeros((2, 2)), ["2024-01-01", "2024-01-02"], "clock is 'seconds'"),
    ):
        with pytest.raises(ValueError, match=message):
            stream.arrive([3, 4], X, times)
    stream.advance(500.0)
    assert_array_equal(stream.records().X, [[0.5, 1.0], [2.0, 3.0]])


def test_the_callers_arrays_may_be_used_again():
    stream, batch = Stream("final", horizon=100.0), np.ones((2, 1))
    stream.arrive([1, 2], batch, [0.0, 1.0])
    batch[:] = 7
    stream.arrive([3, 4], batch, [2.0, 3.0])
    stream.advance(500.0)
    assert stream.records().X.ravel().tolist() == [1, 1, 7, 7]


def test_times_are_read_as_the_first_ones_were():
    stream = Stream("final", horizon=100.0)
    stream.arrive([1], [[0.0]], [5.0])
    stream.outcome([1], [20_000_101])  # by itself it could be a date
    stream.outcome([1], [2e8])
    zoned = Stream("final", horizon="1d")
    zoned.arrive([1], [[0.0]], ["2024-01-01T10:00"])
    with pytest.raises(ValueError, match="they may be hours apart"):
        zoned.outcome([1], ["2024-01-01T10:30+02:00"])


def test_keys_that_are_no_keys_and_methods_of_one_name():
    stream = Stream("final", horizon=100.0)
    stream.arrive(np.array([2**63 + 1, 2], dtype=np.uint64), np.zeros((2, 1)), [0.0, 0.0])
    stream.outcome([str(2**63 + 1)], [1.0])
    for keys in ("ab", [[1, 2]], [1, "a"]):
        with pytest.raises(ValueError, match="keys must be"):
            stream.outcome(keys, [0.0])
    stream.advance(500.0)
    assert stream.counts["outcomes"] == 1
    with pytest.raises(ValueError, match="two methods are called 'defuse'"):
        Stream([DEFUSE(0.0), DEFUSE(1.0)], window=1.0, horizon=10.0)
    with pytest.raises(ValueError, match="is empty"):
        Stream({}, horizon=10.0)
    with pytest.raises(ValueError, match="alpha=3 must be"):
        Stream(DEFUSE(3), window=1.0, horizon=10.0)


def test_records_that_nobody_asks_for_are_counted_as_memory():
    stream = Stream(["final", "hazard-heads"], horizon=10.0)
    for k in range(20):
        stream.arrive(np.arange(100) + 100 * k, np.zeros((100, 50)), np.full(100, 10.0 * k))
        stream.advance(10.0 * k)
        stream.records("final") if k else None
    assert stream.nbytes > 8 * 50 * 100 * 19 * 6
