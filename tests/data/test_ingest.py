"""Hashing and ingestion: where values go, and files of both formats read in pieces."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from belated import DelayedFeedbackClassifier, EventLog, FieldMatrix
from belated.data import criteo_format, ingest
from belated.data.criteo_format import CRITEO_FIELDS, bucket, ingest_criteo
from belated.data.ingest import ingest_parquet


@pytest.fixture
def criteo(tmp_path):
    """A small file in Criteo's format, and the same as Parquet."""
    rng = np.random.default_rng(0)
    n = 500
    click = np.sort(rng.integers(0, 60 * 86400, n))
    conversion = np.where(rng.uniform(size=n) < 0.3, click + rng.integers(0, 10 * 86400, n), -1)
    rows = []
    for i in range(n):
        ints = [str(v) if v else "" for v in rng.integers(-1, 50, 8)]
        rows.append(
            [
                str(click[i]),
                str(conversion[i]) if conversion[i] >= 0 else "",
                *ints,
                *(f"{v:08x}" for v in rng.integers(0, 20, 9)),
            ]
        )
    text = "\n".join("\t".join(row) for row in rows)
    (tmp_path / "data.txt").write_text(text + "\n")
    columns = dict(zip(["click", "conversion", *CRITEO_FIELDS], zip(*rows, strict=True), strict=True))
    for name in CRITEO_FIELDS[:8]:  # the text is put into buckets as it is read
        columns[name] = [v and str(bucket(int(v))) for v in columns[name]]
    table = pa.table({name: [v or None for v in values] for name, values in columns.items()})
    times = {name: table[name].cast(pa.int64()) for name in ("click", "conversion")}
    for name, column in times.items():
        table = table.set_column(table.column_names.index(name), name, column)
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=100)
    return tmp_path, text, table


def same(first, second):
    assert_array_equal(first._frame.indices, second._frame.indices)
    assert_array_equal(first._arrival, second._arrival)
    assert_array_equal(first._outcome, second._outcome)


def test_text_and_parquet_give_one_log(criteo, monkeypatch):
    folder, text, table = criteo
    ingest_criteo(folder / "data.txt", folder / "a", progress=False)
    log = EventLog.open(folder / "a")
    assert isinstance(log._frame.indices, np.memmap)
    direct = FieldMatrix.from_frame(table.select(CRITEO_FIELDS))
    assert_array_equal(log._frame.indices, direct.indices)
    ingest_parquet(folder / "data.parquet", folder / "b", arrival="click", outcome="conversion", progress=False)
    same(log, EventLog.open(folder / "b"))
    # In small pieces, gzipped, with other line ends, and without a last line feed.
    monkeypatch.setattr(criteo_format, "_BLOCK", 700)
    monkeypatch.setattr(ingest, "_BATCH", 64)
    with gzip.open(folder / "data.txt.gz", "wt", newline="") as file:
        file.write(text.replace("\n", "\r\n"))
    ingest_criteo(folder / "data.txt.gz", folder / "c", progress=False)
    same(log, EventLog.open(folder / "c"))
    ingest_parquet(folder / "data.parquet", folder / "b", arrival="click", outcome="conversion", progress=False)
    same(log, EventLog.open(folder / "b"))
    assert sorted(p.name for p in folder.iterdir()) == ["a", "b", "c", "data.parquet", "data.txt", "data.txt.gz"]


def test_an_ingested_log_trains_a_classifier(criteo):
    folder, _, _ = criteo
    ingest_criteo(folder / "data.txt", folder / "log", n_columns=2**18, progress=False)
    snap = EventLog.open(folder / "log").snapshot(as_of=50 * 86400, lookback="21d", horizon="30d")
    clf = DelayedFeedbackClassifier(method="convdf", window=7.0)
    clf.fit(snap.X, snap.y, elapsed=snap.elapsed, delay=snap.delay)
    assert clf.predict_proba(snap.X).shape == (len(snap), 2)
    assert len(snap.rewind("2d").X) < len(snap)


