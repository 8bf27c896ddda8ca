"""BoostingModel: margins that are sums of trees, grown by LightGBM on the gradient of any risk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse

from belated.cluster.sharded import by_rows
from belated.features.cluster_table import ClusterTable
from belated.features.codes import CodeEncoder
from belated.features.field_matrix import FieldMatrix
from belated.models.base import Model, require_number, require_risk, require_setting, require_whole
from belated.models.boosting_params import check_params
from belated.models.boosting_rounds import BoostingRows, Rounds, import_lightgbm, threads_for, with_column
from belated.models.cluster_boosting import ClusterBoostingRows, encode_for_trees, margins_for_groups, path_on_cluster
from belated.models.tree_text import rewritten
from belated.notices import progress_bar
from belated.risks.base import Risk
from belated.typing import Bools, Floats, Ints

_AUXILIARY_ROUNDS = 100


class BoostingModel(Model):
    """Minimise a risk by boosted trees (LightGBM, extra ``boost``), each grown on its gradient and curvature.

    Tables are taken as they are: numbers and their missing values natively, categories as ``categories`` says.

    Parameters
    ----------
    rounds : int, optional
        How many trees a margin has. None: chosen in fit, by cross-validation over blocks of arrival time, on the method's
        own risk.
    learning_rate, num_leaves, min_data_in_leaf, feature_fraction, bagging_fraction : numbers
        As in LightGBM. The fractions are of columns for each tree and of rows for each round.
    delay_model : {"linear", "shallow", "constant", "full"}
        How much freedom the delay margin of DFM has, for two free functions of x explain a young row equally well: that of
        a linear model fitted first, trees of four leaves, none, or as much as the rate.
    categories : {"frequency", "native"}
        Categories as numbers by how frequent they are, or as LightGBM's own categories, which follow single values more
        closely. On the hotel bookings the first predicts better.
    monotone : mapping of str to int, or sequence of int, optional
        1 for columns with which the first margin may only rise, -1 for those with which it may only fall, 0 for others. That is the
        probability itself, but for DFM (the share that turns positive at any age) and STC (the rate before its correction).
    params : mapping, optional
        Further parameters of LightGBM, by their own names (:mod:`belated.models.boosting_params` has the list).
    seed : int
    threads : int, optional
        By default one for small data, where threads would wait for each other, else as many as there are cores. The same seed,
        rows and threads give the same trees.
    progress : bool
        Whether to show a progress bar of rounds.

    Attributes
    ----------
    boosters_ : list of lightgbm.Booster or None
        The trees of each margin; None for one that has none.
    feature_importances_ : array of shape (n_columns,)
        The share of the gain of all splits of the first margin.
    base_ : array of shape (m,)
        The constant to which trees add.
    shared_ : array of shape (s,)

    Examples
    --------
    >>> from belated import BoostingModel, DelayedFeedbackClassifier
    >>> from belated.datasets import example_log
    >>> snap = example_log().snapshot("2024-01-24", lookback="21d", horizon="7d")
    >>> clf = DelayedFeedbackClassifier("tw", window=5.0, model=BoostingModel(rounds=20)).fit_snapshot(snap)
    >>> clf.predict_proba(snap.X).shape
    (4174, 2)
    """

    setting = "rounds"
    grid = (40, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500, 600, 800, 1000)
    takes_simplest = False
    auxiliary_follows_setting = False
    takes_groups = True
    takes_missing = True

    def __init__(
        self,
        rounds: int | None = None,
        learning_rate: float = 0.03,
        num_leaves: int = 15,
        min_data_in_leaf: int = 100,
        feature_fraction: float = 0.7,
        bagging_fraction: float = 1.0,
        delay_model: str = "linear",
        categories: str = "frequency",
        monotone: Mapping[str, int] | Sequence[int] | None = None,
        params: Mapping[str, Any] | None = None,
        seed: int = 0,
        threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.rounds = rounds
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_data_in_leaf = min_data_in_leaf
        self.feature_fraction = feature_fraction
        self.bagging_fraction = bagging_fraction
        self.delay_model = delay_model
        self.categories = categories
        self.monotone = monotone
        self.params = params
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def encode(self, X: Any, weight: Floats) -> BoostingRows:
        import_lightgbm()
        self._check()
        if isinstance(X, ClusterTable):
            return encode_for_trees(self, X, weight)  # type: ignore[return-value]
        self.encoder_ = None
        if isinstance(X, FieldMatrix) or nw.dependencies.is_into_dataframe(X):
            self.encoder_ = CodeEncoder().fit(X, sample_weight=weight)
        return BoostingRows(self._matrix(X), X, weight)

    def transform(self, X: Any) -> BoostingRows:
        return X if isinstance(X, BoostingRows | ClusterTable) else BoostingRows(self._matrix(X), X)  # type: ignore[return-value]

    def _matrix(self, X: Any) -> Any:
        if self.encoder_ is not None:
            return self.encoder_.transform(X)
        return sparse.csr_matrix(X) if sparse.issparse(X) else np.asarray(X)

    def fit(self, encoded: BoostingRows, risk: Risk) -> BoostingModel:
        require_risk(self, risk)
        (fitted,) = self.path(encoded, risk, [require_setting(self)])
        self.__dict__.update(fitted.__dict__)
        for booster in self.boosters_:
            if booster is not None:
                booster.free_dataset()
        return self

    @property
    def encoders(self) -> list[Any]:
        delay = getattr(self, "delay_", None)
        return super().encoders + ([] if delay is None else delay[1].encoders)

    def path(self, encoded: BoostingRows, risk: Risk, values: Sequence[float]) -> Iterator[BoostingModel]:
        """Copies of this model with the first rounds of one and the same sequence of trees, from few to many."""
        if risk.parts:
            yield from self._paths_of_parts(encoded, risk, values)
            return
        yield from self._path(encoded, risk, values)

    def _path(
        self, encoded: BoostingRows, risk: Risk, values: Sequence[float], first: bool = True
    ) -> Iterator[BoostingModel]:
        """Of a risk that has no parts, or is one, the first or another."""
        if isinstance(encoded, ClusterBoostingRows):
            yield from path_on_cluster(self, encoded, risk, values, first)
            return
        learning = Rounds(self, encoded, risk, constrained=first)
        with progress_bar(f"{type(self).__name__}: rounds", int(max(values)), self.progress and first) as advance:
            for value in self.simplest_first(values):
                while learning.done < value:
                    learning.one_round()
                    advance(learning.done)
                yield learning.model(int(value))

    def _paths_of_parts(self, encoded: BoostingRows, risk: Risk, values: Sequence[float]) -> Iterator[BoostingModel]:
        """One-margin risks that share nothing, each by itself."""
        paths = [self._path(encoded, part, values, first=k == 0) for k, part in enumerate(risk.parts)]
        for models in zip(*paths, strict=True):
            joined = models[0]
            joined.boosters_ = [booster for model in models for booster in model.boosters_]
            joined.base_ = np.concatenate([model.base_ for model in models])
            yield joined

    def for_more_rows(self, value: float, factor: float) -> float:
        return round(value * factor**0.5)  # more rows bear more rounds

    def margins(self, X: Any) -> Floats:
        if isinstance(X, ClusterTable):
            return by_rows(partial(_margins, self), X.rows)
        rows = self.transform(X)
        matrix, n = rows.matrix, rows.matrix.shape[0]
        if self.groups_:
            columns = [self._raw(0, with_column(matrix, np.full(n, float(k)))) for k in range(self.groups_)]
            return np.column_stack(columns) - self.levels_
        return np.column_stack([self._raw(k, matrix) + self._linear_part(k, rows) for k in range(len(self.base_))])

    def _raw(self, k: int, matrix: Any) -> Floats:
        booster, level = self.boosters_[k], np.full(matrix.shape[0], self.base_[k])
        if booster is None or self.rounds == 0:
            return level
        return level + booster.predict(matrix, raw_score=True, **self._how(matrix))

    def _how(self, matrix: Any) -> dict[str, int]:
        return {"num_iteration": int(self.rounds or 0), "num_threads": self.threads or threads_for(matrix)}

    def _linear_part(self, k: int, rows: BoostingRows) -> Floats | float:
        return 0.0 if self.delay_ is None or k != self.delay_[0] else rows.linear_margins(self.delay_[1])[:, k]

    def auxiliary_margin(
        self, encoded: BoostingRows, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints
    ) -> Floats:
        some = encoded.take(rows).with_groups(groups)
        if isinstance(encoded, ClusterBoostingRows):
            (fitted,) = path_on_cluster(self, some, risk, [_AUXILIARY_ROUNDS], first=False)
            return margins_for_groups(fitted, encoded, new_groups)
        learning = Rounds(self, some, risk, constrained=False)
        for _ in range(_AUXILIARY_ROUNDS):
            learning.one_round()
        return learning.model(_AUXILIARY_ROUNDS)._raw(0, with_column(encoded.matrix, new_groups.astype(np.float64)))

    @property
    def feature_importances_(self) -> Floats:
        """The share of the gain of all splits of the first margin; without its column of groups, where it has one."""
        booster = self.boosters_[0]
        if booster is None or self.rounds == 0:
            return np.zeros(self.n_columns_)
        gain = np.asarray(booster.feature_importance("gain", iteration=self.rounds))[: self.n_columns_]
        return gain / max(gain.sum(), 1e-300)

    def shap_values(self, X: Any) -> Floats:
        """What each column adds to the first margin, and last the expected margin: (n, n_columns + 1), by LightGBM's TreeSHAP."""
        if self.groups_:
            raise ValueError("shap_values are those of one margin, and this method has one for each group of ages.")
        matrix, booster = self.transform(X).matrix, self.boosters_[0]
        found = np.zeros((matrix.shape[0], self.n_columns_ + 1))
        if booster is not None and self.rounds != 0:
            shares = booster.predict(matrix, pred_contrib=True, **self._how(matrix))
            found += shares.toarray() if sparse.issparse(shares) else shares
        found[:, -1] += self.base_[0]
        return found

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """A name for each column of ``feature_importances_``."""
        if self.encoder_ is not None:
            return self.encoder_.get_feature_names_out(input_features)
        names = [f"x{k}" for k in range(self.n_columns_)] if input_features is None else input_features
        return np.asarray(names, dtype=object)

    def check_fitted(self) -> None:
        if len(self.boosters_) != len(self.base_):
            raise ValueError("its trees and constants do not fit together")
        if self.delay_ is not None:
            self.delay_[1].check_fitted()

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "boosters_" in state:
            state["boosters_"] = [
                None if one is None else one.model_to_string(num_iteration=self.rounds) for one in state["boosters_"]
            ]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        texts = state.get("boosters_", [])
        if texts:
            lightgbm = import_lightgbm()
            width = state["n_columns_"] + bool(state["groups_"])
            sound = [None if text is None else rewritten(text, width) for text in texts]
            boosters = [None if text is None else lightgbm.Booster(model_str=text) for text in sound]
            state = {**state, "boosters_": boosters}
        super().__setstate__(state)

    def _check(self) -> None:
        choices = {"delay_model": ("linear", "shallow", "constant", "full"), "categories": ("frequency", "native")}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} is not known; choose one of {', '.join(allowed)}.")
        whole = {"rounds": 0, "num_leaves": 2, "min_data_in_leaf": 0, "seed": 0, "threads": 1}
        for name, least in whole.items():
            if getattr(self, name) is None and name not in ("rounds", "threads"):
                raise ValueError(f"{name}=None must be a whole number of at least {least}.")
            require_whole(self, name, least)
        require_number(self, "learning_rate", 0.0, np.inf)
        for name in ("feature_fraction", "bagging_fraction"):
            require_number(self, name, 0.0, 1.0)
        check_params(self.params)


def _margins(model: BoostingModel, X: Any) -> Floats:
    """On a worker."""
    return model.margins(X) if len(X) else np.zeros((0, model.groups_ or len(model.base_)))
