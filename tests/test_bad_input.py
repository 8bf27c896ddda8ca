"""Every kind of bad input, and the message it gets."""

from __future__ import annotations

import re
import warnings
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from simulate import simulate
from sklearn.linear_model import LogisticRegression

from belated import (
    DFM,
    FSIW,
    PNUTW,
    PU,
    STC,
    ConvDF,
    DelayedFeedbackClassifier,
    EventLog,
    LinearModel,
    NnDF,
    TableEncoder,
)
from belated.risks.losses import Loss

GOOD = pd.DataFrame(
    {
        "id": [1, 2, 3],
        "x": ["a", "b", "a"],
        "at": pd.to_datetime(["2024-03-01", "2024-03-02", "2024-03-03"]),
        "out": pd.to_datetime(["2024-03-04", None, "2024-03-03"]),
    }
)


def one(frame=GOOD, arrival="at", outcome="out", **more):
    return EventLog.from_frame(frame, arrival=arrival, outcome=outcome, **more)


def two(arrivals, outcomes, key="id"):
    return EventLog.from_frames(arrivals, outcomes, key=key, arrival="at", outcome="out")


def with_(**columns):
    return GOOD.assign(**columns)


OUT = GOOD[["id", "out"]].dropna()

LOGS = {
    "empty table": (lambda: one(GOOD[:0]), "the log is empty."),
    "not a table": (lambda: one([1, 2]), "the log must be a pandas, polars or pyarrow table, got list."),
    "missing column": (
        lambda: one(arrival="clicked"),
        "the log has no column 'clicked'; its columns are id, x, at, out.",
    ),
    "missing feature": (lambda: one(features=["x", "z"]), "the log has no column 'z'"),
    "same column twice": (lambda: one(outcome="at"), "arrival and outcome name the same column, 'at'."),
    "missing arrivals": (
        lambda: one(with_(at=[None, None, datetime(2024, 3, 1)])),
        "column 'at': 2 rows are missing, and every row must have arrived, the first at row 0 (missing). Drop these rows",
    ),
    "outcome before arrival": (
        lambda: one(with_(out=pd.to_datetime(["2024-03-04", "2024-02-01", None]))),
        "column 'out': 1 row is before the arrival, the first at row 1 (2024-02-01 00:00:00+00:00). Correct these times",
    ),
    "text that is no time": (
        lambda: one(with_(at=["2024-03-01", "soon", "later"])),
        "column 'at': 2 rows are no ISO 8601 time, the first at row 1 (soon). Correct these rows, or say how times are written with --time-format",
    ),
    "some text with a zone": (
        lambda: one(with_(at=["2024-03-01", "2024-03-01T00:00Z", "2024-03-02"])),
        "column 'at': 2 rows are without a time zone beside others that have one, the first at row 0 (2024-03-01).",
    ),
    "clocks that disagree with zones": (
        lambda: one(with_(at=GOOD["at"].dt.tz_localize("Europe/Lisbon"))),
        "column 'at' has a time zone and column 'out' has none, so their clocks may disagree by hours. Give 'out' its zone",
    ),
    "seconds beside datetimes": (
        lambda: one(with_(at=[1, 2, 3])),
        "column 'at' holds seconds but column 'out' holds datetime",
    ),
    "numbers too large for times": (
        lambda: one(with_(at=[1.7e25] * 3, out=[None] * 3)),
        "column 'at': 3 rows are not plausible as a time (after the year 5000, or before the year 5), the first at row 0 (1.7e+25). Correct",
    ),
    "days before months": (
        lambda: one(with_(at=["01.03.2024", "13.03.2024", "02.03.2024"])),
        "column 'at': 3 rows are no ISO 8601 time, the first at row 0 (01.03.2024). They look like %d.%m.%Y: say --time-format '%d.%m.%Y'",
    ),
    "days or months": (
        lambda: one(with_(at=["1/3/24", "2/3/24", "3/3/24"])),
        "They may be read in more than one way, and only you know which: say --time-format '%d/%m/%y' or --time-format '%m/%d/%y'",
    ),
    "a format that does not fit": (
        lambda: one(with_(at=["01.03.2024", "31.02.2024", "2024"], out=[None] * 3), time_format="%d.%m.%Y"),
        "column 'at': 2 rows are not of the format %d.%m.%Y, the first at row 1 (31.02.2024). Correct these rows",
    ),
    "no format at all": (lambda: one(time_format="european"), "time_format='european' is not a format."),
    "a unit nobody knows": (lambda: one(time_unit="days"), "time_unit='days' is not known; choose s, ms, us or ns."),
    "flags beside dates": (
        lambda: one(with_(out=[0, 1, 0])),
        "column 'out' holds 0 and 1, which is no time. It says whether there was an outcome, and not when.",
    ),
    "a condition on no column": (lambda: one(outcome_where="y == 1"), "the log has no column 'y'"),
    "a condition that is code": (
        lambda: one(outcome_where="x.y()"),
        "outcome_where x.y(): it is not made of comparisons",
    ),
    "words for nothing as text": (lambda: one(na="NA"), "na='NA' must be a list of words, such as ['NA', 'null']."),
    "outcomes that mean never": (
        lambda: one(with_(out=["9999-12-31", "", "2024-03-03"])),
        "column 'out': 1 row is not plausible as a time (after the year 5000, or before the year 5), the first at row 0 (9999-12-31 00:00:00). Empty",
    ),
    "times that overflow": (
        lambda: one(with_(out=np.array(["2024-03-04", "NaT", "600000-01-01"], "M8[s]"))),
        "column 'out' holds times out of any range",
    ),
    "dates written as numbers": (
        lambda: one(with_(at=[20240301, 20240302, 20240303], out=[None] * 3)),
        "column 'at' holds numbers such as 20240301, which look like dates written YYYYMMDD",
    ),
    "objects with and without a zone": (
        lambda: one(
            with_(
                at=pd.Series(
                    [datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 3, 1), datetime(2024, 3, 1)], dtype=object
                )
            )
        ),
        "column 'at': 2 rows are without a time zone beside others that have one, the first at row 1",
    ),
    "objects that are dates and times": (
        lambda: one(
            with_(at=pd.Series([date(2024, 3, 1), datetime(2024, 3, 1, 5), datetime(2024, 3, 1)], dtype=object))
        ),
        "column 'at': 1 row is a date beside others that are times, the first at row 0 (2024-03-01).",
    ),
    "columns without a name": (
        lambda: one(GOOD.rename(columns={"x": 0})),
        "the log has columns whose names are no strings, the first of them 0.",
    ),
    "columns of one name": (
        lambda: one(pd.concat([GOOD, GOOD["x"]], axis=1)),
        "the log has several columns named 'x'.",
    ),
    "features as text": (lambda: one(features="x"), "features='x' must be a list of columns, such as ['x']."),
    "the outcome as a feature": (lambda: one(features=["x", "out"]), "'out' cannot be a feature"),
    "a month that could be a minute": (
        lambda: one().snapshot("2024-03-03", lookback="1M"),
        "lookback='1M' is not clear: m may mean minutes or months. Write '1min' for minutes, or '30d'",
    ),
    "an endless lookback": (
        lambda: one().snapshot("2024-03-03", lookback=float("nan")),
        "lookback=nan is not a duration.",
    ),
    "a horizon longer than any log": (
        lambda: one().snapshot("2024-03-03", horizon="900000000d"),
        "is longer than any log.",
    ),
    "negative rewinding": (
        lambda: one().snapshot("2024-03-03").rewind(-1),
        "window=-1 must be a positive number of days.",
    ),
    "booleans as times": (lambda: one(with_(at=[True, False, True])), "column 'at' holds bool, which is no time."),
    "mixed types": (
        lambda: one(with_(at=pd.Series([1, "b", 2.0], dtype=object))),
        "column 'at' cannot be read: its values are of different or unknown types",
    ),
    "as_of before the log": (
        lambda: one().snapshot("2023-01-01"),
        "as_of='2023-01-01' is outside the log, which runs from 2024-03-01 00:00:00+00:00 to 2024-03-04 00:00:00+00:00.",
    ),
    "as_of after the log": (lambda: one().snapshot("2025-01-01"), "If the log is known to reach further, pass until="),
    "until inside the log": (
        lambda: one(until="2024-03-02"),
        "until='2024-03-02' is before the latest time in the log",
    ),
    "as_of that is no time": (lambda: one().snapshot("yesterday"), "as_of='yesterday' is not an ISO 8601 date or time"),
    "as_of a number for datetimes": (lambda: one().snapshot(5), "as_of must be a date or time"),
    "as_of a date for seconds": (
        lambda: one(with_(at=[1, 2, 3], out=[None] * 3)).snapshot("2024-03-01"),
        "this log counts seconds, so give a number of seconds",
    ),
    "lookback without a unit": (
        lambda: one().snapshot("2024-03-03", lookback=21),
        "lookback=21 has no unit, and this log holds datetimes. Write for example '21d'",
    ),
    "lookback that is no duration": (
        lambda: one().snapshot("2024-03-03", lookback="3 moons"),
        "lookback='3 moons' is not a duration.",
    ),
    "negative lookback": (
        lambda: one().snapshot("2024-03-03", lookback=pd.Timedelta(days=-1)),
        "must be longer than zero",
    ),
    "lookback of the wrong type": (
        lambda: one().snapshot("2024-03-03", lookback=[1]),
        "lookback must be a duration such as '21d'",
    ),
    "lookback that reaches no row": (
        lambda: one(with_(out=[None] * 3), until="2024-06-01").snapshot("2024-05-01", lookback="1d"),
        "no rows of the log arrived within as_of='2024-05-01' with lookback='1d'.",
    ),
    "missing key column": (lambda: two(GOOD, OUT, key="click"), "the table of arrivals has no column 'click'"),
    "missing key column in outcomes": (lambda: two(GOOD, OUT[["out"]]), "the table of outcomes has no column 'id'"),
    "duplicate keys": (
        lambda: two(with_(id=[1, 2, 1]), OUT),
        "column 'id': 1 row is a repeat of an earlier key, the first at row 2 (1). Keep one row for each key.",
    ),
    "missing keys": (
        lambda: two(with_(id=["a", None, "c"]), OUT),
        "column 'id': 1 row is missing in the table of arrivals",
    ),
    "keys of different types": (
        lambda: two(with_(id=["001", "002", "003"]), OUT),
        "no outcome matches an arrival. Keys are '001', '002', '003' (text) in the table of arrivals and",
    ),
    "outcomes without a time": (lambda: two(GOOD, GOOD), "column 'out': 1 row is missing in the table of outcomes"),
}


