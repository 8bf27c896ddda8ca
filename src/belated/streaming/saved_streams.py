"""Checkpoints: a stream, what learns from it, and how far the events had been read, in one file that is whole or not there.

The file holds arrays and JSON, and nothing that could run. Objects are not in it: a program makes them as it always does, and
what they had learned is put back.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import joblib
import numpy as np

from belated.tables.writing import write_beside

if TYPE_CHECKING:
    from belated.streaming.online_classifier import OnlineClassifier
    from belated.streaming.stream import Stream

_FORMAT = 1


def write_checkpoint(
    path: str | Path, stream: Stream, classifiers: Mapping[str, OnlineClassifier], position: Any
) -> None:
    """Write all of it."""
    arrays: dict[str, Any] = {f"stream/{name}": value for name, value in stream.state().items()}
    for key, classifier in classifiers.items():
        arrays |= {f"classifier/{key}/{name}": value for name, value in classifier.state().items()}
    about = {
        "format": _FORMAT,
        "made_by": _made_by(stream, classifiers),
        "position": position,
        "stream": stream.about(),
        "classifiers": list(classifiers),
    }
    try:
        text = json.dumps(about)
        same = json.loads(text)["position"] == position
    except TypeError:
        same = False
    if not same:
        raise ValueError(
            f"position={position!r} would not come back as it is: give plain data, such as a number, or a dict of text to numbers."
        )
    arrays["about"] = np.frombuffer(text.encode(), dtype=np.uint8)

    def write(file: IO[bytes]) -> None:
        np.savez(file, **arrays)

    write_beside(path, write)


def read_checkpoint(path: str | Path, stream: Stream, classifiers: Mapping[str, OnlineClassifier]) -> Any:
    """Put back what a file holds, and say how far the events had been read; None where there is no file."""
    path = Path(path)
    if not path.exists():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
        parts = (about["format"], about["made_by"], about["position"], about["stream"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path.name}: no checkpoint of a stream, or a damaged one ({type(error).__name__})."
        ) from None
    form, made_by, position, of_stream = parts
    if form != _FORMAT:
        raise ValueError(f"{path.name}: a checkpoint of format {form!r}, and this version of belated reads {_FORMAT}.")
    mine = _made_by(stream, classifiers)
    if made_by != mine:
        other = next(name for name in {**made_by, **mine} if made_by.get(name) != mine.get(name))
        then, now = (one.get(other, ["not there"])[0] for one in (made_by, mine))
        raise ValueError(
            f"{path.name}: its {other} is {then}, and here it is {now}. Use the parameters it was written "
            f"with, or begin anew with another file."
        )
    stream.restore(_under(arrays, "stream/"), of_stream)
    for key, classifier in classifiers.items():
        classifier.put_back(_under(arrays, f"classifier/{key}/"))
    return position


def _under(arrays: dict[str, Any], start: str) -> dict[str, Any]:
    return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}


def _made_by(stream: Stream, classifiers: Mapping[str, OnlineClassifier]) -> dict[str, list[str]]:
    """What the objects were made with, in words and, since words may be cut short, as a hash."""
    methods = {name: (type(one).__name__, one.get_params()) for name, one in stream.methods.items()}
    found = {"stream": [stream.parameters(), joblib.hash((methods, stream.parameters()))]}
    for name, one in classifiers.items():
        found[name] = [" ".join(repr(one).split()), joblib.hash(one.get_params())]
    return found
