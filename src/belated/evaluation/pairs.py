"""Pairs: a method under a model, as a backtest tries them, and in which order when time is short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from belated.evaluation.fitting import value_of
from belated.methods import METHODS, resolve_method
from belated.methods.base import Method
from belated.methods.biased import BL
from belated.models import MODELS, resolve_model
from belated.models.base import Model

ORACLE = "oracle"
_EARLY = ("soft-labels", "dfm-piecewise", "bl", "tw", ORACLE, "hazard", "age", "fsiw", "rescale")


@dataclass(frozen=True)
class Pair:
    """A method under a model. Those of the first model go by the method's name, others by "model:method"."""

    name: str
    method_name: str
    model_name: str
    method: Method
    model: Model
    values: tuple[float, ...] | None  # of the model's setting, to choose from; None: it is as it is
    window: float = 0.0  # in days

    @property
    def is_oracle(self) -> bool:
        return self.method_name == ORACLE


def is_oracle(name: str) -> bool:
    """Whether a pair's name means a model that knew the final labels."""
    return name.rpartition(":")[2] == ORACLE


def pair_up(methods: dict[str, Method], models: dict[str, Model], l2: Sequence[float] | None) -> list[Pair]:
    """Every method under every model, and an oracle of each model; what does not go together fails when its turn comes."""
    pairs = []
    for k, (model_name, model) in enumerate(models.items()):
        values = _values(model, l2)
        for method_name, method in {**methods, ORACLE: BL()}.items():
            name = method_name if k == 0 else f"{model_name}:{method_name}"
            pairs.append(Pair(name, method_name, model_name, method, model, values))
    return pairs


def _values(model: Model, l2: Sequence[float] | None) -> tuple[float, ...] | None:
    if model.path is None or model.setting is None:
        return None
    if model.setting == "l2":
        return tuple(float(value) for value in (model.grid if l2 is None else l2))
    return model.grid if value_of(model) is None else None


def waves(pairs: Sequence[Pair], in_haste: bool) -> list[list[Pair]]:
    """Pairs that are fitted together: all of a model, or with a budget each by itself.

    Cheap models come first, and of each model the methods that are worth most in a short time. BL and the oracle of the first
    model are the very first: all others are measured by them.
    """
    by_model: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_model.setdefault(pair.model_name, []).append(pair)
    if not in_haste:
        return list(by_model.values())
    first = [pair for pair in next(iter(by_model.values())) if pair.method_name in ("bl", ORACLE)]
    models = list(by_model)

    def turn(pair: Pair) -> tuple[int, int]:
        early = _EARLY.index(pair.method_name) if pair.method_name in _EARLY else len(_EARLY)
        return models.index(pair.model_name), early

    return [first, *([pair] for pair in sorted((pair for pair in pairs if pair not in first), key=turn))]


def check_methods(methods: Sequence[str] | Mapping[str, Method] | None) -> dict[str, Method]:
    """The methods to compare, BL always among them."""
    if isinstance(methods, str):
        raise ValueError(f"methods={methods!r} must be a list of names, as in methods=[{methods!r}].")
    own = next((one for one in methods or () if not isinstance(one, str)), None)
    if own is not None:
        raise ValueError(
            f"methods holds {own!r}, which has no name to go by: give methods of your own in a dict, as in methods={{'tw': 'tw', 'mine': {own!r}}}."
        )
    if methods is not None and not methods:
        raise ValueError("methods is empty: name at least one, or leave it out for all.")
    if methods is None:
        return {name: resolve_method(name) for name in METHODS}
    chosen = {name: resolve_method(methods[name] if isinstance(methods, Mapping) else name) for name in methods}
    if ORACLE in chosen:
        raise ValueError("oracle is always there and is no method that could be used: leave it out.")
    if not isinstance(chosen.get("bl", BL()), BL):
        raise ValueError("the name bl stands for BL, against which all are measured: give this method another.")
    strange = [name for name in chosen if ":" in name]
    if strange:
        raise ValueError(f"the name {strange[0]!r} of a method has a colon in it, which parts models and methods.")
    return {"bl": BL(), **chosen}


def check_models(models: Any, model: Model | None) -> dict[str, Model]:
    """The engines to compare; a single one by default, without a fine tolerance that changes no score that can be seen."""
    if models is not None and model is not None:
        raise ValueError("model and models were both given: name all engines in models.")
    if models is None:
        return {_name_of(model): model} if model is not None else {"linear": resolve_model("linear", tol=1e-5)}
    if isinstance(models, str):
        raise ValueError(f"models={models!r} must be a list of names, as in models=[{models!r}].")
    if not models:
        raise ValueError("models is empty: name at least one, or leave it out.")
    if isinstance(models, Mapping):
        return {name: resolve_model(models[name]) for name in models}
    tolerance = {"linear": {"tol": 1e-5}}
    return {name: resolve_model(name, **tolerance.get(name, {})) for name in models}


def _name_of(model: Model) -> str:
    known = {name: kind for name, (_, kind) in MODELS.items()}
    return next((name for name, kind in known.items() if kind == type(model).__name__), type(model).__name__)
