"""What a model file may hold: an exact list of parts, checked on paper before any of them is built.

A skops file describes a tree of nodes. Some kinds of node call a function, look up an attribute or import a module when they
are built, whatever their name says. A file of ours needs none of those: it holds plain data, arrays, and objects of the
classes listed here. Everything else is refused while it is still text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from belated.methods import METHODS

FORMAT = 2
CLASSIFIER = "belated.classifier.DelayedFeedbackClassifier"

_OBJECTS = {
    CLASSIFIER,
    "belated.features.encoder.TableEncoder",
    "belated.features.codes.CodeEncoder",
    "belated.features.field_encoder.FieldEncoder",
    *(f"belated.features.column_encodings.{name}Column" for name in ("Number", "Bucket", "Category", "Hashed")),
    "belated.models.boosting.BoostingModel",
    "belated.features.network_inputs.NetworkInputs",
    "belated.models.linear.LinearModel",
    "belated.models.network.NetworkModel",
    "belated.models.sparse_coefficients.SparseCoefficients",
    *(f"belated.risks.losses.{name}Loss" for name in ("Logistic", "Squared", "DoubleHinge")),
    *(f"belated.risks.links.{name}" for name in ("Sigmoid", "Halfway", "SignOnly", "Ratio")),
    "belated.evaluation.delays_given_features.DelaysGivenFeatures",
    "belated.risks.cure.CureLink",
    "belated.risks.occurring.AnyGroup",
    "belated.risks.occurring.LastGroup",
    "belated.risks.hazard.HazardLink",
    *(f"belated.risks.delay_laws.{name}" for name in ("Exponential", "Weibull", "Piecewise", "Kernel")),
    *(f"belated.methods.{file}.{name}" for file, name, _ in METHODS.values()),
}
_NUMBERS = ("float64", "float32", "int64", "int32", "bool", "bool_", "str_")

# Which classes each kind of node may name. A kind that is not here is never built.
_ALLOWED: dict[str, set[str]] = {
    "JsonNode": {"builtins.str"},
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "TypeNode": {"builtins.str", "builtins.int", "builtins.float", "builtins.bool"},  # of the keys of a dict
    "NdArrayNode": {"numpy.ndarray", *(f"numpy.{name}" for name in _NUMBERS)},
    "ObjectNode": _OBJECTS,
}


def trusted() -> list[str]:
    """The classes that skops may build for us beside those it always does."""
    return sorted(_OBJECTS)


def strange_parts(schema: Any) -> list[str]:
    """What a schema holds that no model of ours does, as one would name it; each once."""
    found = (_name(node) for node in _nodes(schema) if not _is_known(node))
    return list(dict.fromkeys(found))


def format_of(schema: Any) -> Any:
    """The format that a file says it has, None where it says none."""
    try:
        return json.loads(schema["content"]["format"]["content"])
    except (KeyError, TypeError, ValueError):
        return None


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every node in a schema, wherever it stands."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("__loader__"), str):
                yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _class_of(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _is_known(node: dict[str, Any]) -> bool:
    return _class_of(node) in _ALLOWED.get(node["__loader__"], ())


def _name(node: dict[str, Any]) -> str:
    """A class by its name; with the kind of node where it is not an object that is built."""
    kind = node["__loader__"]
    return _class_of(node) if kind == "ObjectNode" else f"{_class_of(node)} ({kind})"
