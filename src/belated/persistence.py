"""Models in files, through skops: loading one builds known objects and never runs code from the file."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from belated.methods import METHODS
from belated.tables.writing import write_beside

if TYPE_CHECKING:
    from belated.classifier import DelayedFeedbackClassifier

_FORMAT = 2
_CLASSIFIER = "belated.classifier.DelayedFeedbackClassifier"
# Every class that a model file may name, beside NumPy's arrays and the like. A class that is not here is never built.
_KNOWN = {
    _CLASSIFIER,
    "belated.features.encoder.TableEncoder",
    *(f"belated.features.column_encodings.{name}Column" for name in ("Number", "Bucket", "Category", "Hashed")),
    "belated.models.linear.LinearModel",
    "belated.models.sparse_coefficients.SparseCoefficients",
    *(f"belated.risks.losses.{name}Loss" for name in ("Logistic", "Squared", "DoubleHinge")),
    *(f"belated.risks.links.{name}" for name in ("Sigmoid", "Halfway", "SignOnly", "Ratio")),
    "belated.risks.cure.CureLink",
    "belated.risks.hazard.HazardLink",
    *(f"belated.risks.delay_laws.{name}" for name in ("Exponential", "Weibull", "Piecewise")),
    *(f"belated.methods.{file}.{name}" for file, name, _ in METHODS.values()),
}


@dataclass(frozen=True)
class ModelFile:
    """What a model file holds: a fitted classifier, the columns it wants, and how it came about.

    Attributes
    ----------
    classifier : DelayedFeedbackClassifier
    features : dict of str to str
        The name of each feature column and its kind: text, number or boolean. Empty where nobody said.
    others : list of str
        Columns of the training file that are no features.
    about : dict
        How the model came about, as plain data.
    """

    classifier: DelayedFeedbackClassifier
    features: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | Path) -> None:
        import skops.io  # takes two seconds, and few programs save models

        about = {
            **self.about,
            "saved": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in ("belated", "numpy", "scikit-learn", "skops")},
        }
        data = skops.io.dumps(
            {
                "format": _FORMAT,
                "classifier": self.classifier,
                "features": self.features,
                "others": self.others,
                "about": json.dumps(about),
            }
        )

        foreign = [name for name in skops.io.get_untrusted_types(data=data) if name not in _KNOWN]
        if foreign:
            raise ValueError(
                f"{Path(path).name}: not written, because {', '.join(foreign[:3])} is no part of belated, and a file with it "
                f"could not be loaded safely. Use pickle or joblib for models with parts of your own."
            )

        def write(file: IO[bytes]) -> None:
            file.write(data)

        write_beside(path, write)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        import skops.io

        path = Path(path)
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file.")
        try:
            data = path.read_bytes() or b"nothing"
            unknown = skops.io.get_untrusted_types(data=data)
        except Exception as error:
            raise ValueError(f"{path.name}: not a model saved by belated ({type(error).__name__}: {error}).") from None
        strange = [name for name in unknown if name not in _KNOWN]
        if strange:
            raise ValueError(
                f"{path.name}: refused, because it holds {', '.join(strange[:3])}, which is no part of a model that this version "
                f"of belated writes. Do not trust this file unless you know where it comes from."
            )
        state = skops.io.loads(data, trusted=unknown)
        if not isinstance(state, dict) or state.get("format") != _FORMAT or not _is_whole(state):
            raise ValueError(f"{path.name}: not a model saved by this version of belated.")
        return cls(state["classifier"], state["features"], state["others"], json.loads(state["about"]))


def _is_whole(state: dict[str, Any]) -> bool:
    kind = type(state.get("classifier"))
    kinds = {"features": dict, "others": list, "about": str}
    return f"{kind.__module__}.{kind.__qualname__}" == _CLASSIFIER and all(
        isinstance(state.get(key), kind) for key, kind in kinds.items()
    )


def load(path: str | Path) -> DelayedFeedbackClassifier:
    """Read a classifier that ``save`` or ``belated train`` wrote. No code from the file is run.

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