BROKEN = {
    "too few fields": (
        lambda text: text.replace("\t", " ", 3),
        r"1 of 499 lines from line 1 on are not made of 19 fields.*the first such is line 1 ",
    ),
    "too many fields": (lambda text: text + "\textra", r"the first such is line 500 "),
    "commas": (lambda text: text.replace("\t", ","), r"499 of 499 lines from line 1 on are not made of 19 fields"),
    "text for a time": (
        lambda text: "now" + text[text.index("\t") :],
        r"1 of 499 lines.*whole seconds",
    ),
    "no click": (lambda text: text[text.index("\t") :], r"1 of 499 lines"),
    "conversion before its click": (
        lambda text: "9" + "9" * 8 + "\t1" + text[text.index("\t", text.index("\t") + 1) :],
        r"column 'conversion': 1 row is before the arrival, the first at row 0",
    ),
    "empty": (lambda text: "", "the file holds no rows"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_leave_nothing_behind(criteo, case):
    folder, text, _ = criteo
    change, message = BROKEN[case]
    (folder / "bad.txt").write_text(change(text))
    with pytest.raises(ValueError, match=message):
        ingest_criteo(folder / "bad.txt", folder / "bad", progress=False)
    assert not (folder / "bad").exists()
    assert not list(folder.glob(".*.partial"))


def test_an_interrupted_ingestion_keeps_the_log_that_was_there(criteo, monkeypatch):
    folder, _, _ = criteo
    ingest_criteo(folder / "data.txt", folder / "log", progress=False)
    before = np.array(EventLog.open(folder / "log")._arrival)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(ingest.LogWriter, "add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ingest_criteo(folder / "data.txt", folder / "log", progress=False)
    assert_array_equal(EventLog.open(folder / "log")._arrival, before)
    assert not list(folder.glob(".*.partial"))


def test_folders_that_are_no_logs(tmp_path):
    with pytest.raises(ValueError, match="holds no FieldMatrix"):
        EventLog.open(tmp_path)
    FieldMatrix(np.zeros((2, 2), dtype=np.int32), 4).save(tmp_path / "fields")
    with pytest.raises(ValueError, match="holds no log"):
        EventLog.open(tmp_path / "fields")


def test_an_ingestion_does_not_delete_what_it_did_not_write(criteo):
    folder, _, _ = criteo
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match=r"mine: holds thesis.txt, which would be lost"):
        ingest_criteo(folder / "data.txt", folder / "mine", progress=False)
    assert (folder / "mine" / "thesis.txt").read_text() == "years of work"


def test_a_zone_on_one_side_only_is_refused(tmp_path):
    times = pa.array([0, 3600 * 10**6], pa.timestamp("us"))
    table = pa.table({"click": times.cast(pa.timestamp("us", "Europe/Lisbon")), "sale": times, "x": ["a", "b"]})
    pq.write_table(table, tmp_path / "mixed.parquet")
    with pytest.raises(ValueError, match=r"column 'click' has a time zone and column 'sale' has none"):
        ingest_parquet(tmp_path / "mixed.parquet", tmp_path / "log", arrival="click", outcome="sale", progress=False)
    assert not (tmp_path / "log").exists()


def test_fractions_are_put_into_ranges_and_new_rows_too(tmp_path):
    """As an encoder of tables would, and the same for rows to come, in tables of any kind and from a saved model."""
    from belated import DelayedFeedbackClassifier, LinearModel, TableEncoder, load
    from belated.datasets import simulate_clicks

    clicks = simulate_clicks(clicks_per_day=100)
    pq.write_table(clicks, tmp_path / "clicks.parquet", row_group_size=1000)
    ingest_parquet(tmp_path / "clicks.parquet", tmp_path / "log", arrival="click_time", outcome="conversion_time")
    log = EventLog.open(tmp_path / "log")
    assert log.features == ["campaign", "device", "country", "price"]
    encoder = TableEncoder().fit(clicks.select(["price"]))
    ranges = np.asarray(encoder.transform(clicks.select(["price"])).argmax(axis=1)).ravel()
    hashed = log.frame.indices[:, 3]
    pairs = set(zip(ranges.tolist(), hashed.tolist(), strict=True))
    assert len(pairs) == len(set(ranges.tolist())) == len(set(hashed.tolist())) == 10
    snap = log.snapshot("2024-02-12", lookback="21d", horizon="14d")
    clf = DelayedFeedbackClassifier(method="tw", window=7.0, model=LinearModel(l2=1e-5)).fit_snapshot(snap)
    clf.save(tmp_path / "m.skops")
    expected = clf.predict_proba(log.frame[:50])
    for table in (clicks.slice(0, 50), clicks.slice(0, 50).to_pandas()):
        assert (clf.predict_proba(table) == expected).all() and (
            load(tmp_path / "m.skops").predict_proba(table) == expected
        ).all()


def test_whole_numbers_are_categories_unless_they_are_named(tmp_path):
    n = 400
    table = pa.table(
        {
            "at": np.arange(n),
            "out": [*[None] * (n - 1), n],
            "k": np.arange(n),
            "f": np.arange(n) / 1.0,
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for numbers, distinct in (((), n), (("k", "f"), 10)):
        ingest_parquet(
            tmp_path / "t.parquet", tmp_path / "log", arrival="at", outcome="out", numbers=numbers, progress=False
        )
        fields = EventLog.open(tmp_path / "log").frame
        assert [len(np.unique(fields.indices[:, j])) for j in range(2)] == [distinct, distinct]
    with pytest.raises(ValueError, match="numbers names 'z', which is no feature"):
        ingest_parquet(tmp_path / "t.parquet", tmp_path / "log", arrival="at", outcome="out", numbers=["z"])
