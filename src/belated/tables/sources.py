"""Sources: tables in files or in a database, whose columns are known before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from belated.tables.files import DataFile, find_files, first_line, is_compressed, is_text_kind
from belated.tables.frames import is_text
from belated.tables.json_files import read_json
from belated.tables.missing import mark_missing
from belated.tables.text_files import TextFormat, header_of, read_text


class Source:
    """A table that has not been read yet."""

    name: str

    @property
    def columns(self) -> list[str]:
        raise NotImplementedError

    def read(self, columns: Sequence[str] | None = None, kinds: Mapping[str, str] | None = None) -> pa.Table:
        """Read some columns, by default all.

        ``kinds`` says of columns whether they hold ``"text"``, ``"category"``, ``"number"`` or ``"boolean"`` (see
        :func:`belated.tables.frames.kinds_of`); text files cannot say so themselves.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class FileSource(Source):
    """Files that together are one table."""

    name: str
    files: list[DataFile]
    how: TextFormat = TextFormat()  # noqa: RUF009 (it is frozen)
    _whole: dict[Path, pa.Table] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def columns(self) -> list[str]:
        first = self._columns_of(self.files[0])
        for file in self.files[1:]:
            differ = sorted(set(self._columns_of(file)) ^ set(first))
            if differ:
                raise ValueError(
                    f"{self.name}: the columns of {file.name} and {self.files[0].name} differ in {', '.join(differ)}. If not all files "
                    f"belong to the log, name those that do, or a pattern such as 'folder/clicks-*.csv'."
                )
        return first

    def _columns_of(self, file: DataFile) -> list[str]:
        if is_text_kind(file.kind):
            names = header_of(file, self.how)
        elif file.kind == ".jsonl":
            names = self._json(file).column_names
        else:
            names = _dataset(file).schema.names
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(
                f"{file.name}: several columns are named {', '.join(map(repr, repeated))}. Rename or drop them."
            )
        return [*names, *(name for name in file.of_folders if name not in names)]

    def _json(self, file: DataFile) -> pa.Table:
        """A file that must be read whole to know its columns, and is read once."""
        if file.path not in self._whole:
            self._whole[file.path] = read_json(file)
        return self._whole[file.path]

    def read(self, columns: Sequence[str] | None = None, kinds: Mapping[str, str] | None = None) -> pa.Table:
        wanted = self.columns if columns is None else list(columns)
        tables = [self._read_file(file, wanted, kinds or {}) for file in self.files]
        unlike = [name for name in wanted if _unlike({table.schema.field(name).type for table in tables})]
        if unlike:  # text files can only guess, each by itself: then it is text
            kinds = {**(kinds or {}), **dict.fromkeys(unlike, "text")}
            tables = [self._read_file(file, wanted, kinds) for file in self.files]
        try:
            table = pa.concat_tables(tables, promote_options="permissive") if len(tables) > 1 else tables[0]
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(f"{self.name}: the files do not fit together: {first_line(error)}.") from None
        if table.num_rows == 0:
            raise ValueError(f"{self.name}: the file has columns but no rows.")
        said = {name for file in self.files for name in file.of_folders}
        for name in said & set(wanted):
            if (kinds or {}).get(name) != "text":
                table = _as_numbers(table, name)
        return one_kind_of_text(table)

    def _read_file(self, file: DataFile, wanted: list[str], kinds: Mapping[str, str]) -> pa.Table:
        inside = [name for name in wanted if name not in file.of_folders]
        if is_text_kind(file.kind):
            table = read_text(file, self.how, inside, kinds)
        elif file.kind == ".jsonl":
            table = mark_missing(self._json(file).select(inside), self.how.na)
        else:
            table = mark_missing(one_kind_of_text(read_typed(file, inside)), self.how.na)
        for name, value in file.of_folders.items():
            if name in wanted:
                table = table.append_column(name, pa.array([value] * table.num_rows, pa.string()))
        return table.select(wanted)


def open_files(names: Sequence[str | Path], how: TextFormat | None = None) -> FileSource:
    """The table that files, folders or patterns hold."""
    how = how or TextFormat()
    files = find_files(names, any_text=how.sep is not None)
    first = Path(names[0]).name or Path(names[0]).resolve().name
    shown = first if len(names) == 1 else f"{first} and {len(names) - 1} more"
    return FileSource(shown, files, how)


def read_table(
    path: str | Path,
    kinds: Mapping[str, str] | None = None,
    columns: Sequence[str] | None = None,
    how: TextFormat | None = None,
) -> pa.Table:
    """Read a file, a folder or all files of a pattern as one table; see :meth:`Source.read`."""
    return open_files([path], how).read(columns, kinds)


def read_typed(file: DataFile, columns: Sequence[str] | None) -> pa.Table:
    """Columns of a Parquet or Arrow file as they are."""
    try:
        table = _dataset(file).to_table(columns=None if columns is None else list(columns))
        table.validate(full=True)  # of damaged text, which nobody else looks at
        return table
    except (pa.ArrowException, OSError) as error:
        raise _not_whole(file, error) from None


def one_kind_of_text(table: pa.Table) -> pa.Table:
    """Text of every kind as large text."""
    return table.cast(pa.schema([f.with_type(pa.large_string()) if is_text(f.type) else f for f in table.schema]))


def _dataset(file: DataFile) -> Any:
    if is_compressed(file.path):
        raise ValueError(f"{file.name}: such a file is compressed inside, and not as a whole. Unpack it.")
    try:
        data = ds.dataset(file.path, format="parquet" if file.kind == ".parquet" else "ipc")
        list(data.schema.names)  # names may be damaged too
        return data
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _not_whole(file, error) from None


def _not_whole(file: DataFile, error: Exception) -> ValueError:
    kind = "Parquet" if file.kind == ".parquet" else "Arrow"
    with file.path.open("rb") as stream:
        start = stream.read(512)
    magic = b"PAR1" if kind == "Parquet" else b"ARROW1"
    if not start.startswith(magic) and b"\n" in start and b"\x00" not in start:
        return ValueError(f"{file.name}: not a whole {kind} file but text. Rename it to end in .csv, .tsv or .jsonl.")
    return ValueError(
        f"{file.name}: not a whole {kind} file ({first_line(error)}). Was it cut off while copying? Write it again."
    )


def _unlike(kinds: set[pa.DataType]) -> bool:
    """Whether files disagree about a column: text in one and no text in another, or dates in one and times in another."""
    known = {kind for kind in kinds if not pa.types.is_null(kind)}
    text = {is_text(kind) for kind in known}
    times = {kind for kind in known if pa.types.is_temporal(kind)}
    return len(text) > 1 or len(times) > 1


def _as_numbers(table: pa.Table, name: str) -> pa.Table:
    """What folders say as whole numbers, where all of it is."""
    column = table[name]
    known = column.drop_null()
    if len(known) and pc.all(pc.match_substring_regex(known, r"^-?(0|[1-9]\d{0,17})$")).as_py():
        return table.set_column(table.column_names.index(name), name, column.cast(pa.int64()))
    return table
