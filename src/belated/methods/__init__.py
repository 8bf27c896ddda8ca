"""One paper a file: each turns labels and their times into a risk to minimise. May import risks, data and features.

The names by which methods are known stand here; a method's file is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from belated.methods.base import Method

# The name of each method, the file it is in, its class, and the parameters that the name stands for.
METHODS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bl": ("biased", "BL", {}),
    "tw": ("time_window", "TW", {}),
    "putw": ("positive_unlabeled", "PUTW", {}),
    "pnutw": ("positive_unlabeled", "PNUTW", {}),
    "convdf": ("delayed_feedback", "ConvDF", {}),
    "nndf": ("delayed_feedback", "NnDF", {}),
    "fsiw": ("importance_weighting", "FSIW", {}),
    "dfm": ("delay_model", "DFM", {}),
    "dfm-weibull": ("delay_model", "DFM", {"delay": "weibull"}),
    "dfm-piecewise": ("delay_model", "DFM", {"delay": "piecewise"}),
    "dfm-kernel": ("delay_model", "DFM", {"delay": "kernel"}),
    "hazard": ("survival", "Hazard", {}),
    "pu": ("positive_unlabeled", "PU", {}),
    "rescale": ("simple_baselines", "Rescale", {}),
    "stc": ("simple_baselines", "STC", {}),
    "ulc": ("future_labels", "ULC", {}),
    "dual": ("dual_learning", "Dual", {}),
    "age": ("age_feature", "Age", {}),
    "person-period": ("person_period", "PersonPeriod", {}),
    "soft-labels": ("soft_labels", "SoftLabels", {}),
}


def resolve_method(method: str | Method) -> Method:
    """The method that a name or an object means.

    >>> resolve_method("dfm-weibull")
    DFM(delay='weibull')
    """
    from belated.methods.base import Method

    if isinstance(method, str) and method in METHODS:
        file, name, parameters = METHODS[method]
        found: Method = getattr(import_module(f"belated.methods.{file}"), name)(**parameters)
        return found
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise ValueError(f"method={method.__name__} is a class; pass an object, {method.__name__}().")
    raise ValueError(f"method={method!r} is not known; choose one of {', '.join(METHODS)}, or pass a method object.")
