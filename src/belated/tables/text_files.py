"""Text in columns: comma-separated files and their kin."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from belated.tables.files import DELIMITERS, DataFile, content_of, first_line, is_compressed
from belated.tables.missing import WORDS_FOR_NOTHING, mark_missing
from belated.tables.records import more_than_a_byte, open_quote
from belated.tables.refusal import refuse

_KINDS = {"text": pa.string(), "category": pa.string(), "number": pa.float64(), "boolean": pa.bool_()}
_NAMES = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_LONGEST_HEADER = 1 << 20  # bytes
_DECIMAL_COMMA = r"^[+-]?\d+,\d+$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"


@dataclass(frozen=True)
class TextFormat:
    """How text is written in files.

    ``sep`` separates columns; by default the file's name says it. ``decimal`` is the mark in numbers. ``na`` are words that
    mean a missing value, beside empty text (see :mod:`belated.tables.missing`).
    """

    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    na: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("sep", self.sep), ("decimal", self.decimal)):
            if value is not None and (len(value) != 1 or not value.isascii() or value in '"\r\n'):
                raise ValueError(f"--{name} {value}: must be a single character, such as ';' (or tab).")
        if self.sep == self.decimal:
            raise ValueError(f"--sep and --decimal are both {self.sep!r}: no number could be told from two columns.")
        try:
            "".encode(self.encoding)
        except LookupError:
            raise ValueError(f"--encoding {self.encoding}: not known. Try utf-8, latin-1, cp1252 or utf-16.") from None

    def delimiter(self, file: DataFile) -> str:
        return self.sep or DELIMITERS[file.kind]


def header_of(file: DataFile, how: TextFormat) -> list[str]:
    """The names of the columns, which the first line holds."""
    delimiter = how.delimiter(file)
    start = content_of(file.path, _LONGEST_HEADER)
    if start[:4] == b"PAR1":
        raise ValueError(f"{file.name}: its name says text, but it is a Parquet file. Rename it to end in .parquet.")
    encoding = "utf-8-sig" if how.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else how.encoding
    if b"\x00" in start.split(b"\n", 1)[0] and "16" not in encoding and "32" not in encoding:
        raise ValueError(
            f"{file.name}: holds binary data, or text that is not UTF-8. If it is text, try --encoding utf-16."
        )
    try:
        text = start.decode(encoding)
    except UnicodeDecodeError as error:
        if error.start < len(start) - 4 and "\n" not in start[: error.start].decode(encoding, "ignore"):
            raise _not_in(file, how) from None
        text = start.decode(encoding, "ignore")
    try:
        names = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except (StopIteration, csv.Error):
        raise ValueError(f"{file.name}: cannot be read: it begins with no line of column names.") from None
    if len(names) == 1:
        line = text.split("\n", 1)[0]
        other = max((d for d in _NAMES if d != delimiter), key=line.count)
        if line.count(other):
            count = line.count(other)
            raise ValueError(
                f"{file.name}: the first line has no {_NAMES.get(delimiter, repr(delimiter))}, but {count} "
                f"{_NAMES[other] if count > 1 else _NAMES[other][:-1]}. If that separates its columns, say --sep "
                f"{'tab' if other == chr(9) else repr(other)}."
            )
    return names


def read_text(file: DataFile, how: TextFormat, columns: list[str], kinds: Mapping[str, str]) -> pa.Table:
    """Some columns; those that ``kinds`` knows as text, numbers or booleans, the others as they look."""
    _refuse_open_quote(file, how)
    types = {name: _KINDS[kinds[name]] for name in columns if name in kinds}
    table = _parse(file, how, columns, types)
    # A column without a single number, time or truth value may hold a word: it is text, if not nothing.
    nothing = [field.name for field in table.schema if pa.types.is_null(field.type)]
    if nothing:
        again = _parse(file, how, nothing, dict.fromkeys(nothing, pa.string()))
        for name in nothing:
            if pc.any(pc.not_equal(again[name], "")).as_py():
                table = table.set_column(table.column_names.index(name), name, again[name])
    if how.decimal == ".":
        _suggest_decimal_comma(table, file, kinds)
    return mark_missing(table, how.na)


def read_as_text(file: DataFile, how: TextFormat) -> pa.Table:
    """Every column as the text that it is, nothing left out or guessed."""
    header = header_of(file, how)
    return _parse(file, how, header, dict.fromkeys(header, pa.string()), ())


def _parse(
    file: DataFile,
    how: TextFormat,
    columns: list[str],
    types: dict[str, pa.DataType],
    words: Sequence[str] | None = None,
) -> pa.Table:
    convert = pcsv.ConvertOptions(
        column_types=types,
        include_columns=columns,
        strings_can_be_null=False,  # which words of text are missing is decided later, the same way for every kind of file
        null_values=[*WORDS_FOR_NOTHING, *how.na] if words is None else list(words),
        decimal_point=how.decimal,
    )
    try:
        table = pcsv.read_csv(
            io.BytesIO(content_of(file.path)) if is_compressed(file.path) else file.path,
            read_options=pcsv.ReadOptions(encoding=how.encoding),
            parse_options=pcsv.ParseOptions(delimiter=how.delimiter(file), newlines_in_values=True),
            convert_options=convert,
        )
        names = list(table.column_names)
    except UnicodeError:
        raise _not_in(file, how) from None
    except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
        text = first_line(error)
        if "conversion error" in text:
            _refuse_unreadable(file, how, types)
        if "Expected" in text and "columns" in text:
            advice = "Every line must have as many fields as the first; quote fields that hold the separator."
        else:
            advice = "Is it text in columns?"
        raise ValueError(f"{file.name}: cannot be read ({text}). {advice}") from None
    for name in names:
        if pa.types.is_binary(table.schema.field(name).type):
            raise _not_in(file, how, name)
    return table


def _refuse_open_quote(file: DataFile, how: TextFormat) -> None:
    """Refuse a file that ends inside quotes: all rows after the one that opens would be taken for a single value."""
    if more_than_a_byte(how.encoding):
        return
    whole = content_of(file.path) if is_compressed(file.path) else np.memmap(file.path, np.uint8, mode="r")
    line = open_quote(np.frombuffer(whole, np.uint8), ord(how.delimiter(file)))
    if line:
        raise ValueError(
            f"{file.name}: a quote opens in line {line} and never closes, so everything after it would be one value. Close it, or double "
            f"it if it belongs to the text."
        )


def _refuse_unreadable(file: DataFile, how: TextFormat, types: dict[str, pa.DataType]) -> None:
    """Say which values of a column are not of the kind that it held in training."""
    strict = [name for name, kind in types.items() if not pa.types.is_string(kind)]
    table = _parse(file, how, strict, dict.fromkeys(strict, pa.string()))
    number = (
        rf"[+-]?(\d+({re.escape(how.decimal)}\d*)?|{re.escape(how.decimal)}\d+)([eE][+-]?\d+)?|[+-]?(?i:inf|infinity)"
    )
    for name in strict:
        flag, words = pa.types.is_boolean(types[name]), {*WORDS_FOR_NOTHING, *how.na}
        form = re.compile(r"(?i:true|false)|[01]" if flag else number)
        values = [value or "" for value in table[name].to_pylist()]
        bad = np.array([value not in words and not form.fullmatch(value.strip()) for value in values])
        if not flag and bad.any() and re.fullmatch(_DECIMAL_COMMA.strip("^$"), values[int(np.argmax(bad))]):
            raise ValueError(f"{file.name}: column {name!r} holds numbers with a decimal comma. Say --decimal ','.")
        what = "{count} neither true nor false" if flag else "{count} no number"
        refuse(
            bad, name, what, values, f"It held {'truth values' if flag else 'numbers'} in training. Correct these rows."
        )


def _suggest_decimal_comma(table: pa.Table, file: DataFile, kinds: Mapping[str, str]) -> None:
    for field in table.schema:
        if field.name in kinds or not pa.types.is_string(field.type):
            continue
        sample = table[field.name].slice(0, 1000)
        filled = sample.filter(pc.not_equal(sample, ""))
        if not len(filled) or not pc.all(pc.match_substring_regex(filled, _DECIMAL_COMMA)).as_py():
            continue
        example = filled[0].as_py()
        if pc.all(pc.match_substring_regex(filled, _THOUSANDS)).as_py():
            raise ValueError(
                f"{file.name}: column {field.name!r} holds numbers with a comma, such as {example}. If that is a decimal comma, say "
                f"--decimal ','. If it separates thousands, write the numbers without it."
            )
        raise ValueError(
            f"{file.name}: column {field.name!r} holds numbers with a decimal comma, such as {example}. Say --decimal ','."
        )


def _not_in(file: DataFile, how: TextFormat, column: str | None = None) -> ValueError:
    where = "the file" if column is None else f"column {column!r}"
    other = "latin-1 or cp1252" if how.encoding.lower() in ("utf-8", "utf8") else "utf-8"
    return ValueError(
        f"{file.name}: {where} holds text that is not {how.encoding.upper()}. Say how it was written with --encoding, as in "
        f"--encoding {other}."
    )
