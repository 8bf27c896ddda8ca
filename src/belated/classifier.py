"""DelayedFeedbackClassifier: a method and a model as one scikit-learn estimator."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from belated.cluster.columns import engine_of
from belated.data.durations import parse_age
from belated.data.labels import Labels, check_labels, plain_labels, read_positives, weights_on_cluster
from belated.data.snapshot import Snapshot
from belated.evaluation.compatibility import require_compatible, require_on_cluster
from belated.evaluation.cross_validation import choose_setting, chosen_value, left_out_risk
from belated.evaluation.delays_given_features import learn_delays
from belated.evaluation.fitting import value_of
from belated.evaluation.learners import EngineLearner
from belated.evaluation.method_choice import auto_pairs, choose_method
from belated.evaluation.teachers import Teachers
from belated.features.cluster_table import ClusterTable
from belated.features.field_matrix import FieldMatrix
from belated.methods import resolve_method
from belated.methods.base import Learner, Method, no_learner
from belated.methods.biased import BL
from belated.methods.delay_model import event_times
from belated.methods.delayed_feedback import correction_bound
from belated.models import MODELS, is_installed, open_model
from belated.models.base import Model
from belated.models.linear import LinearModel
from belated.notices import logger, quietly
from belated.persistence import ModelFile
from belated.risks.non_negative import NonNegativeRisk
from belated.tables.frames import column_names, in_memory, open_table, take_rows
from belated.typing import Bools, Floats
from belated.waiting import WaitingRows, column_of, features_of


def _gives_probabilities(classifier: DelayedFeedbackClassifier) -> bool:
    if hasattr(classifier, "link_") and not classifier.link_.has_probability:
        raise AttributeError(
            "the double hinge loss gives no probabilities; use decision_function, or the logistic loss."
        )
    return True


class DelayedFeedbackClassifier(WaitingRows, ClassifierMixin, BaseEstimator):
    """A classifier for labels that arrive late.

    Parameters
    ----------
    method : str or Method
        The correction: ``"bl"``, ``"tw"``, ``"putw"``, ``"pnutw"``, ``"convdf"``, ``"nndf"``, ``"fsiw"``, ``"dfm"``,
        ``"dfm-weibull"``, ``"dfm-piecewise"``, ``"dfm-kernel"``, ``"ulc"``, ``"dual"``, ``"hazard"``, ``"pu"``, ``"rescale"``, ``"stc"``, ``"age"``,
        ``"person-period"``, ``"soft-labels"``, or an object such as ``ConvDF(normalizer="paper")``. ``"auto"`` sets the clock back, tries the usual ones on what was known then, and takes
        dfm-piecewise unless another would clearly have predicted better what has come since
        (:mod:`belated.evaluation.method_choice`).
    window : float, optional
        The age from which a label counts as final, in the unit of ``elapsed``. By default the horizon.
    horizon : float, optional
        The age after which nothing turns positive any more, in the same unit. By default there is none.
    model : Model or str, optional
        The engine; by default ``LinearModel()``, and with ``method="auto"`` its l2 is chosen too. By name, ``"linear"``,
        ``"boost"`` or ``"network"``, its setting (l2, rounds, epochs) is chosen by cross-validation. ``"auto"`` tries all that are installed, by the same
        rule as ``method="auto"``.

    Attributes
    ----------
    classes_ : array of the two classes
        In sorted order; the second is the one that arrives late.
    method_ : Method
    model_ : Model
        The fitted engine.
    coef_ : array of shape (m, n_columns), of linear models
        The weights of each margin: first of the rate; DFM has a second margin for the delay, STC one for how many come early.
        Tables are encoded, so there may be more columns than features; :meth:`get_feature_names_out` names them.
    intercept_ : array of shape (m,), of linear models
    window_, horizon_ : float or None
        As they were used: :meth:`fit_snapshot` takes the horizon from the snapshot.
    selection_ : dict, with ``method="auto"``
        The validation loss of each method, or why it could not be tried.
    selection_why_ : str, with ``method="auto"``
        Which method was taken, and why.
    n_features_in_ : int
    feature_names_in_ : array of str, where X was a table

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, elapsed, wait = rng.normal(size=(4000, 2)), rng.uniform(0, 21, 4000), rng.exponential(3.0, 4000)
    >>> converts = rng.uniform(size=4000) < 0.3
    >>> y = (converts & (wait <= elapsed)).astype(int)
    >>> clf = DelayedFeedbackClassifier()
    >>> clf.fit(X, y, elapsed=elapsed, delay=np.where(y == 1, wait, np.nan))
    DelayedFeedbackClassifier()
    >>> p = clf.predict_proba(X)[:, 1]
    >>> [float(v.mean().round(2)) for v in (y, p, converts)]
    [0.24, 0.28, 0.28]
    """

    _kind_of_X_: str

    def __init__(
        self,
        method: str | Method = "dfm-piecewise",
        window: float | None = None,
        horizon: float | None = None,
        model: Model | str | None = None,
    ) -> None:
        self.method = method
        self.window = window
        self.horizon = horizon
        self.model = model

    def fit(
        self, X: Any, y: Any, *, elapsed: Any = None, delay: Any = None, sample_weight: Any = None
    ) -> DelayedFeedbackClassifier:
        """Fit on labels as they stand.

        Parameters
        ----------
        X : array, CSR matrix, FieldMatrix, or pandas, polars or pyarrow table, of n rows
        y : array of shape (n,)
            The labels now: positive where the outcome has been seen.
        elapsed : array of shape (n,), optional
            Time from arrival to now.
        delay : array of shape (n,), optional
            Time from arrival to the outcome where it has been seen, else NaN.
        sample_weight : array of shape (n,), optional

        Without ``elapsed`` and ``delay`` every label counts as final, and this is regularised logistic regression.
        A fit that fails leaves the classifier as it was.
        """
        return self._refit(X, y, elapsed, delay, sample_weight, self.horizon)

    def fit_snapshot(self, snapshot: Snapshot, *, sample_weight: Any = None) -> DelayedFeedbackClassifier:
        """Fit on what was known at a time: X, y, elapsed, delay and the horizon of a snapshot.

        A horizon of the classifier's own must agree with the snapshot's. Sample weights of a snapshot on a cluster are arrays of the same
        snapshot: ``snapshot.X["column"]``, or what NumPy makes of ``snapshot.elapsed``.

        >>> from belated import EventLog
        >>> from belated.datasets import simulate_clicks
        >>> log = EventLog.from_frame(simulate_clicks(days=20), arrival="click_time", outcome="conversion_time")
        >>> DelayedFeedbackClassifier().fit_snapshot(log.snapshot(as_of="2024-01-20", horizon="14d"))
        DelayedFeedbackClassifier()
        """
        mine, theirs = parse_age(self.horizon, "horizon"), snapshot.horizon
        if mine is not None and (theirs is None or not np.isclose(mine, theirs, rtol=1e-9)):
            said = "no horizon" if theirs is None else f"a horizon of {theirs:g} days"
            raise ValueError(
                f"the classifier has horizon={mine:g} but the snapshot was taken with {said}, so its labels mean something "
                f"else. Leave the classifier's horizon out, or take the snapshot with horizon='{mine:g}d'."
            )
        y, elapsed, delay = snapshot.y, snapshot.elapsed, snapshot.delay
        return self._refit(snapshot.X, y, elapsed, delay, sample_weight, theirs)

    def _refit(
        self, X: Any, y: Any, elapsed: Any, delay: Any, sample_weight: Any, horizon: float | None
    ) -> DelayedFeedbackClassifier:
        """Fit a fresh classifier, and take over all that it learned when it has; nothing of an earlier fit remains."""
        fresh = type(self)(**{**self.get_params(deep=False), "horizon": horizon})
        fresh._fit(X, y, elapsed, delay, sample_weight)
        for name in [name for name in vars(self) if _is_fitted(name)]:
            delattr(self, name)
        self.__dict__.update({name: value for name, value in vars(fresh).items() if _is_fitted(name)})
        return self

    def _fit(self, X: Any, y: Any, elapsed: Any, delay: Any, sample_weight: Any) -> None:
        X = self._features(X, reset=True)
        if isinstance(X, ClusterTable):
            labels = self._labels_on_cluster(y, elapsed, delay, sample_weight)
        else:
            positive = self._labels(y)
            check_consistent_length(X, positive)
            weight = _check_sample_weight(sample_weight, positive, dtype=np.float64, ensure_non_negative=True)
            _check_classes(positive, weight, self.classes_)
            labels = check_labels(positive, elapsed, delay, weight, self.window, self.horizon, self.classes_[-1])
        if sample_weight is not None and not labels.weight.all():
            # A row of weight 0 is no row: neither its age nor its features count anywhere.
            some = labels.weight > 0
            X, labels = _take(X, some), labels.take(some)
        self._learn(X, labels)

    def _labels_on_cluster(self, y: Any, elapsed: Any, delay: Any, sample_weight: Any) -> Labels:
        """Of a log on a cluster, whose times were checked when it was read."""
        self.classes_ = np.array([0, 1])
        positive = y == 1
        if not positive.any() or positive.all():
            raise ValueError(f"y holds one class only in all {len(positive)} rows. A classifier needs both.")
        weight = None
        if sample_weight is not None:
            weight = weights_on_cluster(sample_weight, y)
            _check_classes(positive, weight, self.classes_)
        return check_labels(positive, elapsed, delay, weight, self.window, self.horizon)

    def _learn(self, X: Any, labels: Labels) -> None:
        auto = isinstance(self.method, str) and self.method == "auto"
        self.method_ = BL() if auto else clone(resolve_method(self.method))
        engines = self._engines()
        self.model_ = next(iter(engines.values()))
        if isinstance(X, ClusterTable):
            require_on_cluster(engines.values())
        if labels.all_final:
            self._check_no_window(auto)
        if (auto or len(engines) > 1) and not labels.all_final:
            self._choose_pair(X, labels, engines, auto)
        if not (labels.all_final and self.method_.needs_times):
            require_compatible(self.method_, self.model_)
        self.method_.check(labels)
        _log(self.method_, labels)
        teachers = Teachers(X)
        if self.model_.setting is not None and value_of(self.model_) is None:
            self._choose_setting(X, labels, teachers)
        encoded = self.model_.encode(X, labels.weight)
        risk = self.method_.build_risk(labels, EngineLearner(self.model_, encoded, teachers))
        self.model_.fit(encoded, risk)
        self.link_, self.window_, self.horizon_ = risk.link, labels.window, labels.horizon
        self._learn_delays(X, labels)
        if isinstance(risk, NonNegativeRisk):
            _log_correction(risk, self.model_.margins(X), labels)

    def _learn_delays(self, X: Any, labels: Labels) -> None:
        """Of a method that says nothing about delays, learn them from the positives."""
        self._delays_, self._ahead_ = None, 0.0
        if labels.delay is None:
            return
        self._ahead_ = event_times(labels)[1]
        if not hasattr(self.link_, "law"):
            self._delays_ = learn_delays(X, labels)

    def _check_no_window(self, auto: bool) -> None:
        """Refuse a window or a horizon without times, rather than ignore it."""
        given = [name for name in ("window", "horizon") if getattr(self, name) is not None]
        if given and (auto or self.method_.needs_times):
            raise ValueError(
                f"{'auto' if auto else type(self.method_).__name__} with a {given[0]} needs elapsed and delay: pass them to fit, and request them "
                f"(set_fit_request(elapsed=True, delay=True)) where a scikit-learn meta-estimator does the fitting."
            )

    def _engines(self) -> dict[str, Model]:
        """The engine, or those to choose from; of engines by name, the setting is chosen too."""
        if isinstance(self.model, Model):
            return {"model": clone(self.model, safe=False)}
        if self.model is None:
            auto = isinstance(self.method, str) and self.method == "auto"
            return {"linear": LinearModel(l2=None) if auto else LinearModel()}
        if not isinstance(self.model, str):
            raise ValueError(f"model must be one of belated's models, such as LinearModel(), got {self.model!r}.")
        if self.model == "auto":
            return {name: open_model(name) for name in MODELS if is_installed(name)}
        return {self.model: open_model(self.model)}

    def _choose_pair(self, X: Any, labels: Labels, engines: dict[str, Model], auto: bool) -> None:
        """Choose the method, the model or both by setting the clock back."""
        if labels.delay is None:
            raise ValueError(
                f"{'method' if auto else 'model'}='auto' needs the delay of each positive beside elapsed: pass delay=snap.delay to fit."
            )
        trials = {name: engine.for_trials() for name, engine in engines.items()}
        found = choose_method(X, labels, auto_pairs(trials, None if auto else self.method_))
        self.method_, self.model_ = clone(found.pair.method), engines[found.pair.model_name]
        self.selection_, self.selection_why_ = found.losses, found.why

    def _choose_setting(self, X: Any, labels: Labels, teachers: Teachers) -> None:
        """Choose l2, or rounds, by cross-validation; where the past is too short for that, take the middle value."""
        model, methods = self.model_, {"it": self.method_}
        choices = choose_setting(X, {"it": labels}, model.for_trials(), methods, model.grid, teachers)
        value = chosen_value(choices["it"], model.grid)
        model.set_params(**{str(model.setting): value})
        logger.info("%s=%g", model.setting, value)

    def risk(self, X: Any, y: Any, *, elapsed: Any = None, delay: Any = None, sample_weight: Any = None) -> float:
        """The method's own risk of other rows, as they are known: what a fit minimises, without the penalty.

        Lower is better, for the same method and rows. It needs no final labels, so it can choose settings; see
        :class:`belated.RiskScorer`. Of DFM and Hazard it is the log loss of labels as they stand given each row's age, under the law
        of delays that was learned in fit.
        """
        check_is_fitted(self, "model_")
        X = self._features(X, reset=False)
        positive = read_positives(y, self.classes_)
        check_consistent_length(X, positive)
        weight = _check_sample_weight(sample_weight, positive, dtype=np.float64, ensure_non_negative=True)
        labels = check_labels(positive, elapsed, delay, weight, self.window_, self.horizon_, self.classes_[-1])
        learner: Learner = no_learner
        if self.method_.has_auxiliary_fits or self.method_.has_teacher:
            engine = clone(self.model_, safe=False)
            learner = EngineLearner(engine, engine.encode(X, weight), Teachers(X))
        with quietly():  # a stretch of time may well hold nothing late
            found = self.method_.risk_of_others(labels, self.link_, learner)
        return left_out_risk(found, self.model_.margins(X), self.model_.shared_)

    def decision_function(self, X: Any) -> Floats:
        """A score of shape (n,), positive where the positive class is likelier; its log odds unless the loss is another."""
        margins, shared = self._margins(X)
        return self.link_.decision(margins, shared)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, elapsed: Any = None) -> Floats:
        """Probabilities of shape (n, 2): p(in the end negative), p(in the end positive).

        With ``elapsed``, the age of each row in the unit of ``fit``: of rows that have waited so long and are still negative.

        Of a Dask or Spark frame, the same frame with a column ``probability`` more, that of the positive class; it is computed there. ``elapsed`` is then the
        name of a column.
        """
        if engine_of(X) is not None:
            return self._with_columns(X, {"probability": partial(_positive, elapsed=elapsed)})
        if elapsed is None:
            margins, shared = self._margins(X)
            p = self.link_.probability(margins, shared)
        else:
            p = self._still_to_come(X, elapsed)
        return np.column_stack([1.0 - p, p])

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    @property
    def coef_(self) -> Floats:
        return self._of_linear_model("coef_")

    @property
    def intercept_(self) -> Floats:
        return self._of_linear_model("intercept_")

    def _of_linear_model(self, name: str) -> Floats:
        """An attribute of the fitted engine; an AttributeError, as scikit-learn expects, where there is none."""
        if "model_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted.")
        found: Floats | None = getattr(self.model_, name, None)
        if found is None:
            raise AttributeError(f"{type(self.model_).__name__} has no {name}: it is not linear in the features.")
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """A name for each column of ``coef_``: a feature of an array, or a category or range of a table's column."""
        check_is_fitted(self, "model_")
        if not hasattr(self.model_, "get_feature_names_out"):
            raise AttributeError(f"{type(self.model_).__name__} has no names for the columns of its coefficients.")
        found: NDArray[np.object_] = self.model_.get_feature_names_out(input_features)
        return found

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to a file, which :func:`belated.load` reads; loading runs no code from the file."""
        check_is_fitted(self, "model_")
        ModelFile(self).save(path)

    def _margins(self, X: Any) -> tuple[Floats, Floats]:
        check_is_fitted(self, "model_")
        return self.model_.margins(self._features(X, reset=False)), self.model_.shared_

    def _features(self, X: Any, reset: bool) -> Any:
        if isinstance(X, FieldMatrix):
            return self._fields(X, reset)
        if isinstance(X, ClusterTable):
            return self._on_cluster(X, reset)
        X = in_memory(X)
        is_table = _is_table(X)
        encoder = None if reset else getattr(self, "_field_encoder_", None)
        if is_table and encoder is not None:
            return self._fields(encoder.transform(X), reset)
        kind = "a table" if is_table else "an array"
        if not reset and kind != self._kind_of_X_:
            how = " Make one with FieldMatrix.from_frame(table)." if "FieldMatrix" in self._kind_of_X_ else ""
            raise ValueError(f"X is {kind} now but was {self._kind_of_X_} in fit. Pass the same kind.{how}")
        if reset:
            self._kind_of_X_ = kind
        if is_table:
            if not open_table(X, "X").columns:
                raise ValueError("X has no columns, and a classifier needs features.")
            return validate_data(self, X, reset=reset, skip_check_array=True)
        if type(X) is dict:
            open_table(X, "X")
        # A model that takes missing values says so.
        finite = "allow-nan" if self._takes_missing() and not sparse.issparse(X) else True
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=finite)

    def _takes_missing(self) -> bool:
        model = open_model(self.model) if isinstance(self.model, str) and self.model in MODELS else self.model
        return bool(getattr(model, "takes_missing", False))

    def _fields(self, X: FieldMatrix, reset: bool) -> FieldMatrix:
        if len(X) == 0:
            raise ValueError("X is empty.")
        kind = f"a FieldMatrix of {X.n_columns} columns"
        if reset:
            self._kind_of_X_, self.n_features_in_ = kind, X.n_fields
            self._field_encoder_ = X.encoder
        elif (self.n_features_in_, self._kind_of_X_) != (X.n_fields, kind):
            raise ValueError(
                f"{X!r} does not match fit, where X was {self._kind_of_X_} with {self.n_features_in_} features."
            )
        return X

    def _on_cluster(self, X: ClusterTable, reset: bool) -> ClusterTable:
        if reset:
            self.n_features_in_ = len(X.columns)
            if X.encoder is not None:
                self._kind_of_X_, self._field_encoder_ = f"a FieldMatrix of {X.encoder.n_columns} columns", X.encoder
            else:
                self._kind_of_X_, self.feature_names_in_ = "a table", np.array(X.columns, dtype=object)
        return X

    def _labels(self, y: Any) -> Bools:
        y = plain_labels(y)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        if len(self.classes_) > 2:
            raise ValueError(f"Only binary classification is supported. The type of the target is {type_of_target(y)}.")
        return y == self.classes_[-1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing()
        return tags


def _positive(classifier: DelayedFeedbackClassifier, X: Any, elapsed: Any = None) -> Floats:
    """On a worker: the probability of the positive class."""
    ages = None if elapsed is None else column_of(X, elapsed, "elapsed")
    return classifier.predict_proba(features_of(classifier, X), ages)[:, 1]


def _is_fitted(name: str) -> bool:
    """Whether an attribute comes from a fit: scikit-learn's convention."""
    return name.endswith("_") and not name.startswith("__")


