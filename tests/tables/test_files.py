"""Tables in files: read by name, and written whole or not at all."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pytest

from belated.tables.sources import read_table
from belated.tables.writing import write_beside, write_table

TABLE = pa.table({"id": ["a", "b"], "value": [1.5, 2.5]})


@pytest.mark.parametrize("name", ["t.parquet", "t.pq", "t.csv", "t.tsv", "t.txt"])
def test_there_and_back(tmp_path, name):
    write_table(TABLE, tmp_path / name)
    assert read_table(tmp_path / name).to_pydict() == TABLE.to_pydict()
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_gzipped_text_and_folders(tmp_path):
    for part, rows in (("a", "id,value\nx,1\n"), ("b", "id,value\ny,2\n")):
        with gzip.open(tmp_path / f"{part}.csv.gz", "wt") as file:
            file.write(rows)
    assert read_table(tmp_path).to_pydict() == {"id": ["x", "y"], "value": [1, 2]}


def test_kinds_are_kept_where_text_cannot_say_them(tmp_path):
    (tmp_path / "t.csv").write_text("zip,n\n00501,1\n")
    assert read_table(tmp_path / "t.csv", {"zip": "text"})["zip"].to_pylist() == ["00501"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.xls", b"x", "its name must end in"),
        ("t.csv", b"", "the file is empty"),
        ("t.csv", b"a,b\n", "the file has columns but no rows"),
        (
            "t.csv",
            b"a;b\n1;2\n",
            "the first line has no commas, but 1 semicolon. If that separates its columns, say --sep ';'",
        ),
        ("t.csv", b"a,a\n1,2\n", "several columns are named 'a'"),
        ("t.parquet", b"PAR1 broken", "not a whole Parquet file"),
    ],
)
def test_complaints_are_about_the_file(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        read_table(tmp_path / name)


def test_an_interrupt_leaves_the_old_file(tmp_path):
    write_table(TABLE, tmp_path / "t.csv")
    before = (tmp_path / "t.csv").read_bytes()

    def interrupted(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_beside(tmp_path / "t.csv", interrupted)
    assert (tmp_path / "t.csv").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]
