"""Models in files, through skops: loading one builds known objects and never runs code from the file."""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import skops.io

from belated.classifier import DelayedFeedbackClassifier
from belated.tables.files import write_beside

_KNOWN = {
    "belated.classifier.DelayedFeedbackClassifier",
    "belated.features.encoder.TableEncoder",
    *(f"belated.features.encoder._{name}" for name in ("Number", "Buckets", "OneHot", "Hashed")),
    "belated.models.linear.LinearModel",
    *(f"belated.risks.losses.{name}" for name in ("LogisticLoss", "SquaredLoss", "DoubleHingeLoss")),
}
_KNOWN_MODULES = ("belated.methods.", "belated.risks.links.", "belated.risks.delay_laws.")


@dataclass(frozen=True)
class SavedModel:
    """A fitted classifier, the columns it wants, and how it came about."""

    classifier: DelayedFeedbackClassifier
    features: dict[str, str]  # name and kind: text, number or boolean
    others: list[str]  # columns of the training file that are no features
    about: dict[str, Any]

    def save(self, path: str | Path) -> None:
        about = {
            **self.about,
            "saved": datetime.now(UTC).isoformat(timespec="seconds"),
            "versions": {"python": platform.python_version()}
            | {name: version(name) for name in ("belated", "numpy", "scikit-learn", "skops")},
        }
        state = {
            "format": 1,
            "classifier": self.classifier,
            "features": self.features,
            "others": self.others,
            "about": json.dumps(about),
        }
        data = skops.io.dumps(state)

        def write(file: IO[bytes]) -> None:
            file.write(data)

        write_beside(path, write)

    @classmethod
    def load(cls, path: str | Path) -> SavedModel:
        path = Path(path)
        if not path.is_file():
            raise ValueError(f"{path}: there is no such file.")
        try:
            data = path.read_bytes() or b"nothing"
            unknown = skops.io.get_untrusted_types(data=data)
        except Exception as error:
            raise ValueError(f"{path.name}: not a model saved by belated ({type(error).__name__}: {error}).") from None
        strange = [name for name in unknown if name not in _KNOWN and not name.startswith(_KNOWN_MODULES)]
        if strange:
            raise ValueError(
                f"{path.name}: refused, because it holds {', '.join(strange[:3])}, which is no part of a model. Do not trust this file."
            )
        state = skops.io.loads(data, trusted=unknown)
        wanted = {
            "format": int,
            "classifier": DelayedFeedbackClassifier,
            "features": dict,
            "others": list,
            "about": str,
        }
        if not isinstance(state, dict) or not all(isinstance(state.get(key), kind) for key, kind in wanted.items()):
            raise ValueError(f"{path.name}: not a model saved by this version of belated.")
        return cls(state["classifier"], state["features"], state["others"], json.loads(state["about"]))

    def predict(self, rows: pa.Table) -> Any:
        """Probabilities of the rows of a table, whose columns must be those of training."""
        missing = [name for name in self.features if name not in rows.column_names]
        extra = [name for name in rows.column_names if name not in {*self.features, *self.others}]
        if missing or extra:
            parts = [f"lack {', '.join(map(repr, missing))}"] if missing else []
            parts += [f"have {', '.join(map(repr, extra))}, which training did not"] if extra else []
            raise ValueError(f"the rows {' and '.join(parts)}. Give the columns that the model was trained on.")
        return self.classifier.predict_proba(rows.select(list(self.features)))[:, 1]
