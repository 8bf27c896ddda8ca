"""Classifiers for labels that arrive late."""

from belated.backtest import Backtest, backtest
from belated.classifier import DelayedFeedbackClassifier
from belated.columns import OutcomeWarning
from belated.diagnostics import Diagnosis, diagnose
from belated.events import EventLog
from belated.features import TableEncoder
from belated.fields import FieldMatrix
from belated.methods import BL, DFM, FSIW, PNUTW, PU, PUTW, STC, TW, ConvDF, Hazard, NnDF, Rescale
from belated.models import LinearModel
from belated.snapshot import Snapshot

__version__ = "0.1.0"

__all__ = [
    "BL",
    "DFM",
    "FSIW",
    "PNUTW",
    "PU",
    "PUTW",
    "STC",
    "TW",
    "Backtest",
    "ConvDF",
    "DelayedFeedbackClassifier",
    "Diagnosis",
    "EventLog",
    "FieldMatrix",
    "Hazard",
    "LinearModel",
    "NnDF",
    "OutcomeWarning",
    "Rescale",
    "Snapshot",
    "TableEncoder",
    "backtest",
    "diagnose",
]
