"""Models in files, through skops: loading one builds known objects and never runs code from the file."""

from __future__ import annotations

import io
import json
import platform
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self
from zipfile import BadZipFile, ZipFile

from belated.extras import MissingExtra
from belated.model_schema import CLASSIFIER, FORMAT, format_of, strange_parts, trusted
from belated.tables.writing import write_beside

if TYPE_CHECKING:
    from belated.classifier import DelayedFeedbackClassifier


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds: a fitted classifier, the columns it wants, and how it came about.

    Attributes
    ----------
    classifier : DelayedFeedbackClassifier
    features : dict of str to str
        The name of each feature column and its kind: text, number, boolean, or category (whole numbers that are read as
        text). Empty where nobody said.
    about : dict
        How the model came about, as plain data.
    """

    classifier: DelayedFeedbackClassifier
    features: dict[str, str] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        import skops.io  # takes two seconds, and few programs save models

        about = {
            **self.about,
            "saved": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in ("belated", "numpy", "scikit-learn", "skops")},
        }
        state = {"format": FORMAT, "classifier": self.classifier, "features": self.features, "about": json.dumps(about)}
        own = "Use pickle or joblib for models with parts of your own."
        try:
            data = skops.io.dumps(state)
        except Exception as error:
            raise ValueError(
                f"{Path(path).name}: not written, because a part of the model is no part of belated ({error}). {own}"
            ) from None

        foreign = strange_parts(_schema(data))
        if foreign:
            raise ValueError(
                f"{Path(path).name}: not written, because {', '.join(foreign[:3])} is no part of belated, and a file with it "
                f"could not be loaded safely. {own}"
            )

        def write(file: IO[bytes]) -> None:
            file.write(data)

        write_beside(path, write)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        import skops.io

        path = Path(path)
        if not path.is_file():
            raise ValueError(
                f"{path}: is a folder; name a file." if path.is_dir() else f"{path}: there is no such file."
            )
        data = path.read_bytes()
        try:
            schema = _schema(data)
        except (BadZipFile, KeyError, ValueError, RuntimeError, NotImplementedError, zlib.error):
            raise ValueError(f"{path.name}: not a model saved by belated, or cut short or damaged since.") from None
        _check_schema(schema, path.name)
        try:
            state = skops.io.loads(data, trusted=trusted())
            _check_state(state)
            about = json.loads(state["about"])
        except MissingExtra as error:
            raise ValueError(f"{path.name}: {error}") from None
        except Exception as error:
            raise ValueError(
                f"{path.name}: a model saved by belated that was damaged or changed since ({type(error).__name__}: {error}). Train it "
                f"again, or take the file from where it came."
            ) from None
        return cls(state["classifier"], state["features"], about)


def _schema(data: bytes) -> Any:
    """What a file says that it holds, as plain data."""
    with ZipFile(io.BytesIO(data)) as file:
        return json.loads(file.read("schema.json"))


def _check_schema(schema: Any, name: str) -> None:
    """Refuse, before anything is built, what this version of belated would not have written."""
    strange = strange_parts(schema)
    foreign = [part for part in strange if not part.startswith("belated.")]
    if foreign:
        raise ValueError(
            f"{name}: refused, because it holds {', '.join(foreign[:3])}, which is no part of a model that belated writes. Nothing "
            f"of it was loaded. Do not trust this file unless you know where it comes from."
        )
    form = format_of(schema)
    if form is None:
        raise ValueError(f"{name}: not a model saved by belated.")
    if form != FORMAT:
        raise ValueError(
            f"{name}: a model file of format {form!r}, and this version of belated ({version('belated')}) reads format {FORMAT}. Use "
            f"the version that wrote it, or train the model again."
        )
    if strange:
        raise ValueError(
            f"{name}: refused, because it holds {', '.join(strange[:3])}, which this version of belated ({version('belated')}) does not "
            f"have in a model. Use the version that wrote it, or train the model again."
        )


def _check_state(state: Any) -> None:
    kinds = {"classifier": object, "features": dict, "about": str}
    wrong = [key for key, kind in kinds.items() if not isinstance(state.get(key), kind)]
    if wrong:
        raise ValueError(f"{wrong[0]} is missing or of another kind")
    kind = type(state["classifier"])
    if f"{kind.__module__}.{kind.__qualname__}" != CLASSIFIER:
        raise ValueError(f"the classifier is a {kind.__qualname__}")
    fitted = vars(state["classifier"])
    lost = [name for name in ("classes_", "method_", "model_", "link_") if name not in fitted]
    if lost:
        raise ValueError(f"the classifier has no {lost[0]}")
    fitted["model_"].check_fitted()


def load(path: str | Path) -> DelayedFeedbackClassifier:
    """Read a classifier that ``save`` or ``belated train`` wrote. No code from the file is run.

    Of a file of ``belated train`` this is the classifier alone, whose ``predict`` gives classes. ``TrainedModel.load`` gives the whole: it takes tables with more columns
    than it needs, its ``predict`` gives probabilities, and ``about`` says how it came about.

    Parameters
    ----------
    path : path
        The file; one of another format, or damaged, is refused in words.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from belated import DelayedFeedbackClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    >>> clf = DelayedFeedbackClassifier(method="bl").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(f"{folder}/model.skops")
    ...     again = load(f"{folder}/model.skops")
    >>> bool((again.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    return ModelFile.load(path).classifier
