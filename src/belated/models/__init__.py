"""One engine a file: each fits any risk, and knows nothing of methods. May import solvers, risks and features.

The names by which engines are known stand here; an engine's file is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from belated.models.base import Model

# The name of each engine, the file it is in, and its class; the cheapest first.
MODELS: dict[str, tuple[str, str]] = {
    "linear": ("linear", "LinearModel"),
    "boost": ("boosting", "BoostingModel"),
}


def resolve_model(model: str | Model, **parameters: Any) -> Model:
    """The engine that a name or an object means; parameters are those of a named one.

    >>> resolve_model("linear", tol=1e-5)
    LinearModel(tol=1e-05)
    """
    from belated.models.base import Model

    if isinstance(model, Model):
        return model
    if not isinstance(model, str) or model not in MODELS:
        raise ValueError(f"model={model!r} is not known; choose one of {', '.join(MODELS)}, or pass a model object.")
    file, name = MODELS[model]
    found: Model = getattr(import_module(f"belated.models.{file}"), name)(**parameters)
    return found
