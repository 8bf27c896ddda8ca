"""BoostingModel: margins that are sums of trees, grown by LightGBM on the gradient of any risk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.base import clone

from belated.extras import needs
from belated.features.codes import CodeEncoder
from belated.features.field_matrix import FieldMatrix
from belated.models.base import Model, require_risk, require_setting
from belated.models.linear import LinearModel
from belated.models.tree_text import check_trees
from belated.notices import progress_bar, quietly
from belated.risks.base import Risk
from belated.tables.frames import array_as_table
from belated.typing import Bools, Floats, Ints

_LARGEST_STEP = 0.2  # of a margin in one round, where the curvature at a point says little about the way ahead
_SHALLOW = {"num_leaves": 4}
_DELAY_L2 = 1e-3
_HALVINGS = 4  # of a step of the shared parameters, in one round
_EAGER, _SELDOM = 10, 5  # shared parameters move in each of the first rounds, then in every so many
_SETTLING = 4  # steps of theirs before a model is done
_AUXILIARY_ROUNDS = 100
_SMALL = 1_000_000  # entries of a matrix


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
        1 for columns with which the probability may only rise, -1 for those with which it may only fall, 0 for others.
    params : mapping, optional
        Further parameters of LightGBM.
    seed : int
    threads : int, optional
        By default one for small data, where threads would wait for each other, else as many as there are cores. The same seed, rows and threads give the same trees.
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
        self.encoder_ = None
        if isinstance(X, FieldMatrix) or nw.dependencies.is_into_dataframe(X):
            self.encoder_ = CodeEncoder().fit(X, sample_weight=weight)
        return BoostingRows(self._matrix(X), X, weight)

    def transform(self, X: Any) -> BoostingRows:
        return X if isinstance(X, BoostingRows) else BoostingRows(self._matrix(X), X)

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
        learning = _Learning(self, encoded, risk)
        with progress_bar(f"{type(self).__name__}: rounds", int(max(values)), self.progress) as advance:
            for value in self.simplest_first(values):
                while learning.done < value:
                    learning.one_round()
                    advance()
                yield learning.model(int(value))

    def _paths_of_parts(self, encoded: BoostingRows, risk: Risk, values: Sequence[float]) -> Iterator[BoostingModel]:
        """One-margin risks that share nothing, each by itself."""
        for models in zip(*(self.path(encoded, part, values) for part in risk.parts), strict=True):
            joined = models[0]
            joined.boosters_ = [booster for model in models for booster in model.boosters_]
            joined.base_ = np.concatenate([model.base_ for model in models])
            yield joined

    def for_more_rows(self, value: float, factor: float) -> float:
        return round(value * factor**0.5)  # more rows bear more rounds

    def margins(self, X: Any) -> Floats:
        rows = self.transform(X)
        matrix, n = rows.matrix, rows.matrix.shape[0]
        if self.groups_:
            columns = [self._raw(0, with_column(matrix, np.full(n, float(k)))) for k in range(self.groups_)]
            return np.column_stack(columns)
        return np.column_stack([self._raw(k, matrix) + self._linear_part(k, rows) for k in range(len(self.base_))])

    def _raw(self, k: int, matrix: Any) -> Floats:
        booster, level = self.boosters_[k], np.full(matrix.shape[0], self.base_[k])
        if booster is None or self.rounds == 0:
            return level
        return level + booster.predict(
            matrix, raw_score=True, num_iteration=self.rounds, num_threads=self.threads or _threads(matrix)
        )

    def _linear_part(self, k: int, rows: BoostingRows) -> Floats | float:
        return 0.0 if self.delay_ is None or k != self.delay_[0] else rows.linear_margins(self.delay_[1])[:, k]

    def auxiliary_margin(
        self, encoded: BoostingRows, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints
    ) -> Floats:
        learning = _Learning(self, encoded.take(rows).with_groups(groups), risk)
        for _ in range(_AUXILIARY_ROUNDS):
            learning.one_round()
        return learning.model(_AUXILIARY_ROUNDS)._raw(0, with_column(encoded.matrix, new_groups.astype(np.float64)))

    @property
    def feature_importances_(self) -> Floats:
        """The share of the gain of all splits of the first margin; without its column of groups, where it has one."""
        booster = self.boosters_[0]
        gain = booster.feature_importance("gain", iteration=self.rounds)
        gain = gain[: len(gain) - bool(self.groups_)]
        return gain / max(gain.sum(), 1e-300)

    def shap_values(self, X: Any) -> Floats:
        """What each column adds to the first margin, and last the expected margin: (n, n_columns + 1), by LightGBM's TreeSHAP."""
        if self.groups_:
            raise ValueError("shap_values are those of one margin, and this method has one for each group of ages.")
        matrix = self.transform(X).matrix
        found = np.asarray(self.boosters_[0].predict(matrix, pred_contrib=True, num_iteration=self.rounds))
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
            state = {**state, "boosters_": [None if t is None else _read(lightgbm, t, width) for t in texts]}
        super().__setstate__(state)

    def _check(self) -> None:
        choices = {"delay_model": ("linear", "shallow", "constant", "full"), "categories": ("frequency", "native")}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r} is not known; choose one of {', '.join(allowed)}.")
        if (self.params or {}).get("linear_tree"):
            raise ValueError("linear_tree is not supported: such trees cannot be stored safely.")
        if self.rounds is not None and not (isinstance(self.rounds, int) and self.rounds >= 0):
            raise ValueError(f"rounds={self.rounds!r} must be a whole number of at least 0, or None.")


