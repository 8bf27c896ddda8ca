"""The join of arrivals with their first outcomes, by Dask, against the local one: ties, zones, early, double and unmatched outcomes."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from belated import EventLog, OutcomeWarning
from belated.data.cluster_joins import ARRIVAL, OUTCOME, JoinColumns
from belated.data.times import NEVER

pytestmark = pytest.mark.cluster

KEYS = {
    "numbers": lambda keys: keys,
    "text": lambda keys: [f"k{key}" for key in keys],
    "floats": lambda keys: [float(key) for key in keys],
}
START = pd.Timestamp("2024-03-30 22:00")  # near a change of clocks


def times(minutes, zone):
    found = pd.Series([START + pd.Timedelta(minutes=int(m)) for m in minutes], dtype="datetime64[us]")
    return found if zone is None else found.dt.tz_localize("UTC").dt.tz_convert(zone)


@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(
    arrivals=st.lists(st.integers(0, 8), min_size=1, max_size=8),
    outcomes=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=10),
    keys=st.sampled_from(sorted(KEYS)),
    zone=st.sampled_from([None, "Europe/Berlin"]),
    parts=st.tuples(st.integers(1, 3), st.integers(1, 3)),
)
def test_it_is_the_local_join(arrivals, outcomes, keys, zone, parts):
    dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed (make test-cluster)")
    from belated.data.dask_joins import join_on_dask

    make = KEYS[keys]
    left = pd.DataFrame(
        {"id": make(range(len(arrivals))), "at": times(arrivals, zone), "row": np.arange(len(arrivals))}
    )
    right = pd.DataFrame(
        {"id": make([key for key, _ in outcomes]), "at": times([minute for _, minute in outcomes], zone)}
    ).astype({"id": left["id"].dtype})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        here = EventLog.from_frames(left, right, key="id", arrival="at", outcome="at", features=["row"])
    joined = join_on_dask(
        dd.from_pandas(left, npartitions=parts[0]),
        dd.from_pandas(right, npartitions=parts[1]),
        JoinColumns("id", "at", "at", ["row"]),
    )
    rows = joined.frame.compute().sort_values("row")
    arrival, outcome = here.times
    assert rows[ARRIVAL].tolist() == arrival.tolist()
    assert [NEVER if pd.isna(value) else int(value) for value in rows[OUTCOME]] == outcome.tolist()
    said = [str(w.message).split()[0] for w in told if w.category is OutcomeWarning]
    assert [str(n) for n in (joined.unmatched, joined.early) if n] == said
    assert joined.repeated == 0 and max(joined.latest, int(arrival.max())) == here.until
