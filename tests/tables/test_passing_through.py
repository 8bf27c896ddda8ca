"""predict adds a column, and everything else comes out as it went in."""

from __future__ import annotations

import csv
import gzip
import io
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from effort import given_some
from hypothesis import strategies as st

from belated import EventLog, train
from belated.cli import main
from belated.tables.passing_through import write_with_column
from belated.tables.sources import open_files, read_table
from belated.tables.text_files import TextFormat

ROWS = (
    'zip,id,campaign,note,price\r\n00501,12345678901234567890,a,"two\r\nlines, and ""quotes""",1.50\r\n'
    "01067,12345678901234567891,b,,2\r\n\r\n10115,12345678901234567892,NA, padded ,NA\r\n"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(0)
    n = 800
    at = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(rng.uniform(0, 40, n)), "D").floor("s")
    campaign = rng.choice(["a", "b", "NA"], n)
    out = (at + pd.to_timedelta(rng.exponential(2, n), "D").floor("s")).where(
        rng.random(n) < np.where(campaign == "a", 0.5, 0.2)
    )
    frame = pd.DataFrame(
        {"at": at, "out": out, "campaign": campaign, "price": rng.normal(size=n), "probability": rng.normal(size=n)}
    )
    folder = tmp_path_factory.mktemp("models")
    for name, features in (("plain", ["campaign", "price"]), ("named", ["campaign", "probability"])):
        log = EventLog.from_frame(frame, arrival="at", outcome="out", features=features)
        train(log, horizon="5d", method="bl", l2=1e-3, window="2d").save(folder / f"{name}.skops")
    return folder


def predict(*words):
    return CliRunner().invoke(main, ["predict", *map(str, words)])


def test_text_comes_out_byte_for_byte(model, tmp_path):
    (tmp_path / "rows.csv").write_bytes(ROWS.encode())
    done = predict(model / "plain.skops", tmp_path / "rows.csv", "--out", tmp_path / "out.csv")
    assert done.exit_code == 0, done.stderr
    found = (tmp_path / "out.csv").read_bytes().decode()
    p = [float(row["probability"]) for row in csv.DictReader(io.StringIO(found, newline=""))]
    lines = ROWS.replace("price\r\n", "price,probability\r\n")
    for end, value in zip(('"",1.50', '"2\r\n', "NA\r\n"), p, strict=True):
        assert repr(value) in found, end
    for value in p:
        found = found.replace(f",{value!r}", "", 1)
    assert found == lines


@pytest.mark.parametrize("compress", [False, True])
def test_standard_output_gets_the_table_and_nothing_else(model, tmp_path, compress):
    name = "rows.csv.gz" if compress else "rows.csv"
    (tmp_path / name).write_bytes(gzip.compress(ROWS.encode()) if compress else ROWS.encode())
    done = predict(model / "plain.skops", tmp_path / name, "--out", "-")
    assert done.exit_code == 0, done.stderr
    assert "mean probability" in done.stderr and "mean probability" not in done.stdout


def test_other_kinds_of_files_keep_every_value(model, tmp_path):
    (tmp_path / "rows.csv").write_bytes(ROWS.encode())
    for name in ("out.parquet", "out.tsv", "out.jsonl", "out.arrow"):
        assert predict(model / "plain.skops", tmp_path / "rows.csv", "--out", tmp_path / name).exit_code == 0
        kinds = dict.fromkeys(["zip", "id", "note"], "text")
        table = read_table(tmp_path / name, kinds)
        assert table["zip"].to_pylist() == ["00501", "01067", "10115"]
        assert table["id"].to_pylist() == [f"1234567890123456789{k}" for k in range(3)]
        assert table["note"].to_pylist()[0].replace("\r", "") == 'two\nlines, and "quotes"'


def test_parquet_keeps_its_types(model, tmp_path):
    table = pa.table({
        "campaign": pa.array(["a", "b"]).dictionary_encode(),
        "price": pa.array([1.5, None], pa.float32()),
        "when": pa.array([0, 1], pa.timestamp("ns", tz="Europe/Berlin")),
        "many": [[1], [2, 3]],
        "big": pa.array([2**63, 5], pa.uint64()),
    })  # fmt: skip
    pq.write_table(table, tmp_path / "rows.parquet")
    done = predict(model / "plain.skops", tmp_path / "rows.parquet", "--out", tmp_path / "out.parquet")
    assert done.exit_code == 0, done.stderr
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.drop(["probability"]).schema.equals(pq.read_table(tmp_path / "rows.parquet").schema)
    assert found.drop(["probability"]).equals(pq.read_table(tmp_path / "rows.parquet"))


