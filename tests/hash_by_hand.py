"""The documented hash, written down again in plain Python."""

from __future__ import annotations

WORD = 2**64 - 1


def mix(h):
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h = (h ^ (h >> 33)) * factor & WORD
    return h ^ (h >> 33)


def fnv(h, text):
    for byte in text:
        h = (h ^ byte) * 0x100000001B3 & WORD
    return h


def place(field, value, n_columns=2**24, seed=0):
    """The column of a value of a field."""
    text = b"\xff" if value is None else str(value).encode()
    return mix(fnv(mix(fnv(0xCBF29CE484222325 ^ seed, field.encode())), text)) % n_columns
