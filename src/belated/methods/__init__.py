"""The methods, one paper a file, and the names they go by."""

from __future__ import annotations

from collections.abc import Callable

from belated.methods.base import Learner, Method
from belated.methods.biased import BL
from belated.methods.delay_model import DFM
from belated.methods.delayed_feedback import ConvDF, NnDF
from belated.methods.heuristics import STC, Rescale
from belated.methods.importance_weighting import FSIW
from belated.methods.positive_unlabeled import PNUTW, PU, PUTW
from belated.methods.survival import Hazard
from belated.methods.time_window import TW

METHODS: dict[str, Callable[[], Method]] = {
    "bl": BL,
    "tw": TW,
    "putw": PUTW,
    "pnutw": PNUTW,
    "convdf": ConvDF,
    "nndf": NnDF,
    "fsiw": FSIW,
    "dfm": DFM,
    "dfm-weibull": lambda: DFM(delay="weibull"),
    "dfm-piecewise": lambda: DFM(delay="piecewise"),
    "hazard": Hazard,
    "pu": PU,
    "rescale": Rescale,
    "stc": STC,
}


def resolve_method(method: str | Method) -> Method:
    """The method that a name or an object means.

    >>> resolve_method("dfm-weibull")
    DFM(delay='weibull')
    """
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]()
    if isinstance(method, Method):
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise ValueError(f"method={method.__name__} is a class; pass an object, {method.__name__}().")
    raise ValueError(f"method={method!r} is not known; choose one of {', '.join(METHODS)}, or pass a method object.")


__all__ = [
    "BL",
    "DFM",
    "FSIW",
    "METHODS",
    "PNUTW",
    "PU",
    "PUTW",
    "STC",
    "TW",
    "ConvDF",
    "Hazard",
    "Learner",
    "Method",
    "NnDF",
    "Rescale",
    "resolve_method",
]
