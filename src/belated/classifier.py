"""DelayedFeedbackClassifier: a method and a model as one scikit-learn estimator."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from belated.data.labels import Observed, observe
from belated.evaluation.validation import AUTO, L2_GRID, Choice, choose_l2
from belated.features.fields import FieldMatrix
from belated.methods import BL, Method, resolve_method
from belated.models import LinearModel, Model
from belated.tables.frames import column_names, open_table, take_rows
from belated.typing import Bools, Floats

logger = logging.getLogger("belated")


def _gives_probabilities(classifier: DelayedFeedbackClassifier) -> bool:
    if hasattr(classifier, "link_") and not classifier.link_.has_probability:
        raise AttributeError(
            "the double hinge loss gives no probabilities; use decision_function, or the logistic loss."
        )
    return True


class DelayedFeedbackClassifier(ClassifierMixin, BaseEstimator):
    """A classifier for labels that arrive late.

    Parameters
    ----------
    method : str or Method
        The correction: ``"bl"``, ``"tw"``, ``"putw"``, ``"pnutw"``, ``"convdf"``, ``"nndf"``, ``"fsiw"``, ``"dfm"``,
        ``"dfm-weibull"``, ``"dfm-piecewise"``, ``"hazard"``, ``"pu"``, ``"rescale"``, ``"stc"``, or an object such as
        ``ConvDF(normalizer="paper")``. ``"auto"`` sets the clock back, tries the usual ones on what was known then, and takes
        the one that would have predicted best what has come since (:mod:`belated.evaluation.validation`).
    window : float, optional
        The age from which a label counts as final, in the unit of ``elapsed``. By default the horizon.
    horizon : float, optional
        The age after which nothing turns positive any more. By default there is none.
    model : Model, optional
        The engine; by default ``LinearModel()``, and with ``method="auto"`` its l2 is chosen too.

    Attributes
    ----------
    classes_ : array of the two classes
        In sorted order; the second is the one that arrives late.
    method_ : Method
    model_ : Model
        The fitted engine.
    selection_ : dict, with ``method="auto"``
        The validation loss of each method at its best l2, or why it could not be tried.
    n_features_in_ : int
    feature_names_in_ : array of str, where X was a table

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, elapsed, wait = rng.normal(size=(4000, 2)), rng.uniform(0, 21, 4000), rng.exponential(3.0, 4000)
    >>> converts = rng.uniform(size=4000) < 0.3
    >>> y = (converts & (wait <= elapsed)).astype(int)
    >>> clf = DelayedFeedbackClassifier(method="convdf", window=10.0)
    >>> clf.fit(X, y, elapsed=elapsed, delay=np.where(y == 1, wait, np.nan))
    DelayedFeedbackClassifier(method='convdf', window=10.0)
    >>> p = clf.predict_proba(X)[:, 1]
    >>> [float(v.mean().round(2)) for v in (y, p, converts)]
    [0.24, 0.28, 0.28]
    """

    _fitted_on_table: bool

    def __init__(
        self,
        method: str | Method = "nndf",
        window: float | None = None,
        horizon: float | None = None,
        model: Model | None = None,
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
        """
        X = self._features(X, reset=True)
        positive = self._labels(y)
        check_consistent_length(X, positive)
        weight = _check_sample_weight(sample_weight, positive, dtype=np.float64, ensure_non_negative=True)
        _check_classes(positive, weight, self.classes_)
        auto = isinstance(self.method, str) and self.method == "auto"
        self.method_ = BL() if auto else clone(resolve_method(self.method))
        self.model_ = LinearModel() if self.model is None else clone(self.model, safe=False)
        if not isinstance(self.model_, Model):
            raise ValueError(f"model must be one of belated's models, such as LinearModel(), got {self.model!r}.")
        observed = observe(positive, elapsed, delay, weight, self.window, self.horizon, self.classes_[-1])
        if (
            elapsed is None
            and (auto or self.method_.needs_window)
            and (self.window is not None or self.horizon is not None)
        ):
            raise ValueError(
                f"{'auto' if auto else type(self.method_).__name__} with a window needs elapsed and delay: pass them to fit, and request them "
                f"(set_fit_request(elapsed=True, delay=True)) where a scikit-learn meta-estimator does the fitting."
            )
        if not weight.all():
            # A row of weight 0 is no row: neither its age nor its features count anywhere.
            X, observed = _take(X, weight > 0), observed.take(weight > 0)
        if auto and elapsed is not None:
            self._choose(X, observed)
        self.method_.check(observed)
        _log(self.method_, observed)
        encoded = self.model_.encode(X, observed.weight)
        risk = self.method_.risk(observed, partial(self.model_.side_margin, encoded))
        self.model_.fit(encoded, risk)
        self.link_ = risk.link
        return self

    def _choose(self, X: Any, observed: Observed) -> None:
        """Take the method, and unless a model was given the l2, that set back in time would have served best."""
        if observed.delay is None:
            raise ValueError(
                "method='auto' needs the delay of each positive beside elapsed: pass delay=snap.delay to fit."
            )
        grid = L2_GRID if self.model is None else None
        tried = choose_l2(X, observed, clone(self.model_, safe=False), {n: resolve_method(n) for n in AUTO}, grid)
        choices = {name: choice for name, choice in tried.items() if isinstance(choice, Choice)}
        if not choices:
            raise ValueError(
                f"method='auto' cannot choose: {next(iter(tried.values()))}. Name a method, or lengthen the lookback."
            )
        best = min(choices, key=lambda name: choices[name].loss)
        self.method_ = resolve_method(best)
        if grid is not None:
            self.model_.set_params(l2=choices[best].l2)
        self.selection_ = {n: c.loss if isinstance(c, Choice) else c for n, c in tried.items()}
        logger.info("auto: %s at l2 %s", best, choices[best].l2)

    def decision_function(self, X: Any) -> Floats:
        """A score of shape (n,), positive where the positive class is likelier; its log odds unless the loss is another."""
        margins, shared = self._margins(X)
        return self.link_.decision(margins, shared)

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of shape (n, 2): p(in the end negative), p(in the end positive)."""
        margins, shared = self._margins(X)
        p = self.link_.probability(margins, shared)
        return np.column_stack([1.0 - p, p])

    def predict(self, X: Any) -> NDArray[Any]:
        """The likelier class."""
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def _margins(self, X: Any) -> tuple[Floats, Floats]:
        check_is_fitted(self, "model_")
        return self.model_.margins(self._features(X, reset=False)), self.model_.shared_

    def _features(self, X: Any, reset: bool) -> Any:
        if isinstance(X, FieldMatrix):
            return self._fields(X, reset)
        X = pa.Table.from_batches([X]) if isinstance(X, pa.RecordBatch) else X
        is_table = _is_table(X)
        if not reset and is_table != self._fitted_on_table:
            kinds = ("an array", "a table")
            raise ValueError(
                f"X is {kinds[is_table]} now but was {kinds[self._fitted_on_table]} in fit. Pass the same kind."
            )
        if reset:
            self._fitted_on_table = is_table
        if is_table:
            if not open_table(X, "X").columns:
                raise ValueError("X has no columns, and a classifier needs features.")
            return validate_data(self, X, reset=reset, skip_check_array=True)
        if "LazyFrame" in type(X).__name__ or type(X) is dict:
            open_table(X, "X")
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)

    def _fields(self, X: FieldMatrix, reset: bool) -> FieldMatrix:
        if len(X) == 0:
            raise ValueError("X is empty.")
        if reset:
            self._fitted_on_table, self.n_features_in_, self._n_columns = False, X.n_fields, X.n_columns
        elif (self.n_features_in_, getattr(self, "_n_columns", None)) != (X.n_fields, X.n_columns):
            raise ValueError(f"{X!r} does not match fit, where there were {self.n_features_in_} features.")
        return X

    def _labels(self, y: Any) -> Bools:
        y = column_or_1d(np.asarray(y), warn=True)
        if y.dtype.kind == "O":  # nullable types, and what merges leave behind
            y = np.array([np.nan if type(value).__name__ in ("NAType", "NoneType") else value for value in y])
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
        return tags


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


def _log(method: Method, observed: Observed) -> None:
    n = len(observed.y)
    if method.needs_window and observed.window is not None:
        young, late = n - int(observed.mature.sum()), int(observed.late.sum())
        logger.info(
            "%r: window %g, %d rows, %d of them younger, %d positives late", method, observed.window, n, young, late
        )
    else:
        logger.info("%r: %d rows", method, n)
