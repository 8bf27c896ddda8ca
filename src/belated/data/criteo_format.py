"""The format of Criteo's conversion logs (Chapelle, KDD 2014): a large text file to hashed fields and times on disk."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from belated.data.ingest import LogWriter
from belated.data.times import NEVER, TimeColumn
from belated.features.hashing import MISSING, field_starts, fold, into, mix
from belated.notices import progress_bar
from belated.threads import compiled
from belated.typing import Ints, SmallInts

CRITEO_FIELDS = [*(f"int{i}" for i in range(1, 9)), *(f"cat{i}" for i in range(1, 10))]

_BLOCK = 32 * 2**20  # bytes of text at a time


def ingest_criteo(
    path: str | Path, out: str | Path, *, n_columns: int = 2**24, seed: int = 0, progress: bool = True
) -> None:
    """Read a file in the format of Criteo's conversion logs (``data.txt``, or gzipped) into the folder ``out``.

    19 columns without a header, separated by tabs: seconds of the click, seconds of the conversion (empty: none), eight
    integers and nine categories, which all become hashed fields named ``int1`` ... ``cat9``. Integers are put into buckets
    first, as Chapelle did (:func:`bucket`). An empty field is a category of its own, where he has none.

    Parameters
    ----------
    path : path
        The file.
    out : path
        The folder to write; :meth:`belated.EventLog.open` reads it.
    n_columns, seed, progress
        As in :func:`belated.ingest_parquet`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from belated import EventLog, ingest_criteo
    >>> rest = [*"12345678", *"abcdefghi"]  # eight integers, nine categories
    >>> lines = [",".join(["0", "3600", *rest]), ",".join(["60", "", *rest])]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = Path(folder, "data.txt").write_text("\\n".join(lines).replace(",", "\\t"))
    ...     done = ingest_criteo(f"{folder}/data.txt", f"{folder}/criteo.log", progress=False)
    ...     print(len(EventLog.open(f"{folder}/criteo.log")))
    2
    """
    starts = field_starts(CRITEO_FIELDS, seed)
    with (
        LogWriter(out, len(CRITEO_FIELDS), {"n_columns": n_columns}) as writer,
        progress_bar(f"Reading {Path(path).name} (bytes)", Path(path).stat().st_size, progress) as advance,
        open_text(path) as file,
    ):
        first_line = 1
        for block in _blocks(file):
            ends = _line_ends(block)
            indices = np.empty((len(ends), len(starts)), dtype=np.int32)
            times = np.empty((2, len(ends)), dtype=np.int64)
            tabs = np.empty(len(ends), dtype=np.int64)
            _parse(block, ends, starts, _EDGES, np.uint64(n_columns), indices, times, tabs)
            bad = np.flatnonzero(tabs != 18)
            if len(bad):
                start = 0 if bad[0] == 0 else int(ends[bad[0] - 1]) + 1
                shown = bytes(block[start : int(ends[bad[0]])])[:80]
                raise ValueError(
                    f"{Path(path).name}: {len(bad)} of {len(ends)} lines from line {first_line} on are not made of 19 fields "
                    f"separated by tabs, the first two of them whole seconds and the next eight integers; the first such is line "
                    f"{first_line + bad[0]} ({shown!r}). Pass the file as it was published, uncompressed or gzipped."
                )
            none = np.zeros(len(ends), dtype=bool)
            click = TimeColumn(times[0], none, "seconds", False)
            writer.add(
                indices, click, TimeColumn(times[1], times[1] == NEVER, "seconds", False), ("click", "conversion")
            )
            first_line += len(ends)
            advance(_position(file))


def bucket(value: int) -> int:
    """The bucket of an integer, on a logarithmic scale: floor(log(v + 0.5) / log(1.5)) for v > 0, others as they are.

    This is what Chapelle does with the integers of this file (``demo/advertising/naive_baseline.py`` in Vowpal Wabbit's
    repository). Small counts keep a bucket each, larger ones share it with those up to half as large again.

    >>> [bucket(v) for v in (-1, 0, 1, 2, 3, 10, 1000)]
    [-1, 0, 1, 2, 3, 5, 17]
    """
    return value if value <= 0 else int(np.searchsorted(_EDGES, value, side="right"))


# The smallest integer v of each bucket b from 1 on: v + 0.5 >= 1.5^b, in whole numbers, so that nothing is rounded.
_EDGES = np.array([-((2 ** (b - 1) - 3**b) // 2**b) for b in range(1, 108)])


@compiled()
def _parse(
    block: Any,
    ends: Any,
    starts: Any,
    edges: Any,
    n_columns: Any,
    indices: SmallInts,
    times: Ints,
    tabs: Any,
) -> None:
    """Each line's two times (microseconds, NEVER where empty), hashed fields, and number of tabs (-1: a bad number)."""
    for line in nb.prange(ends.size):
        p = np.int64(0) if line == 0 else ends[line - 1] + 1
        end = ends[line]
        if end > p and block[end - 1] == 13:
            end -= 1
        seen = 0
        good = True
        for column in range(2):
            value, digits = np.int64(0), 0
            while p < end and block[p] != 9:
                digit = np.int64(block[p]) - 48
                if digit < 0 or digit > 9 or digits > 11:
                    good = False
                value = value * 10 + digit
                digits += 1
                p += 1
            times[column, line] = value * 1_000_000 if digits else NEVER
            if digits == 0 and column == 0:
                good = False
            if p < end:
                p += 1
                seen += 1
        for field in range(starts.size):
            h = starts[field]
            if p >= end or block[p] == 9:
                h = fold(h, MISSING)
            first, value = p, np.int64(0)
            while p < end and block[p] != 9:
                h = fold(h, block[p])
                if field < 8 and not (p == first and block[p] == 45):  # "-"
                    digit = np.int64(block[p]) - 48
                    if digit < 0 or digit > 9 or p - first > 17:
                        good = False
                    value = value * 10 + digit
                p += 1
            if field < 8 and p - first == 1 and block[first] == 45:
                good = False
            if value > 0 and block[first] != 45:
                b = np.searchsorted(edges, value, side="right")
                h = starts[field]
                for unit in (100, 10, 1):
                    if b >= unit:
                        h = fold(h, 48 + b // unit % 10)
            indices[line, field] = into(mix(h), n_columns)
            if p < end and field + 1 < starts.size:
                p += 1
                seen += 1
        tabs[line] = seen if good and p == end else -1


@compiled()
def _line_ends(block: NDArray[np.uint8]) -> Ints:
    """Where the line feeds are."""
    parts = 16
    counts = np.zeros(parts + 1, np.int64)
    for part in nb.prange(parts):
        count = 0
        for p in range(block.size * part // parts, block.size * (part + 1) // parts):
            count += block[p] == 10
        counts[part + 1] = count
    counts = np.cumsum(counts)
    ends = np.empty(counts[-1], np.int64)
    for part in nb.prange(parts):
        place = counts[part]
        for p in range(block.size * part // parts, block.size * (part + 1) // parts):
            if block[p] == 10:
                ends[place] = p
                place += 1
    return ends


def open_text(path: str | Path) -> IO[bytes]:
    """A file, or what is in it where it is gzipped."""
    return gzip.open(path, "rb") if str(path).endswith(".gz") else open(path, "rb")  # type: ignore[return-value]


def _position(file: IO[bytes]) -> int:
    return file.fileobj.tell() if isinstance(file, gzip.GzipFile) else file.tell()


def _blocks(file: IO[bytes]) -> Iterator[NDArray[np.uint8]]:
    """Whole lines, a block at a time."""
    rest = b""
    while True:
        try:
            read = file.read(_BLOCK)
        except (EOFError, zlib.error):
            raise ValueError("the gzipped file is incomplete or damaged. Fetch it again.") from None
        text = rest + read
        if not read and text and not text.endswith(b"\n"):
            text += b"\n"
        cut = text.rfind(b"\n") + 1
        rest = text[cut:]
        if cut:
            yield np.frombuffer(text, np.uint8, cut)
        if not read:
            return
