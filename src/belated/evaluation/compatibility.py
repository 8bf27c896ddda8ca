"""Which method goes with which model; asked before anything is fitted."""

from __future__ import annotations

from collections.abc import Iterable

from belated.methods.base import Method
from belated.models.base import Model
from belated.models.boosting import BoostingModel
from belated.models.linear import LinearModel
from belated.risks.losses import resolve_loss


def why_not(method: Method, model: Model) -> str | None:
    """Why a model cannot fit a method, None where it can."""
    its, name = type(model), type(method).__name__
    if getattr(method, "ascent", False) and not its.minibatches:
        return (
            f"ascent=True is a rule for mini-batches, and {its.__name__} looks at all rows at once: use ascent=False, or "
            f"NetworkModel."
        )
    if method.has_auxiliary_fits and its.auxiliary_margin is Model.auxiliary_margin:
        return f"{name} learns auxiliary models first, and {its.__name__} has no auxiliary_margin."
    if method.has_groups and not its.takes_groups:
        return f"{name} learns a margin for each group of ages, and {its.__name__} does not take groups."
    loss = resolve_loss(getattr(method, "loss", "logistic"), False, name)
    if not loss.smooth and not its.takes_kinks:
        return f"{its.__name__} needs a loss with a curvature, and that of {name} has none: use the logistic or the squared loss."
    return None


def require_compatible(method: Method, model: Model) -> None:
    reason = why_not(method, model)
    if reason is not None:
        raise ValueError(reason)


def require_on_cluster(engines: Iterable[Model]) -> None:
    """Refuse engines that cannot be fitted on rows of a cluster."""
    for engine in engines:
        trees = isinstance(engine, BoostingModel)
        if trees and engine.rounds is None:
            raise ValueError(
                "BoostingModel on a cluster needs rounds=, a number: to choose it takes many fits. Choose it on some of the rows, log.sample(0.1).collect()."
            )
        if not trees and (not isinstance(engine, LinearModel) or engine.device != "cpu"):
            raise ValueError(
                f"{engine!r} cannot be fitted on a cluster; LinearModel on the CPU can, and BoostingModel. For others bring some rows here: "
                f"log.sample(0.1).collect()."
            )
