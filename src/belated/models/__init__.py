"""One engine a file: each fits any risk, and knows nothing of methods. May import solvers, risks and features.

The names by which engines are known stand here; an engine's file is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from belated.extras import how_to_install

if TYPE_CHECKING:
    from belated.models.base import Model

# The name of each engine, the file it is in, and its class; the cheapest first.
MODELS: dict[str, tuple[str, str]] = {
    "linear": ("linear", "LinearModel"),
    "boost": ("boosting", "BoostingModel"),
    "network": ("network", "NetworkModel"),
}


_LIBRARIES = {"boost": "lightgbm", "network": "torch"}
_EXTRAS = {"boost": "boost", "network": "torch"}


def _require_known(name: str) -> None:
    if name not in MODELS:
        raise ValueError(
            f"model={name!r} is not known; choose one of {', '.join(MODELS)}, or in Python pass a model object."
        )


def is_installed(name: str) -> bool:
    """Whether the library behind an engine is there."""
    return name not in _LIBRARIES or find_spec(_LIBRARIES[name]) is not None


def require_installed(name: str) -> None:
    """Refuse a name that is no engine's, and say how to get the library behind one where it is missing."""
    _require_known(name)
    if not is_installed(name):
        raise ValueError(f"the model {name!r} needs {_LIBRARIES[name]}: {how_to_install(_EXTRAS[name])}.")


def open_model(name: str) -> Model:
    """An engine by name whose setting is yet to be chosen."""
    model = resolve_model(name)
    if model.setting is not None:
        model.set_params(**{model.setting: None})
    return model


def resolve_model(model: str | Model, **parameters: Any) -> Model:
    """The engine that a name or an object means; parameters are those of a named one.

    >>> resolve_model("linear", tol=1e-5)
    LinearModel(tol=1e-05)
    """
    from belated.models.base import Model

    if isinstance(model, Model):
        return model
    if not isinstance(model, str):
        raise ValueError(f"model={model!r} is neither the name of a model nor one of belated's models.")
    _require_known(model)
    file, name = MODELS[model]
    found: Model = getattr(import_module(f"belated.models.{file}"), name)(**parameters)
    return found
