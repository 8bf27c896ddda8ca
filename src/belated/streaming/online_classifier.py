"""OnlineClassifier: a method of the stream and an online model as one estimator."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import narwhals as nw
import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import assert_all_finite

from belated.data.durations import DAY, parse_duration
from belated.data.snapshot import Snapshot
from belated.evaluation.delays_given_features import between_edges
from belated.features.field_encoder import FieldEncoder
from belated.features.field_matrix import FieldMatrix
from belated.models.base import Model
from belated.notices import logger
from belated.streaming.methods import resolve_stream_method
from belated.streaming.methods.base import Costs, Moments, StreamMethod, inside
from belated.streaming.online_linear import OnlineLinearModel
from belated.streaming.saved_streams import read_checkpoint, write_checkpoint
from belated.streaming.starting import positive_by
from belated.streaming.stream import Stream
from belated.streaming.stream_records import MATURE_EARLY, MATURE_LATE, MATURE_NEGATIVE, Records
from belated.streaming.telling import kind_of_rows
from belated.typing import Floats, Ints
from belated.waiting import WaitingRows

_LEVELS = np.array([-4.0, 4.0])  # of the auxiliary models, before they have seen anything: next to nothing is late
_MEMORY = 20_000.0  # about how many delays are remembered
_AGES = 40  # at which positives are counted, each half as old again as the one before, up to the horizon


class OnlineClassifier(WaitingRows, ClassifierMixin, BaseEstimator):
    """A classifier that learns from a stream of late labels.

    Parameters
    ----------
    method : str or StreamMethod
        ``"hazard-heads"``, ``"es-dfm"``, ``"defer"``, ``"defuse"``, ``"ddfm"``, ``"fnw"``, ``"fnc"``, ``"dfm-stream"``, ``"vanilla"``,
        ``"final"``, or an object such as ``ESDFM(weights="paper")``.
    model : OnlineLinearModel or NetworkModel, optional
        By default ``OnlineLinearModel()``.
    window : duration, optional
        How long to wait for a first label; hazard heads, FNW, FNC and the fixed ages of dfm-stream need none.
    horizon : duration
        A row is positive if its outcome comes within this long.
    batch : int
        Records that are learned together: weights are computed from what was predicted before them, and a network takes one step.

    Attributes
    ----------
    classes_ : array
        0 and 1.
    method_, model_ : as they were opened
    auxiliary_ : OnlineLinearModel, of methods that have one
        Two margins: the share of all rows that turn positive after the window, and that of negatives among all that were not positive by
        then. It learns from rows that reach the horizon.
    n_records_ : int
        How many records have been learned.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, hours = rng.normal(size=(4000, 2)), np.sort(rng.uniform(0, 400, 4000))
    >>> turns = rng.uniform(size=4000) < 1 / (1 + np.exp(1 - X[:, 0]))
    >>> delay = rng.exponential(10.0, 4000)
    >>> clf = OnlineClassifier("hazard-heads", OnlineLinearModel(learning_rate=0.3), horizon="48h")
    >>> stream = clf.stream()
    >>> stream.arrive(np.arange(4000), X, 3600 * hours)
    >>> stream.outcome(np.flatnonzero(turns), 3600 * (hours + delay)[turns])
    >>> for hour in range(0, 401, 4):
    ...     stream.advance(3600 * hour)
    ...     clf = clf.learn(stream)
    >>> p = clf.predict_proba(X)[:, 1]
    >>> round(float(p.mean()), 1), round(float(turns.mean()), 1)
    (0.3, 0.3)
    """

    auxiliary_: OnlineLinearModel | None

    def __init__(
        self,
        method: str | StreamMethod = "hazard-heads",
        model: OnlineLinearModel | Model | None = None,
        window: Any = None,
        horizon: Any = None,
        batch: int = 1024,
    ) -> None:
        self.method = method
        self.model = model
        self.window = window
        self.horizon = horizon
        self.batch = batch

    def stream(self, tolerance: Any = None) -> Stream:
        """A stream that makes the records of this classifier's method."""
        return Stream(self.method, window=self.window, horizon=self._horizon(), tolerance=tolerance)

    def learn(self, stream: Stream, name: str | None = None) -> OnlineClassifier:
        """Learn what has become known on a stream since the last time.

        A stream gives a record once. Several classifiers of one method need a stream that makes its records under several names; ``name``
        says which are this one's.
        """
        wanted = resolve_stream_method(self.method)
        names = [key for key, one in stream.methods.items() if _alike(one, wanted) and name in (None, key)]
        if not names:
            raise ValueError(
                f"this stream makes records of {', '.join(stream.methods)}, and the classifier's method is {wanted!r}."
            )
        if len(names) > 1:
            raise ValueError(f"this stream makes such records under several names, {', '.join(names)}: say which.")
        if hasattr(self, "method_") and not _alike(self.method_, wanted):
            raise ValueError(
                f"the classifier has begun with {self.method_!r}, and its method is {wanted!r} now: make another one."
            )
        _is_network(self.model)
        if stream.moments(names[0]) != self._moments(wanted):
            raise ValueError("the stream has another window or horizon than the classifier.")
        return self.partial_fit(stream.records(names[0]))

    def partial_fit(self, records: Records) -> OnlineClassifier:
        """Learn records, each once, in their order."""
        if not isinstance(records, Records):
            raise TypeError(
                "partial_fit takes the records of a Stream; for labels that are all there, use DelayedFeedbackClassifier."
            )
        if not len(records):
            return self
        if not hasattr(self, "model_"):
            self._open(records.X)
        self._features(records.X)  # like those before
        for start in range(0, len(records), self.batch):
            self._learn(records[start : start + self.batch])
        return self

    def start(self, snapshot: Snapshot, classifier: Any = None, passes: int | None = None) -> OnlineClassifier:
        """Begin with what a classifier believes that was fitted on a snapshot; by default dfm-piecewise on a linear model.

        Its probabilities, and those of being positive by each age, are soft labels of the snapshot's rows, which are learned in
        ``passes`` over them: by default one, and five for a network.
        """
        from belated.classifier import DelayedFeedbackClassifier
        from belated.models.linear import LinearModel

        if snapshot.horizon is None or round(snapshot.horizon * DAY) != parse_duration(
            self._horizon(), "horizon", "seconds"
        ):
            raise ValueError(
                f"the snapshot's horizon is {snapshot.horizon} days, and the classifier's is {self.horizon!r}."
            )
        X = self._features(snapshot.X)
        rows = snapshot.X
        if classifier is None:
            rows = X
            classifier = DelayedFeedbackClassifier("dfm-piecewise", model=LinearModel(l2=None))
            classifier.fit_snapshot(replace(snapshot, X=X))
        self._open(X)
        believed = positive_by(classifier, rows)
        self._come_ = np.array([believed(int(age)).sum() for age in self._ages_])
        self._come_ *= min(1.0, _MEMORY / max(self._come_[-1], 1e-300))
        taught = self.method_.soft_records(believed, self.moments_)
        if self.auxiliary_ is not None:
            p, by_window = believed(self.moments_.horizon), believed(self.moments_.window)
            late = np.maximum(p - by_window, 0.0)
            estimated = [(0, Costs(late, 1.0 - late)), (1, Costs(1.0 - p, late))]
        # In order of arrival, as a stream would bring them.
        order = np.argsort(-snapshot.elapsed_micros, kind="stable")
        often = self.model_.passes if passes is None else passes
        for at in [k for _ in range(often) for k in range(0, len(order), self.batch)]:
            some = order[at : at + self.batch]
            rows_now = X[some]
            for head, costs in taught:
                self.model_.learn(rows_now, np.full(len(some), head), costs.take(some))
            if self.auxiliary_ is not None:
                for head, costs in estimated:
                    self.auxiliary_.learn(rows_now, np.full(len(some), head), costs.take(some))
        logger.info("the stream starts with %d rows known at %s", len(snapshot), snapshot.as_of)
        return self

    def predict_proba(self, X: Any, elapsed: Any = None) -> Floats:
        """Probabilities of shape (n, 2): p(in the end negative), p(in the end positive).

        With ``elapsed``, the age of each row in days: of rows that have waited so long and are still negative.
        """
        if elapsed is None:
            margins = self._margins_of(X)
            p = self.method_.probability(margins)
        else:
            p = self._still_to_come(X, elapsed)
        return np.column_stack([1.0 - p, p])

    def _margins_of(self, X: Any) -> Floats:
        if not hasattr(self, "model_"):
            raise NotFittedError(
                "this OnlineClassifier has learned nothing yet: call learn, partial_fit or start first."
            )
        margins: Floats = self.model_.margins(self._features(X))
        return margins

    @property
    def delays_from(self) -> str:
        """Where its law of delays comes from: ``"method"`` (hazard-heads and dfm-stream), or ``"all rows"``: one curve of those that reached the horizon."""
        return "method" if type(self.method_).positive_by_ages is not StreamMethod.positive_by_ages else "all rows"

    def curve(self, X: Any) -> tuple[Floats, Callable[[Floats], Floats]]:
        margins = self._margins_of(X)
        p, by_ages, ages = self.method_.probability(margins), self.method_.positive_by_ages(margins), self.moments_.ages
        if by_ages is None:
            if not self._come_[-1] > 0:
                raise ValueError(
                    "no positive has reached the horizon on this stream, so nothing is known about delays."
                )
            by_ages, ages = p[:, None] * (self._come_ / self._come_[-1]), tuple(self._ages_)
        edges, values = np.append(0.0, ages) / DAY, np.column_stack([np.zeros(len(p)), by_ages])
        return p, lambda at: between_edges(edges, values, np.broadcast_to(at, p.shape))

    def predict(self, X: Any) -> Any:
        """The likelier class."""
        return self.classes_[(self.predict_proba(X)[:, 1] > 0.5).astype(int)]

    def checkpoint(self, path: str | Path, stream: Stream, position: Any = None) -> None:
        """Write this classifier, the stream and how far its events had been read, to one file that appears whole or not at all.

        ``position`` is the caller's own, as plain data: the number of lines read, say, or the offsets of a topic.
        """
        write_checkpoint(path, stream, {"classifier": self}, position)

    def restore(self, path: str | Path, stream: Stream) -> Any:
        """Go on from a checkpoint: this classifier and the stream become what they were, and the position is returned.

        None where there is no such file yet. Events told again from there on give the same model, to the last bit, as if
        nothing had happened; those that had been told before are known by their keys.
        """
        return read_checkpoint(path, stream, {"classifier": self})

    def state(self) -> dict[str, Any]:
        """What has been learned, as arrays."""
        if not hasattr(self, "model_"):
            return {}
        found = {f"model/{name}": value for name, value in self.model_.state().items()}
        found |= {f"method/{name}": value for name, value in self.method_.state().items()}
        if self.auxiliary_ is not None:
            found |= {f"auxiliary/{name}": value for name, value in self.auxiliary_.state().items()}
        encoder = None if self.encoder_ is None else self.encoder_.as_plain_data()
        found["encoder"] = np.frombuffer(json.dumps(encoder).encode(), dtype=np.uint8)
        columns = -1 if self._columns_ is None else self._columns_
        found["come"] = self._come_
        return {**found, "columns": np.array(columns), "n_records": np.array(self.n_records_)}

    def put_back(self, state: dict[str, Any]) -> None:
        """Become what :meth:`state` was taken of."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        if not state:
            return
        parts: dict[str, dict[str, Any]] = {"model": {}, "method": {}, "auxiliary": {}}
        for name, value in state.items():
            kind, _, rest = name.partition("/")
            if kind in parts and rest:
                parts[kind][rest] = value
        self._begin()
        self.model_ = _restored(self.model, parts["model"])
        self.method_.restore(parts["method"])
        if self.method_.has_auxiliary:
            self.auxiliary_ = self._linear()
            self.auxiliary_.restore(parts["auxiliary"])
        self._columns_ = int(state["columns"]) if int(state["columns"]) >= 0 else None
        encoder = json.loads(state["encoder"].tobytes())
        self.encoder_ = None if encoder is None else FieldEncoder(**encoder)
        self.n_records_ = int(state["n_records"])
        self._come_ = state.get("come", self._come_)

    def _horizon(self) -> Any:
        if self.horizon is None:
            raise ValueError(
                "horizon is not set: a row is positive if its outcome comes within this long, as in horizon='30d'."
            )
        return self.horizon

    def _moments(self, method: StreamMethod) -> Moments:
        window = None if self.window is None else parse_duration(self.window, "window", "seconds")
        return method.moments(window, parse_duration(self._horizon(), "horizon", "seconds"))

    def _begin(self) -> None:
        if not (isinstance(self.batch, int | np.integer) and self.batch >= 1):
            raise ValueError(f"batch={self.batch!r} must be a whole number of at least 1.")
        self.method_ = clone(resolve_stream_method(self.method))
        self.moments_ = self._moments(self.method_)
        self.method_.open(self.moments_)
        self.auxiliary_ = None
        self.classes_, self.n_records_ = np.array([0, 1]), 0
        end = self.moments_.horizon
        self._ages_: Ints = np.unique(np.maximum(end / 1.5 ** np.arange(_AGES), 1).astype(np.int64))
        self._come_ = np.zeros(len(self._ages_))

    def _open(self, X: Any) -> None:
        self._begin()
        self.model_ = _opened(self.model, X, self.method_.heads(self.moments_))
        if self.method_.has_auxiliary:
            self.auxiliary_ = self._linear()
            self.auxiliary_.open(X, 2, _LEVELS)
        self.encoder_ = X.encoder if isinstance(X, FieldMatrix) else None
        self._columns_ = X.n_columns if isinstance(X, FieldMatrix) else None

    def _linear(self) -> OnlineLinearModel:
        """A fresh model for what is estimated beside the rate."""
        linear: OnlineLinearModel = (
            clone(self.model) if isinstance(self.model, OnlineLinearModel) else OnlineLinearModel()
        )
        return linear.set_params(shared=False)  # late rows and real negatives are opposites

    def _learn(self, records: Records) -> None:
        mature = records.is_mature
        self._learn_labels(records[~mature] if mature.any() else records)
        if mature.any():
            self._learn_mature(records[mature])
        self.n_records_ += len(records)

    def _learn_labels(self, records: Records) -> None:
        nothing = np.zeros(len(records))
        f, q, z = nothing, nothing, nothing
        if self.method_.needs_prediction:
            f = inside(self.method_.probability(self.model_.margins(records.X)))
        if self.auxiliary_ is not None:
            late, negative = self.auxiliary_.margins(records.X).T
            q, z = inside(expit(late)), inside(expit(negative))
        costs = self.method_.costs(records.label, records.kind, f, q, z)
        self.model_.learn(records.X, self.method_.head(records.kind), costs)

    def _learn_mature(self, records: Records) -> None:
        self.method_.learn_mature(records.delay)
        come = (records.delay[:, None] <= self._ages_).sum(axis=0).astype(np.float64)
        self._come_ = self._come_ * max(1.0 - come[-1] / _MEMORY, 0.0) + come
        if self.auxiliary_ is None:
            return
        late, negative = records.kind == MATURE_LATE, records.kind == MATURE_NEGATIVE
        zeros = np.zeros(len(records), dtype=np.int64)
        self.auxiliary_.learn(records.X, zeros, Costs(late.astype(np.float64), (~late).astype(np.float64)))
        rest = records.kind != MATURE_EARLY
        if rest.any():
            target = negative[rest].astype(np.float64)
            self.auxiliary_.learn(records.X[rest], zeros[rest] + 1, Costs(target, 1.0 - target))

    def _features(self, X: Any) -> Any:
        """A FieldMatrix or an array; a table is encoded as the stream's was, or hashed where it has categories alone."""
        if nw.dependencies.is_into_dataframe(X):
            encoder = getattr(self, "encoder_", None)
            X = FieldMatrix.from_frame(X) if encoder is None else encoder.transform(X)
        fields = isinstance(X, FieldMatrix)
        X = X if fields else np.asarray(X, dtype=np.float64)
        if hasattr(self, "_columns_") and (X.n_columns if fields else None) != self._columns_:
            before, now = kind_of_rows(self._columns_), kind_of_rows(X.n_columns if fields else None)
            raise ValueError(f"X is {now}, and the classifier has learned from {before}.")
        if not fields:
            assert_all_finite(X, input_name="X")
        return X


def _alike(one: StreamMethod, other: StreamMethod) -> bool:
    return type(one) is type(other) and bool(joblib.hash(one.get_params()) == joblib.hash(other.get_params()))


def _opened(model: Any, X: Any, heads: int) -> Any:
    """A fresh engine for rows like X."""
    if _is_network(model):
        from belated.streaming.online_network import OnlineNetwork

        return OnlineNetwork.opened(clone(model, safe=False), X, heads)
    linear = OnlineLinearModel() if model is None else clone(model)
    linear.open(X, heads)
    return linear


def _restored(model: Any, state: dict[str, Any]) -> Any:
    """An engine as it was when its state was taken."""
    if _is_network(model):
        from belated.streaming.online_network import OnlineNetwork

        return OnlineNetwork.restored(clone(model, safe=False), state)
    linear = OnlineLinearModel() if model is None else clone(model)
    linear.restore(state)
    return linear


def _is_network(model: Any) -> bool:
    if model is None or isinstance(model, OnlineLinearModel):
        return False
    from belated.models.network import NetworkModel

    if not isinstance(model, NetworkModel):
        raise ValueError(f"model={model!r} cannot learn from a stream: pass an OnlineLinearModel or a NetworkModel.")
    return True
