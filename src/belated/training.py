"""Train a model on a log as it stands at its end: what ``belated train`` does, as one function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import clone

from belated.classifier import DelayedFeedbackClassifier
from belated.data.durations import DAY, parse_duration
from belated.data.event_log import EventLog, require_log
from belated.data.snapshot import Snapshot
from belated.evaluation.column_findings import check_columns
from belated.evaluation.fitting import value_of
from belated.evaluation.window import suggest_window
from belated.features.cluster_table import ClusterTable
from belated.features.field_matrix import FieldMatrix
from belated.models import open_model
from belated.models.base import Model
from belated.notices import logger, warn
from belated.persistence import ModelFile
from belated.tables.frames import in_memory, kinds_of, open_table
from belated.tables.refusal import counted
from belated.typing import Floats

_FEWEST = 30  # positives, and others, below which a model is hardly one


class TrainedModel(ModelFile):
    """A fitted classifier with the columns it wants and how it came about: what ``belated train`` writes to a file.

    ``TrainedModel.load(path)`` reads such a file, ``save(path)`` writes one. ``predict`` gives probabilities, of tables that may have more columns than it needs.

    Attributes
    ----------
    classifier : DelayedFeedbackClassifier
    features : dict of str to str
        The name of each feature column, and its kind.
    about : dict
        When it was trained, on how many rows, with which method and setting.

    Examples
    --------
    >>> from belated import train
    >>> from belated.datasets import example_log
    >>> trained = train(example_log(), horizon="7d", method="tw")
    >>> trained.features
    {'campaign': 'text', 'device': 'text', 'country': 'text', 'price': 'number'}
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trained.save(f"{folder}/model.skops")
    ...     again = TrainedModel.load(f"{folder}/model.skops")
    >>> again.about["rows"] == trained.about["rows"]
    True
    """

    def require(self, columns: Sequence[str]) -> None:
        """Refuse a table that lacks columns of training; others do no harm."""
        missing = [name for name in self.features if name not in columns]
        if missing:
            raise ValueError(
                f"the rows lack {', '.join(map(repr, missing))}. Give the columns that the model was trained on; they have "
                f"{', '.join(columns)}."
            )

    @property
    def na(self) -> tuple[str, ...]:
        """Words that meant a missing value in training, beside empty text."""
        encoders = self.classifier.model_.encoders
        return tuple(encoders[0].na) if encoders else ()

    def predict_proba(self, rows: Any, elapsed: Any = None) -> Floats:
        """Probabilities (n, 2) of no outcome and of one, as classifiers of scikit-learn give them."""
        p = self.predict(rows, elapsed)
        return np.column_stack([1.0 - p, p])

    def predict(self, rows: Any, elapsed: Any = None) -> Floats:
        """Probabilities (n,) of new rows: a table that has the columns of training, or a FieldMatrix.

        With ``elapsed``, ages in days: of rows that have waited so long, and have had no outcome.
        """
        return self.classifier.predict_proba(self.features_in(rows), elapsed)[:, 1]

    def features_in(self, rows: Any) -> Any:
        """The features of a table as the classifier wants them; a FieldMatrix as it is."""
        rows = in_memory(rows)
        if not nw.dependencies.is_into_dataframe(rows):
            return rows
        table = open_table(rows, "the table")
        self.require(table.columns)
        flags = [name for name, kind in self.features.items() if kind == "boolean" and table.schema[name] == nw.String]
        table = table.with_columns(nw.col(name).str.to_lowercase() for name in flags)
        return table.select(list(self.features)).to_native()


def train(
    log: EventLog,
    *,
    horizon: Any,
    method: str = "auto",
    window: Any = None,
    lookback: Any = None,
    l2: float | None = None,
    model: str | Model = "linear",
    rounds: int | None = None,
    epochs: int | None = None,
    keep: Sequence[str] = (),
    as_of: Any = None,
) -> TrainedModel:
    """Train on a log as it stands at its end, or as it stood at a time of the past.

    Parameters
    ----------
    log : EventLog
    horizon : duration
        A row is positive if its outcome comes within this long.
    method : str
        ``"auto"``, or the name of a method.
    window : duration, optional
        The age from which a label counts as final. By default the age by which 90% of the positives within the horizon
        have come, but at most half the history.
    lookback : duration, optional
        Only rows that arrived at most this long before the last one. By default all.
    l2 : float, optional
        Strength of regularisation of the linear model; by default chosen by cross-validation
        (:mod:`belated.evaluation.cross_validation`).
    model : str or Model
        ``"linear"``, ``"boost"``, ``"network"``, ``"auto"`` to choose among those installed, or an engine.
    rounds : int, optional
        Of boosted trees; by default chosen in the same way.
    epochs : int, optional
        Of a network; by default chosen in the same way.
    keep : sequence of str
        Features to use though they seem to know the outcome (:mod:`belated.evaluation.leaks`); others that do are refused.
    as_of : instant, optional
        Use only what was known then: the model that would have been trained that day.

    Examples
    --------
    >>> from belated.datasets import simulate_campaigns
    >>> clicks = simulate_campaigns(10_000)
    >>> log = EventLog.from_frame(clicks, arrival="click_time", outcome="conversion_time", until="2024-03-01")
    >>> trained = train(log, horizon="14d", lookback="21d", method="dfm-piecewise", l2=1e-4)
    >>> rows, positive = trained.about["rows"], trained.about["positive_so_far"]
    >>> rows, round(positive / rows, 2), round(trained.about["mean_prediction"], 2)
    (3516, 0.15, 0.18)
    """
    require_log(log, "train")
    limit = parse_duration(horizon, "horizon", log.clock)
    reach = None if lookback is None else parse_duration(lookback, "lookback", log.clock)
    snap = log.latest(reach, limit) if as_of is None else log.snapshot(as_of, lookback, horizon)
    if not snap.y.any():
        raise ValueError(
            f"{'the only row is not' if len(snap) == 1 else f'none of the {len(snap)} rows is'} positive, so there is nothing to learn."
        )
    check_columns(log, limit, keep)
    last = log.last if as_of is None else snap.as_of_micros
    history = (last - log.first if reach is None else min(reach, last - log.first)) / DAY
    days = suggest_window(snap, history) if window is None else parse_duration(window, "window", log.clock) / DAY
    engine = _engine(model, l2=l2, rounds=rounds, epochs=epochs)
    _warn_of_too_little(snap, float(snap.elapsed.max()))
    clf = DelayedFeedbackClassifier(method, days, snap.horizon, engine).fit_snapshot(snap)
    # The features of the log have none of these words any more; those of new rows may.
    for encoder in clf.model_.encoders:
        encoder.set_params(na=log.na)
    about = {
        "as_of": snap.as_of,
        "rows": len(snap),
        "positive_so_far": int(snap.y.sum()),
        "method": repr(clf.method_),
        "window": days,
        "horizon": snap.horizon,
        "model": type(clf.model_).__name__,
        **({} if clf.model_.setting is None else {clf.model_.setting: value_of(clf.model_)}),
        "mean_prediction": float(clf.predict_proba(snap.X)[:, 1].mean()),
    }
    logger.info("trained: %s", about)
    return TrainedModel(clf, _kinds(log), about)


def _warn_of_too_little(snap: Snapshot, history: float) -> None:
    """Say what makes a model one that nobody can check."""
    assert snap.horizon is not None
    positive = int(snap.y.sum())
    if history <= snap.horizon:
        warn(
            f"the history of {history:.3g} days is no longer than the horizon of {snap.horizon:.3g}: no label is final, so how many are still to "
            f"come is guessed from the delays seen so far, and nothing can be compared.",
            stacklevel=3,
        )
    if min(positive, len(snap) - positive) < _FEWEST:
        warn(
            f"of {counted(len(snap), 'row')} {positive} {'is' if positive == 1 else 'are'} positive so far: what a model learns from so few may well be chance.",
            stacklevel=3,
        )


def _engine(model: str | Model, **settings: float | None) -> str | Model:
    """The engine, with what was said about its setting; what was not said is chosen in fit."""
    given = {name: value for name, value in settings.items() if value is not None}
    if not given:
        return model
    if model == "auto":
        raise ValueError(
            f"{next(iter(given))} was given, but the model is yet to be chosen: name it, or leave this out."
        )
    engine = open_model(model) if isinstance(model, str) else clone(model)
    strange = [name for name in given if name != engine.setting]
    if strange:
        raise ValueError(f"{strange[0]} was given, but {type(engine).__name__} has none: it has {engine.setting}.")
    return engine.set_params(**given)


def _kinds(log: EventLog) -> dict[str, str]:
    """The kind of each feature column; one without a single value counts as text."""
    if isinstance(log.frame, FieldMatrix):
        encoder = log.frame.encoder
        return {} if encoder is None else encoder.kinds
    if isinstance(log.frame, ClusterTable):
        return dict.fromkeys(log.features, "text") | log.frame.kinds()
    return dict.fromkeys(log.features, "text") | kinds_of(log.frame)
