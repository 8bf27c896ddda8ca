"""Classifiers for labels that arrive late.

Public names are imported when they are first used: ``import belated`` itself loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from belated.classifier import DelayedFeedbackClassifier
    from belated.data.criteo_format import ingest_criteo
    from belated.data.event_log import EventLog
    from belated.data.ingest import ingest_parquet
    from belated.data.log_columns import OutcomeWarning
    from belated.data.snapshot import Snapshot
    from belated.evaluation.backtest import Backtest, backtest
    from belated.evaluation.diagnosis import Diagnosis, diagnose
    from belated.evaluation.sklearn_search import RiskScorer, TimeBlocks
    from belated.features.codes import CodeEncoder
    from belated.features.encoder import TableEncoder
    from belated.features.field_matrix import FieldMatrix
    from belated.forecasting.forecast import Forecast, forecast
    from belated.methods.age_feature import Age
    from belated.methods.biased import BL
    from belated.methods.delay_model import DFM
    from belated.methods.delayed_feedback import ConvDF, NnDF
    from belated.methods.dual_learning import Dual
    from belated.methods.future_labels import ULC
    from belated.methods.importance_weighting import FSIW
    from belated.methods.person_period import PersonPeriod
    from belated.methods.positive_unlabeled import PNUTW, PU, PUTW
    from belated.methods.simple_baselines import STC, Rescale
    from belated.methods.soft_labels import SoftLabels
    from belated.methods.survival import Hazard
    from belated.methods.time_window import TW
    from belated.models.boosting import BoostingModel
    from belated.models.linear import LinearModel
    from belated.models.network import NetworkModel
    from belated.monitoring.lift import Lift, lift
    from belated.monitoring.monitor import Monitor, monitor
    from belated.pages import write_report
    from belated.persistence import load
    from belated.streaming.online_classifier import OnlineClassifier
    from belated.streaming.online_linear import OnlineLinearModel
    from belated.streaming.replay import replay
    from belated.streaming.stream import Stream
    from belated.training import TrainedModel, train

# Where each public name lives.
_HOMES = {
    "BL": "methods.biased",
    "DFM": "methods.delay_model",
    "FSIW": "methods.importance_weighting",
    "PNUTW": "methods.positive_unlabeled",
    "PU": "methods.positive_unlabeled",
    "PUTW": "methods.positive_unlabeled",
    "STC": "methods.simple_baselines",
    "TW": "methods.time_window",
    "ULC": "methods.future_labels",
    "Age": "methods.age_feature",
    "Backtest": "evaluation.backtest",
    "BoostingModel": "models.boosting",
    "CodeEncoder": "features.codes",
    "ConvDF": "methods.delayed_feedback",
    "DelayedFeedbackClassifier": "classifier",
    "Diagnosis": "evaluation.diagnosis",
    "Dual": "methods.dual_learning",
    "EventLog": "data.event_log",
    "FieldMatrix": "features.field_matrix",
    "Forecast": "forecasting.forecast",
    "Hazard": "methods.survival",
    "Lift": "monitoring.lift",
    "LinearModel": "models.linear",
    "Monitor": "monitoring.monitor",
    "NetworkModel": "models.network",
    "NnDF": "methods.delayed_feedback",
    "OnlineClassifier": "streaming.online_classifier",
    "OnlineLinearModel": "streaming.online_linear",
    "OutcomeWarning": "data.log_columns",
    "PersonPeriod": "methods.person_period",
    "Rescale": "methods.simple_baselines",
    "RiskScorer": "evaluation.sklearn_search",
    "Snapshot": "data.snapshot",
    "SoftLabels": "methods.soft_labels",
    "Stream": "streaming.stream",
    "TableEncoder": "features.encoder",
    "TimeBlocks": "evaluation.sklearn_search",
    "TrainedModel": "training",
    "backtest": "evaluation.backtest",
    "diagnose": "evaluation.diagnosis",
    "forecast": "forecasting.forecast",
    "ingest_criteo": "data.criteo_format",
    "ingest_parquet": "data.ingest",
    "lift": "monitoring.lift",
    "load": "persistence",
    "monitor": "monitoring.monitor",
    "replay": "streaming.replay",
    "train": "training",
    "write_report": "pages",
}

__all__ = [
    "BL",
    "DFM",
    "FSIW",
    "PNUTW",
    "PU",
    "PUTW",
    "STC",
    "TW",
    "ULC",
    "Age",
    "Backtest",
    "BoostingModel",
    "CodeEncoder",
    "ConvDF",
    "DelayedFeedbackClassifier",
    "Diagnosis",
    "Dual",
    "EventLog",
    "FieldMatrix",
    "Forecast",
    "Hazard",
    "Lift",
    "LinearModel",
    "Monitor",
    "NetworkModel",
    "NnDF",
    "OnlineClassifier",
    "OnlineLinearModel",
    "OutcomeWarning",
    "PersonPeriod",
    "Rescale",
    "RiskScorer",
    "Snapshot",
    "SoftLabels",
    "Stream",
    "TableEncoder",
    "TimeBlocks",
    "TrainedModel",
    "backtest",
    "diagnose",
    "forecast",
    "ingest_criteo",
    "ingest_parquet",
    "lift",
    "load",
    "monitor",
    "replay",
    "train",
    "write_report",
]


if not TYPE_CHECKING:  # or a type checker would believe that every name exists

    def __getattr__(name: str) -> Any:
        if name in ("datasets", "plot"):
            return import_module(f"belated.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'belated' has no attribute {name!r}")
        value = getattr(import_module(f"belated.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
