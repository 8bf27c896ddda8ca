"""One paper a file: which records a row puts on the stream, and with which weights they are learned."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from belated.streaming.methods.base import StreamMethod

# The name of each method, the file it is in, and its class.
STREAM_METHODS: dict[str, tuple[str, str]] = {
    "vanilla": ("plain_records", "Vanilla"),
    "fnw": ("fake_negatives", "FNW"),
    "fnc": ("fake_negatives", "FNC"),
    "es-dfm": ("elapsed_sampling", "ESDFM"),
    "defer": ("real_negatives", "DEFER"),
    "defuse": ("label_correction", "DEFUSE"),
    "ddfm": ("double_negatives", "DDFM"),
    "hazard-heads": ("hazard_heads", "HazardHeads"),
    "dfm-stream": ("fixed_ages", "FixedAges"),
    "final": ("plain_records", "FinalLabels"),
}


def resolve_stream_method(method: str | StreamMethod) -> StreamMethod:
    """The method that a name or an object means.

    >>> resolve_stream_method("defuse")
    DEFUSE()
    """
    from belated.streaming.methods.base import StreamMethod

    if isinstance(method, StreamMethod):
        return method
    if isinstance(method, str) and method in STREAM_METHODS:
        file, name = STREAM_METHODS[method]
        found: StreamMethod = getattr(import_module(f"belated.streaming.methods.{file}"), name)()
        return found
    raise ValueError(
        f"method={method!r} is not known; choose one of {', '.join(STREAM_METHODS)}, or pass a method object."
    )