def test_json_lines_keep_their_bytes(model, tmp_path):
    text = '{"campaign": "a", "price": 1.50, "id": 12345678901234567890123}\n{"campaign":"b","price":null,"id":1 }\n'
    (tmp_path / "rows.jsonl").write_text(text)
    done = predict(model / "plain.skops", tmp_path / "rows.jsonl", "--out", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.stderr
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert [line.split(', "probability"')[0] for line in lines] == [line.rstrip("}") for line in text.splitlines()]
    assert len(read_table(tmp_path / "out.jsonl")["probability"]) == 2


def test_a_feature_of_that_name_works(model, tmp_path):
    (tmp_path / "rows.csv").write_text("campaign,probability\na,0.3\nb,0.1\n")
    done = predict(model / "named.skops", tmp_path / "rows.csv", "--out", tmp_path / "out.csv")
    assert done.exit_code == 2 and "Name the new one with --column" in done.stderr
    done = predict(model / "named.skops", tmp_path / "rows.csv", "--out", tmp_path / "out.csv", "--column", "p")
    assert done.exit_code == 0 and (tmp_path / "out.csv").read_text().startswith("campaign,probability,p\na,0.3,0.")


def test_what_was_a_number_and_is_none_now_is_counted(model, tmp_path):
    (tmp_path / "rows.csv").write_text("campaign,price\na,1.5\nb,cheap\na,NA\nb,dear\n")
    done = predict(model / "plain.skops", tmp_path / "rows.csv", "--out", "-")
    assert done.exit_code == 2 and "column 'price': 2 rows are no number, the first at row 1 (cheap)" in done.stderr


def test_several_files_become_one(model, tmp_path):
    (tmp_path / "a.csv").write_text("campaign,price\na,1\n")
    (tmp_path / "b.csv").write_text("campaign,price\nb,2\n")
    done = predict(model / "plain.skops", tmp_path / "a.csv", tmp_path / "b.csv", "--out", tmp_path / "out.csv")
    assert done.exit_code == 0 and pd.read_csv(tmp_path / "out.csv")["campaign"].tolist() == ["a", "b"]


def test_quotes_that_are_no_quotes(tmp_path):
    """Where lines cannot be told by their quotes, the table is written anew, with the same values."""
    (tmp_path / "rows.csv").write_text('size,x\n5" pipe,1\n6 pipe,2\n7" pipe,3\n')
    write_with_column(open_files([tmp_path / "rows.csv"]), "p", np.array([0.1, 0.2, 0.3]), tmp_path / "out.csv")
    table = read_table(tmp_path / "out.csv")
    assert table["size"].to_pylist() == ['5" pipe', "6 pipe", '7" pipe'] and table["p"].to_pylist() == [0.1, 0.2, 0.3]


FIELDS = st.text(st.sampled_from('ab ,;"\n\r\té0'), max_size=6)


@given_some(st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=5))
def test_any_quoted_text_comes_out_as_it_went_in(rows):
    quoted = [",".join(f'"{field.replace(chr(34), chr(34) * 2)}"' for field in row) for row in rows]
    p = np.arange(len(rows)) / 7
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder, "rows.csv"), Path(folder, "out.csv")
        source.write_bytes("\n".join(["a,b", *quoted]).encode())
        write_with_column(open_files([source]), "p", p, out)
        expected = "\n".join(["a,b,p", *(f"{row},{value!r}" for row, value in zip(quoted, p.tolist(), strict=True))])
        assert out.read_bytes() == expected.encode()


def test_quotes_open_at_the_beginning_of_a_field_only(tmp_path):
    (tmp_path / "rows.csv").write_text('size,note\n5" pipe,x\na,"one\ntwo\nthree"\n6" pipe,y\n')
    write_with_column(open_files([tmp_path / "rows.csv"]), "p", np.array([0.1, 0.2, 0.3]), tmp_path / "out.csv")
    expected = 'size,note,p\n5" pipe,x,0.1\na,"one\ntwo\nthree",0.2\n6" pipe,y,0.3\n'
    assert (tmp_path / "out.csv").read_text() == expected