def import_lightgbm() -> Any:
    with needs("boost"):
        try:
            import lightgbm
        except OSError as error:
            raise ValueError(
                f"LightGBM is there but cannot be loaded ({error}). It needs OpenMP: on Debian, apt-get install libgomp1."
            ) from None
    return lightgbm


def _threads(matrix: Any) -> int:
    """In LightGBM's way: 0 for as many as it finds."""
    return 1 if matrix.shape[0] * matrix.shape[1] < _SMALL else 0


def _read(lightgbm: Any, text: str, width: int) -> Any:
    check_trees(text, width)
    return lightgbm.Booster(model_str=text)


@dataclass(frozen=True)
class BoostingRows:
    """Rows as a matrix for trees, and, where a linear part asks for them, as that wants them."""

    matrix: Any
    X: Any
    weight: Floats | None = None
    has_group: bool = False
    _known: dict[str, Any] = field(default_factory=dict)

    def linear_margins(self, model: LinearModel) -> Floats:
        """The margins of a linear part; kept, since it is the same after many rounds as after few."""
        if self._known.get("model") is not model:
            self._known.update(model=model, margins=model.margins(array_as_table(self.X)))
        return self._known["margins"]

    def take(self, rows: Any) -> BoostingRows:
        return BoostingRows(self.matrix[rows], None, None, self.has_group)

    def with_groups(self, groups: Ints) -> BoostingRows:
        """The same with the group as one more column, the last."""
        matrix = with_column(self.matrix, groups.astype(np.float64))
        return BoostingRows(matrix, None, None, True)


def with_column(matrix: Any, column: Floats) -> Any:
    if sparse.issparse(matrix):
        return sparse.hstack([matrix, sparse.csr_matrix(column[:, None])], format="csr")
    return np.column_stack([matrix, column])


