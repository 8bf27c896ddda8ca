"""Classifiers for labels that arrive late."""

from belated.classifier import DelayedFeedbackClassifier
from belated.data.event_log import EventLog
from belated.data.log_columns import OutcomeWarning
from belated.data.snapshot import Snapshot
from belated.evaluation.backtest import Backtest, backtest
from belated.evaluation.diagnosis import Diagnosis, diagnose
from belated.features.encoder import TableEncoder
from belated.features.fields import FieldMatrix
from belated.methods import BL, DFM, FSIW, PNUTW, PU, PUTW, STC, TW, ConvDF, Hazard, NnDF, Rescale
from belated.models import LinearModel

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
