"""Where a value of a field goes: the same column on every machine and in every version.

The column of a value is ``mix(fnv(start, bytes)) mod n_columns``, all in unsigned 64-bit arithmetic, where

- ``bytes`` are the value's UTF-8 text; a whole number is its decimal text, a truth value ``true`` or ``false``, and a
  missing value the single byte 255, which occurs in no UTF-8 text;
- ``fnv(h, bytes)`` folds each byte b in turn: h = (h xor b) * 0x100000001B3 (FNV-1a);
- ``start`` = mix(fnv(0xCBF29CE484222325 xor seed, the field's name in UTF-8)), so that fields differ;
- ``mix`` is the finalizer of MurmurHash3: h ^= h >> 33; h *= 0xFF51AFD7ED558CCD; h ^= h >> 33; h *= 0xC4CEB9FE1A85EC53;
  h ^= h >> 33.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from belated.compiling import njit
from belated.tables.frames import decoded, is_text
from belated.threads import compiled
from belated.typing import Ints, SmallInts

Bytes = NDArray[np.uint8]

_PRIME = np.uint64(0x100000001B3)
_BASIS = np.uint64(0xCBF29CE484222325)
MISSING = np.uint64(255)


@njit(inline="always")
def mix(h: Any) -> Any:
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    return h ^ (h >> np.uint64(33))


@njit(inline="always")
def fold(h: Any, byte: Any) -> Any:
    return (h ^ np.uint64(byte)) * _PRIME


@njit(inline="always")
def into(h: Any, n_columns: Any) -> Any:
    """h mod n_columns, without a division where that is a power of 2."""
    return h & (n_columns - np.uint64(1)) if n_columns & (n_columns - np.uint64(1)) == np.uint64(0) else h % n_columns


@njit()
def _start(name: Bytes, seed: int) -> Any:
    h = _BASIS ^ np.uint64(seed)
    for byte in name:
        h = fold(h, byte)
    return mix(h)


def field_starts(names: list[str], seed: int) -> NDArray[np.uint64]:
    """Where the hash of each field begins."""
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed={seed!r} must be at least 0.")
    return np.array([_start(np.frombuffer(name.encode(), np.uint8), seed) for name in names], dtype=np.uint64)


@compiled()
def _hash_text(offsets: Any, data: Bytes, valid: Any, start: Any, n_columns: Any, out: SmallInts) -> None:
    for i in nb.prange(out.size):
        h = start
        if valid[i]:
            for p in range(np.uint64(offsets[i]), np.uint64(offsets[i + 1])):
                h = fold(h, data[p])
        else:
            h = fold(h, MISSING)
        out[i] = into(mix(h), n_columns)


@compiled()
def _hash_whole(values: Ints, valid: Any, start: Any, n_columns: Any, out: SmallInts) -> None:
    for i in nb.prange(out.size):
        h = start
        if not valid[i]:
            h = fold(h, MISSING)
        else:
            rest = np.uint64(values[i])
            if values[i] < 0:
                h = fold(h, 45)  # "-"
                rest = np.uint64(0) - rest
            turned, digits = np.uint64(0), 0  # the digits in reverse; up to 19 fit
            while digits == 0 or rest > np.uint64(0):
                turned = turned * np.uint64(10) + rest % np.uint64(10)
                rest //= np.uint64(10)
                digits += 1
            for _ in range(digits):
                h = fold(h, np.uint64(48) + turned % np.uint64(10))
                turned //= np.uint64(10)
        out[i] = into(mix(h), n_columns)


def hash_column(column: pa.Array, name: str, start: np.uint64, n_columns: int) -> SmallInts:
    """The columns to which the values of one Arrow array go."""
    kind = column.type
    if pa.types.is_dictionary(kind) and len(column.dictionary) < len(column):
        words = hash_column(column.dictionary, name, start, n_columns)
        missing = hash_column(pa.nulls(1), name, start, n_columns)
        codes = np.asarray(column.indices.fill_null(len(words)))
        return np.concatenate([words, missing])[codes]
    column = decoded(column)
    kind = column.type
    out = np.empty(len(column), dtype=np.int32)
    valid = np.asarray(column.is_valid())
    if pa.types.is_floating(kind):
        numbers = np.asarray(column.fill_null(np.nan), dtype=np.float64)
        valid = ~np.isnan(numbers)
        whole = np.where(valid, numbers, 0.0)
        if (whole != np.rint(whole)).any() or np.abs(whole).max(initial=0.0) > 2**53:
            raise ValueError(
                f"field {name!r} holds fractions, such as {whole[np.argmax(whole != np.rint(whole))]!r}, and a field is a category. "
                f"Put them into buckets first, or leave the column out."
            )
        _hash_whole(whole.astype(np.int64), valid, start, np.uint64(n_columns), out)
    elif pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        values = np.asarray(column.cast(pa.int64()).fill_null(0))
        _hash_whole(values, valid, start, np.uint64(n_columns), out)
    elif is_text(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        text = column.cast(pa.large_string())
        _, offsets, data = text.buffers()
        places = (
            np.frombuffer(offsets, np.int64)[text.offset : text.offset + len(text) + 1]
            if len(text)
            else np.zeros(1, np.int64)
        )
        characters = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        _hash_text(places, characters, valid, start, np.uint64(n_columns), out)
    else:
        raise ValueError(
            f"field {name!r} holds {kind}, which is no category. Convert it to text, or leave the column out."
        )
    return out