class _Learning:
    """A sequence of rounds: one tree for each margin that has trees, then a step of the shared parameters."""

    def __init__(self, engine: BoostingModel, rows: BoostingRows, risk: Risk) -> None:
        self.engine, self.occurrences = engine, risk.occurrences
        if risk.occurrences is not None:
            rows, risk = rows.take(risk.occurrences.row).with_groups(risk.occurrences.group), risk.occurrences.risk
        levels, shared = risk.start()
        active = _active(risk, levels, shared, rows.matrix.shape[0])
        self.delay = self._delay_margin(rows, risk)
        if not active.all():
            rows, risk = rows.take(active), risk.take(active)
        self.rows, self.risk, self.base, self.shared, self.done = rows, risk, levels.copy(), shared, 0
        self.shared_curvature = risk.shared_curvature()
        self.scale = float(rows.matrix.shape[0])
        self.margins = np.tile(levels, (rows.matrix.shape[0], 1))
        if self.delay is not None:
            k, model, values = self.delay
            self.base[k], self.shared = 0.0, model.shared_.copy()
            self.margins[:, k] = values[active]
        self.boosters = self._boosters()
        self.stride = 1.0
        self.value, self.gradient, self.d_shared = risk.value_and_gradient(self.margins, self.shared)

    def _delay_margin(self, rows: BoostingRows, risk: Risk) -> Any:
        """The margin that a linear model is to give, that model, and its values."""
        if self.engine.delay_model != "linear" or not risk.simple_margins:
            return None
        (k,) = risk.simple_margins
        assert rows.weight is not None
        model = LinearModel(l2=_DELAY_L2, tol=1e-6)
        with quietly():
            model.fit(model.encode(array_as_table(rows.X), rows.weight), risk)
        return k, model, rows.linear_margins(model)[:, k]

    def _boosters(self) -> list[Any]:
        import lightgbm

        engine, dataset = self.engine, None
        sequence: list[Any] = []
        for k in range(self.risk.n_margins):
            simple = k in self.risk.simple_margins
            if simple and engine.delay_model in ("linear", "constant"):
                sequence.append(None)
                continue
            params = self._params(simple and engine.delay_model == "shallow", first=k == 0)
            if dataset is None:
                dataset = lightgbm.Dataset(self.rows.matrix, params=params, **self._columns()).construct()
            sequence.append(lightgbm.Booster(params, dataset))
        return sequence

    def _columns(self) -> dict[str, Any]:
        encoder = self.engine.encoder_
        if encoder is None or self.engine.categories != "native":
            return {}
        return {"categorical_feature": np.flatnonzero(encoder.categorical_).tolist()}

    def _params(self, shallow: bool, first: bool) -> dict[str, Any]:
        engine = self.engine
        params = {
            "objective": "none",
            "metric": "none",
            "learning_rate": engine.learning_rate,
            "num_leaves": engine.num_leaves,
            "min_data_in_leaf": min(engine.min_data_in_leaf, max(self.rows.matrix.shape[0] // 20, 1)),
            "feature_fraction": engine.feature_fraction,
            "bagging_fraction": engine.bagging_fraction,
            "bagging_freq": int(engine.bagging_fraction < 1),
            "seed": engine.seed,
            "num_threads": engine.threads or _threads(self.rows.matrix),
            "deterministic": True,
            "force_col_wise": True,
            "verbose": -1,
        }
        if self.risk.steep:
            params["max_delta_step"] = _LARGEST_STEP / engine.learning_rate
        constraints = self._constraints() if first else None
        if constraints is not None:
            params["monotone_constraints"] = constraints
        return {**params, **(_SHALLOW if shallow else {}), **(engine.params or {})}

    def _constraints(self) -> list[int] | None:
        width, monotone = self.rows.matrix.shape[1], self.engine.monotone
        age = bool(self.occurrences is not None and self.occurrences.increasing)
        if monotone is None and not age:
            return None
        own = width - self.rows.has_group
        signs = [0] * own if monotone is None else _signs(monotone, self.engine.encoder_, own)
        return signs + [int(age)] * self.rows.has_group

    def one_round(self) -> None:
        if self.done < _EAGER or self.done % _SELDOM == 0:
            self._step_shared()
        curvature = self.scale * self.risk.bounding_curvature(self.margins, self.shared)
        for k, booster in enumerate(self.boosters):
            if booster is None:
                continue
            slope, bend = self.scale * self.gradient[:, k], curvature[:, k]
            booster.update(fobj=lambda _, __, slope=slope, bend=bend: (slope, bend))
            # The documented way to the training margins: a metric that keeps what it is given.
            booster.eval_train(lambda found, _, k=k: self._keep(k, found))
        self.done += 1
        self.value, self.gradient, self.d_shared = self.risk.value_and_gradient(self.margins, self.shared)

    def _keep(self, k: int, found: Floats) -> tuple[str, float, bool]:
        self.margins[:, k] = self.base[k] + found
        return "", 0.0, False

    def _step_shared(self) -> None:
        """A Newton step of the shared parameters, and of the level of a margin without trees, that lowers the value."""
        levels = [
            k for k, one in enumerate(self.boosters) if one is None and self.delay is None and self.risk.intercepts[k]
        ]
        if self.shared_curvature is None and not levels:
            return
        down = np.zeros(len(self.base))
        if levels:
            curvature = self.risk.bounding_curvature(self.margins, self.shared)[:, levels].sum(axis=0)
            down[levels] = self.gradient[:, levels].sum(axis=0) / np.maximum(curvature, 1e-300)
        turn = np.zeros(len(self.shared))
        if self.shared_curvature is not None:
            turn = np.linalg.solve(self.shared_curvature, self.d_shared)
        down, turn = np.clip(down, -1.0, 1.0), np.clip(turn, -1.0, 1.0)
        for _ in range(_HALVINGS):
            margins, shared = self.margins - self.stride * down, self.shared - self.stride * turn
            value, gradient, d_shared = self.risk.value_and_gradient(margins, shared)
            if value <= self.value:
                self.base, self.margins, self.shared = self.base - self.stride * down, margins, shared
                self.value, self.gradient, self.d_shared = value, gradient, d_shared
                self.stride = min(2.0 * self.stride, 1.0)
                return
            self.stride /= 2.0

    def _settled(self) -> tuple[Floats, Floats]:
        """Constants and shared parameters as they would be after a few more steps of their own; the rounds go on without."""
        names = ("base", "margins", "shared", "value", "gradient", "d_shared", "stride")
        before = {name: getattr(self, name) for name in names}
        for _ in range(_SETTLING):
            self._step_shared()
        found = self.base.copy(), self.shared.copy()
        self.__dict__.update(before)
        return found

    def model(self, rounds: int) -> BoostingModel:
        """The model after the rounds so far."""
        found: BoostingModel = clone(self.engine)
        found.rounds = rounds
        found.encoder_ = self.engine.encoder_
        found.boosters_, (found.base_, found.shared_) = self.boosters, self._settled()
        found.delay_ = None if self.delay is None else self.delay[:2]
        found.groups_ = 0 if self.occurrences is None else self.occurrences.count
        found.n_columns_ = self.rows.matrix.shape[1] - self.rows.has_group
        return found


def _active(risk: Risk, levels: Floats, shared: Floats, rows: int) -> Bools:
    """Rows that cost something; the others would only fill leaves."""
    margins = np.tile(levels, (rows, 1))
    gradient = risk.value_and_gradient(margins, shared)[1]
    return ((gradient != 0) | (risk.bounding_curvature(margins, shared) != 0)).any(axis=1)


def _signs(monotone: Mapping[str, int] | Sequence[int], encoder: CodeEncoder | None, width: int) -> list[int]:
    """The constraint of each column; by name where the columns have names."""
    if not isinstance(monotone, Mapping):
        signs = [int(sign) for sign in monotone]
        if len(signs) != width:
            raise ValueError(f"monotone has {len(signs)} entries, but there are {width} columns.")
        return signs
    names = [] if encoder is None else list(encoder.codes_)
    strange = [name for name in monotone if name not in names]
    if strange:
        raise ValueError(f"monotone names {strange[0]!r}, which is no column of X. They are {', '.join(names)}.")
    assert encoder is not None
    unordered = [name for name in monotone if monotone[name] and encoder.codes_[name] is not None]
    if unordered:
        raise ValueError(f"monotone names {unordered[0]!r}, which holds categories: they have no order.")
    return [int(monotone.get(name, 0)) for name in names]