@pytest.mark.parametrize("case", LOGS)
def test_logs(case):
    call, message = LOGS[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


DATA = simulate(seed=0, n=400)


def fit(method="convdf", window=5.0, horizon=None, X=DATA.X, y=DATA.y, model=None, **times):
    times = {"elapsed": DATA.elapsed, "delay": DATA.delay} | times
    return DelayedFeedbackClassifier(method=method, window=window, horizon=horizon, model=model).fit(X, y, **times)


def changed(values, row, value):
    values = np.array(values, dtype=float)
    values[row] = value
    return values


POSITIVE, NEGATIVE = (int(np.flatnonzero(label)[0]) for label in (DATA.y == 1, DATA.y == 0))
LATE = int(np.flatnonzero((DATA.y == 1) & (DATA.elapsed > 6))[0])
TABLE = simulate(seed=0, n=400, frame="pandas")


class Exponential(Loss):
    def value(self, z):
        return np.exp(-z)


FITS = {
    "delays missing": (lambda: fit(delay=None), "ConvDF needs the delay of each positive beside elapsed"),
    "delays without elapsed": (lambda: fit(elapsed=None), "delay was given without elapsed. Pass both"),
    "a window but no times": (lambda: fit(elapsed=None, delay=None), "ConvDF with a window needs elapsed and delay"),
    "no window": (
        lambda: fit(window=None),
        "ConvDF needs a window: the age from which a label counts as final. Set window=",
    ),
    "zero window": (lambda: fit(window=0), "window=0 must be a positive number, in the unit of elapsed."),
    "negative window": (lambda: fit(window=-1.0), "window=-1.0 must be a positive number"),
    "window as text": (lambda: fit(window="7d"), "window='7d' must be a positive number"),
    "infinite horizon": (lambda: fit(horizon=np.inf), "horizon=inf must be a positive number"),
    "horizon shorter than the window": (lambda: fit(horizon=3.0), "horizon=3 is shorter than window=5"),
    "window longer than half the history": (
        lambda: fit(window=12.0),
        "window=12 is longer than half the history (19.9",
    ),
    "no mature rows": (lambda: fit("tw", window=30.0), "no mature rows: window=30 but the oldest row is 19.9"),
    "negative elapsed": (
        lambda: fit(elapsed=changed(DATA.elapsed, 3, -0.5)),
        "column 'elapsed': 1 row is negative, the first at row 3 (-0.5). Drop rows that had not arrived yet.",
    ),
    "elapsed not finite": (
        lambda: fit(elapsed=changed(DATA.elapsed, [1, 5], np.nan)),
        "column 'elapsed': 2 rows are not finite, the first at row 1",
    ),
    "elapsed of the wrong length": (
        lambda: fit(elapsed=DATA.elapsed[:9]),
        "column 'elapsed' has shape (9,), but there are 400 rows.",
    ),
    "elapsed that are no numbers": (
        lambda: fit(elapsed=["a"] * 400),
        "column 'elapsed': 400 rows are neither a number nor a duration, the first at row 0 (a). Give numbers of days, say.",
    ),
    "elapsed of which one is a word": (
        lambda: fit(elapsed=[*DATA.elapsed[:-1], "soon"]),
        "column 'elapsed': 1 row is neither a number nor a duration, the first at row 399 (soon).",
    ),
    "negative delay": (lambda: fit(delay=changed(DATA.delay, POSITIVE, -1)), "column 'delay': 1 row is negative"),
    "infinite delay": (lambda: fit(delay=changed(DATA.delay, POSITIVE, np.inf)), "column 'delay': 1 row is infinite"),
    "delay beyond elapsed": (
        lambda: fit(delay=changed(DATA.delay, POSITIVE, 500.0)),
        f"column 'delay': 1 row is larger than the elapsed time, the first at row {POSITIVE} (500.0). Such a positive was not known",
    ),
    "positive without a delay": (
        lambda: fit(delay=changed(DATA.delay, POSITIVE, np.nan)),
        "column 'delay': 1 row is missing although y is 1",
    ),
    "delay of a negative": (
        lambda: fit(delay=changed(DATA.delay, NEGATIVE, 0.0)),
        "column 'delay': 1 row is known although y is not 1",
    ),
    "delay beyond the horizon": (
        lambda: fit(horizon=5.5, delay=changed(DATA.delay, LATE, 6.0)),
        "column 'delay': 1 row is larger than the horizon",
    ),
    "one class only": (
        lambda: fit(y=np.zeros(400), delay=np.full(400, np.nan)),
        "y holds one class only, 0.0, in all 400 rows.",
    ),
    "three classes": (lambda: fit(y=np.arange(400) % 3), "Only binary classification is supported."),
    "one class after weights": (
        lambda: fit(sample_weight=1.0 - DATA.y),
        "every row of class 1 has sample_weight 0.",
    ),
    "negative weights": (
        lambda: fit(sample_weight=np.full(400, -1.0)),
        "Negative values in data passed to `sample_weight`",
    ),
    "empty table": (lambda: fit(X=TABLE.X[:0], y=DATA.y[:0]), "X is empty"),
    "NaN in an array": (lambda: fit(X=np.full((400, 2), np.nan)), "Input X contains NaN"),
    "infinite numbers in a table": (
        lambda: fit(X=TABLE.X.assign(a=changed(TABLE.X["a"], 7, np.inf))),
        "column 'a': 1 row is infinite, the first at row 7 (inf). Replace them",
    ),
    "dates as features": (
        lambda: fit(X=TABLE.X.assign(day=datetime(2024, 1, 1))),
        "feature column 'day' holds timestamp",
    ),
    "features that are binary": (
        lambda: fit(X=pl.DataFrame({"i": [b"1", b"2"] * 200})),
        "feature column 'i' holds large_binary, which has no encoding.",
    ),
    "features that are intervals": (
        lambda: fit(X=TABLE.X.assign(i=pd.cut(TABLE.X["a"], 3))),
        "feature column 'i' holds",
    ),
    "no features": (lambda: fit(X=TABLE.X[[]]), "X has no columns"),
    "features of one name": (
        lambda: fit(X=pd.concat([TABLE.X, TABLE.X["a"]], axis=1)),
        "X has several columns named 'a'.",
    ),
    "missing labels": (lambda: fit(y=pd.Series([1, None] * 200, dtype="Int64")), "Input y contains NaN"),
    "elapsed that are dates": (
        lambda: fit(elapsed=pd.date_range("2024", periods=400)),
        "column 'elapsed' must hold numbers or durations, got datetime64",
    ),
    "window as a duration": (
        lambda: fit(window=np.timedelta64(5, "D")),
        "must be a positive number, in the unit of elapsed.",
    ),
    "a method's class": (lambda: fit(ConvDF), "method=ConvDF is a class; pass an object, ConvDF()."),
    "a foreign model": (
        lambda: fit(model=LogisticRegression()),
        "model must be one of belated's models, such as LinearModel()",
    ),
    "unbounded weights": (lambda: fit(FSIW(max_weight=0.5)), "max_weight=0.5 and bins=5 must be at least 1."),
    "a ceiling above 1": (lambda: fit(STC(ceiling=3)), "ceiling=3 must be above 0 and at most 1."),
    "no buckets": (
        lambda: fit(X=TABLE.X, model=LinearModel(encoder=TableEncoder(buckets=0))),
        "buckets=0 must be a whole number of at least 1.",
    ),
    "no iterations": (lambda: fit(model=LinearModel(max_iter=0)), "max_iter=0 must be at least 1."),
    "unknown method": (lambda: fit("convdff"), "method='convdff' is not known; choose one of bl, tw, putw"),
    "unknown normalizer": (lambda: fit(ConvDF("mine")), "normalizer='mine' is not known"),
    "unknown delay law": (lambda: fit(DFM("gamma")), "delay='gamma' is not a delay law"),
    "unknown loss": (
        lambda: fit(ConvDF(loss="hinge")),
        "loss='hinge' is not known; choose one of 'logistic', 'squared', 'double_hinge'",
    ),
    "loss that makes it non-convex": (
        lambda: fit(ConvDF(loss=Exponential())),
        "ConvDF gives some samples a negative weight, and stays convex only",
    ),
    "loss of the wrong type": (lambda: fit(ConvDF(loss=3)), "loss must be a name or a Loss object, got int."),
    "omega out of range": (lambda: fit(PNUTW(omega=2)), "omega=2 must be between 0 (TW) and 1 (PUTW)."),
    "prior out of range": (lambda: fit(PU(prior=1.0)), "prior=1.0 must be between 0 and 1."),
    "short beyond the window": (lambda: fit(STC(short=9.0)), "short=9 must be at least 0 and below window=5."),
    "short below all delays": (lambda: fit(STC(short=0.0)), "short=0: no mature positives came that early."),
    "ascent without batches": (
        lambda: fit(NnDF(ascent=True)),
        "ascent=True is a rule for mini-batches, and LinearModel looks at all",
    ),
    "negative l2": (lambda: fit(model=LinearModel(l2=-1)), "l2=-1 must be a finite number of at least 0."),
    "unknown number encoding": (
        lambda: fit(X=TABLE.X, model=LinearModel(encoder=TableEncoder(numbers="log"))),
        "numbers='log' is not known",
    ),
    "no intervals": (lambda: fit(DFM("piecewise", intervals=0)), "intervals=0 must be at least 1"),
}


@pytest.mark.parametrize("case", FITS)
def test_fits(case):
    call, message = FITS[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_correction_larger_than_everything():
    """Every recent row is negative so far and every older one came late: the estimated rate exceeds 1."""
    elapsed = np.concatenate([np.full(90, 9.0), np.full(10, 20.0), np.linspace(0, 4, 20)])
    y = np.concatenate([np.ones(100, int), np.zeros(20, int)])
    delay = np.where(y == 1, elapsed - 0.1, np.nan)
    with pytest.raises(
        ValueError, match=r"ConvDF with normalizer='paper' and window=5 estimates a positive rate of 1.* not below 1"
    ):
        fit(ConvDF("paper"), X=np.zeros((120, 1)), y=y, elapsed=elapsed, delay=delay)


PREDICTIONS = {
    "missing column": (lambda: TABLE.X.drop(columns="a"), "Feature names seen at fit time, yet now missing:\n- a"),
    "extra column": (lambda: TABLE.X.assign(z=1), "Feature names unseen at fit time:\n- z"),
    "other order": (
        lambda: TABLE.X[["b", "a", "group", "flag"]],
        "Feature names must be in the same order as they were in fit.",
    ),
    "array for a table": (lambda: np.zeros((3, 4)), "X is an array now but was a table in fit."),
    "text for numbers": (
        lambda: TABLE.X.assign(a="x"),
        "feature column 'a' held numbers in training but holds large_string now.",
    ),
    "numbers for text": (
        lambda: TABLE.X.assign(group=1),
        "feature column 'group' held categories in training but holds int64 now.",
    ),
    "empty": (lambda: TABLE.X[:0], "X is empty"),
}


@pytest.mark.parametrize("case", PREDICTIONS)
def test_predictions(case):
    table, message = PREDICTIONS[case]
    clf = fit("bl", X=TABLE.X)
    with pytest.raises(ValueError, match=re.escape(message)):
        clf.predict_proba(table())


def test_a_table_for_an_array():
    with pytest.raises(ValueError, match="X is a table now but was an array in fit"):
        fit("bl").predict(TABLE.X)


def test_a_window_of_half_a_lookback_is_fine():
    """The oldest row of a 20-day lookback is a little less than 20 days old."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(window=10.0).predict_proba(DATA.X).shape == (400, 2)