def _is_table(X: Any) -> bool:
    """Whether X has named columns. A pandas frame without names (of numbers, say) counts as an array, as elsewhere."""
    if not nw.dependencies.is_into_dataframe(X):
        return False
    names = column_names(X)
    return not names or any(isinstance(name, str) for name in names)


def _take(X: Any, keep: Bools) -> Any:
    return take_rows(X, keep) if _is_table(X) else X[keep]


def _check_classes(positive: Bools, weight: Floats, classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {classes[0]}, in all {len(positive)} rows. A classifier needs both.")
    for side, label in ((~positive, classes[0]), (positive, classes[1])):
        if not weight[side].sum() > 0:
            raise ValueError(f"every row of class {label} has sample_weight 0. A classifier needs both classes.")


def _log_correction(risk: NonNegativeRisk, margins: Floats, labels: Labels) -> None:
    """Say how likely NnDF's correction is to bias this fit."""
    negative, largest = risk.negative_part(margins), float(risk.loss.value(-margins[:, 0]).max())
    bound = correction_bound(negative, largest, len(labels.y), int(labels.mature.sum()))
    logger.info(
        "NnDF: the risk of negatives is %.4g; that keeping it above 0 biases this fit has a probability of at most %.2g (Lemma 1)",
        negative,
        bound,
    )


def _log(method: Method, labels: Labels) -> None:
    n = len(labels.y)
    if method.needs_times and labels.elapsed is None:
        # No warning of Python's: whoever has final labels has nothing to mend.
        logger.warning(
            "%r: %d rows without ages, so all labels count as final and nothing is corrected (pass elapsed= and delay=)",
            method,
            n,
        )
    elif method.needs_window and labels.window is not None:
        young, late = n - int(labels.mature.sum()), int(labels.late.sum())
        logger.info(
            "%r: window %g, %d rows, %d of them younger, %d positives late", method, labels.window, n, young, late
        )
    else:
        logger.info("%r: %d rows", method, n)
