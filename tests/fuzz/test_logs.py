"""Laws of event logs and snapshots, on logs that nobody thought of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from effort import given_some
from hypothesis import assume
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from belated import EventLog
from belated.data.labels import check_labels

START = datetime(2024, 1, 1, tzinfo=UTC)
SECONDS = st.integers(0, 40 * 86400)
# Ties and day stamps are as likely as anything: coarse grids are drawn as often as fine ones.
STEPS = st.sampled_from([1, 60, 3600, 86400])


@st.composite
def rows(draw):
    """Arrivals in seconds, and delays in seconds or None."""
    step = draw(STEPS)
    arrival = draw(st.lists(SECONDS, min_size=2, max_size=30))
    delay = draw(st.lists(st.none() | SECONDS, min_size=len(arrival), max_size=len(arrival)))
    return [a // step * step for a in arrival], [None if d is None else d // step * step for d in delay]


def make(arrival, delay, zone=UTC, until=90):
    start = [(START + timedelta(seconds=a)).astimezone(zone) for a in arrival]
    end = [None if d is None else s + timedelta(seconds=d) for s, d in zip(start, delay, strict=True)]
    kind = pa.timestamp("us", "UTC")
    table = pa.table(
        {"a": pa.array(start, kind), "b": pa.array(end, kind), "row": [f"r{k}" for k in range(len(arrival))]}
    )
    return EventLog.from_frame(table, arrival="a", outcome="b", until=START + timedelta(days=until))


def known(snap):
    """A snapshot as a set of facts."""
    names = snap.X["row"].to_pylist()
    return dict(zip(names, zip(snap.y.tolist(), snap.elapsed.tolist(), map(str, snap.delay), strict=True), strict=True))


@given_some(rows(), SECONDS, st.integers(1, 40), st.integers(1, 40), st.randoms())
def test_the_order_of_rows_does_not_matter(data, now, lookback, horizon, random):
    arrival, delay = data
    assume(any(now - lookback * 86400 <= a <= now for a in arrival))
    ask = {"as_of": START + timedelta(seconds=now), "lookback": f"{lookback}d", "horizon": f"{horizon}d"}
    assume(min(arrival) <= now)
    order = list(range(len(arrival)))
    random.shuffle(order)
    one = make(arrival, delay).snapshot(**ask)
    two = make([arrival[k] for k in order], [delay[k] for k in order]).snapshot(**ask)
    found = {f"r{order[int(name[1:])]}": fact for name, fact in known(two).items()}
    assert found == known(one)


@given_some(rows(), SECONDS, st.integers(1, 40), st.integers(1, 3))
def test_a_snapshot_is_what_its_definition_says(data, now, horizon, unit):
    arrival, delay = data
    assume(min(arrival) <= now)
    snap = make(arrival, delay).snapshot(as_of=START + timedelta(seconds=now), horizon=f"{horizon}d")
    for name, (y, elapsed, wait) in known(snap).items():
        k = int(name[1:])
        assert elapsed == pytest.approx((now - arrival[k]) / 86400) and arrival[k] <= now
        seen = delay[k] is not None and arrival[k] + delay[k] <= now and delay[k] <= horizon * 86400
        assert y == seen and (float(wait) == pytest.approx(delay[k] / 86400) if seen else wait == "nan")
    assert len(snap) == sum(a <= now for a in arrival)


@given_some(rows(), SECONDS, st.integers(1, 40), st.randoms())
def test_the_future_changes_nothing(data, now, horizon, random):
    arrival, delay = data
    assume(min(arrival) <= now)
    changed = []
    for a, d in zip(arrival, delay, strict=True):
        future = d is None or a + d > now
        later = max(now - a, 0) + 1 + random.randrange(40 * 86400)
        changed.append(random.choice([None, later]) if future else d)
    ask = {"as_of": START + timedelta(seconds=now), "horizon": f"{horizon}d"}
    assert known(make(arrival, delay, until=200).snapshot(**ask)) == known(
        make(arrival, changed, until=200).snapshot(**ask)
    )


@given_some(rows(), SECONDS, st.integers(-14 * 60, 14 * 60))
def test_the_zone_in_which_times_are_written_does_not_matter(data, now, minutes):
    arrival, delay = data
    assume(min(arrival) <= now)
    zone = timezone(timedelta(minutes=minutes))
    when = START + timedelta(seconds=now)
    here = make(arrival, delay, zone).snapshot(as_of=when.astimezone(zone))
    assert known(here) == known(make(arrival, delay).snapshot(as_of=when))


@given_some(rows(), SECONDS, st.integers(1, 20), st.integers(1, 40))
def test_rewinding_a_snapshot_is_taking_it_earlier(data, now, back, horizon):
    arrival, delay = data
    then = now - back * 86400
    assume(min(arrival) <= then)
    log = make(arrival, delay)
    late = log.snapshot(as_of=START + timedelta(seconds=now), horizon=f"{horizon}d")
    early = log.snapshot(as_of=START + timedelta(seconds=then), horizon=f"{horizon}d")
    rewound = late.rewind(float(back))
    assert_array_equal(rewound.y, early.y)
    assert_array_equal(np.round(rewound.elapsed, 9), np.round(early.elapsed, 9))


@given_some(rows(), SECONDS, st.integers(1, 30), st.integers(1, 60))
def test_every_row_is_mature_or_not_and_every_mature_positive_early_or_late(data, now, window, horizon):
    arrival, delay = data
    assume(min(arrival) <= now and window <= horizon)
    snap = make(arrival, delay).snapshot(as_of=START + timedelta(seconds=now), horizon=f"{horizon}d")
    labels = check_labels(snap.y == 1, snap.elapsed, snap.delay, None, float(window), float(horizon))
    assert not (labels.early & labels.late).any()
    assert_array_equal(labels.early | labels.late, labels.y & labels.mature)
    then = np.where(np.isnan(snap.delay), np.inf, snap.delay) <= snap.elapsed - window + 1e-9
    assert_array_equal(labels.early, labels.mature & then)