def test_a_decimal_comma_among_commas_is_quoted(tmp_path):
    (tmp_path / "rows.csv").write_text('x,price\na,"1,5"\n')
    source = open_files([tmp_path / "rows.csv"], TextFormat(decimal=","))
    write_with_column(source, "p", np.array([0.25]), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == 'x,price,p\na,"1,5","0,25"\n'


def test_the_name_is_written_in_the_encoding_of_the_file(tmp_path):
    (tmp_path / "rows.csv").write_bytes("x,ü\na,ö\n".encode("latin-1"))
    source = open_files([tmp_path / "rows.csv"], TextFormat(encoding="latin-1"))
    write_with_column(source, "wä", np.array([0.25]), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes().decode("latin-1") == "x,ü,wä\na,ö,0.25\n"
    with pytest.raises(ValueError, match="cannot be written in latin-1"):
        write_with_column(source, "Ω", np.array([0.25]), tmp_path / "out.csv")


def test_what_folders_say_passes_through(tmp_path):
    for month in (1, 2):
        (tmp_path / f"month={month}").mkdir()
        pq.write_table(pa.table({"x": [month]}), tmp_path / f"month={month}" / "p.parquet")
    write_with_column(open_files([tmp_path]), "p", np.array([0.1, 0.2]), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == ['"x","month","p"', '1,"1",0.1', '2,"2",0.2']


def test_files_of_one_dialect_become_one_of_it(tmp_path):
    (tmp_path / "a.csv").write_text("x;price\na;1,5")
    (tmp_path / "b.csv").write_text("x;price\nb;2,5\n")
    source = open_files([tmp_path / "a.csv", tmp_path / "b.csv"], TextFormat(";", ","))
    write_with_column(source, "p", np.array([0.25, 0.5]), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "x;price;p\na;1,5;0,25\nb;2,5;0,5\n"


def test_files_with_columns_in_another_order_are_joined_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("y,x\n4,3\n")
    write_with_column(open_files([tmp_path / "a.csv", tmp_path / "b.csv"]), "p", np.ones(2), tmp_path / "out.csv")
    assert read_table(tmp_path / "out.csv").to_pydict() == {"x": [1, 3], "y": [2, 4], "p": [1, 1]}


def test_json_to_another_kind_keeps_long_numbers_and_dates(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"id": 12345678901234567890, "day": "2024-01-01", "n": 1}\n{"id": 1, "day": null, "n": 2}\n'
    )
    write_with_column(open_files([tmp_path / "a.jsonl"]), "p", np.array([0.25, 0.5]), tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").to_pydict() == {
        "id": ["12345678901234567890", "1"], "day": ["2024-01-01", None], "n": [1, 2], "p": [0.25, 0.5]
    }  # fmt: skip
    (tmp_path / "b.jsonl").write_text('{"id": 2, "day": "x", "n": 3}')
    write_with_column(open_files([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]), "p", np.ones(3), tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text().splitlines()[2] == '{"id": 2, "day": "x", "n": 3, "p": 1.0}'


def test_lists_do_not_go_into_text(tmp_path):
    pq.write_table(pa.table({"many": [[1], [2]]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="column 'many' holds lists or records, which text cannot"):
        write_with_column(open_files([tmp_path / "a.parquet"]), "p", np.ones(2), tmp_path / "out.csv")


def test_an_input_is_never_written_over(model, tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("campaign,price\na,1\n")
    for rows in (tmp_path, tmp_path / "*.csv"):
        done = predict(model / "plain.skops", rows, "--out", tmp_path / "b.csv")
        assert done.exit_code == 2 and "is read, or written, by this command already" in done.stderr
    assert (tmp_path / "b.csv").read_text() == "campaign,price\na,1\n"


def test_decimal_commas_stay_decimal_commas(tmp_path):
    (tmp_path / "rows.csv").write_text("x;price\na;1,5\n")
    source = open_files([tmp_path / "rows.csv"], TextFormat(";", ","))
    write_with_column(source, "p", np.array([0.25]), tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "x;price;p\na;1,5;0,25\n"
