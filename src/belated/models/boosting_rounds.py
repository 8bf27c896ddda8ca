"""Rounds of boosting: trees grown on the gradient of a risk, and steps of what all rows share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from belated.extras import MissingExtra, needs
from belated.features.codes import CodeEncoder
from belated.models.linear import LinearModel
from belated.notices import quietly
from belated.risks.base import EMPTY, Risk
from belated.tables.frames import array_as_table
from belated.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from belated.models.boosting import BoostingModel

_LARGEST_STEP = 0.2  # of a margin in one round, where the curvature at a point says little about the way ahead
_SHALLOW = {"num_leaves": 4}
_DELAY_L2 = 1e-3
_HALVINGS = 4  # of a step of the shared parameters, in one round
_EAGER, _SELDOM = 10, 5  # shared parameters move in each of the first rounds, then in every so many
_SETTLING = 4  # steps of theirs before a model is done
_SMALL = 1_000_000  # entries of a matrix


def import_lightgbm() -> Any:
    with needs("boost"):
        try:
            import lightgbm
        except OSError as error:
            raise MissingExtra(
                f"LightGBM is there but cannot be loaded ({error}). It needs OpenMP: on Debian, apt-get install libgomp1."
            ) from None
    return lightgbm


def threads_for(matrix: Any) -> int:
    """In LightGBM's way: 0 for as many as it finds."""
    return 1 if matrix.shape[0] * matrix.shape[1] < _SMALL else 0


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


@dataclass(frozen=True)
class Among:
    """Of rows of which those at hand are some: a first guess, how many cost something, LightGBM's parameters to reach the others."""

    levels: Floats
    rows: int
    network: dict[str, Any]
    sample: Any  # some of all rows, as a matrix
    increasing: bool  # whether margins may only rise with the group


def in_groups(rows: BoostingRows, risk: Risk) -> tuple[BoostingRows, Risk, Floats]:
    """Rows as they occur in groups, their risk, and the levels of the groups, where they do; else what is given."""
    found = risk.occurrences
    if found is None:
        return rows, risk, np.zeros(0)
    rows = rows.take(found.row).with_groups(found.group)
    if found.increasing:
        # What may only rise is the margin with its level, and trees that are to be monotone must see the sum.
        return rows, found.risk.without_offset(), found.levels
    return rows, found.risk, np.zeros(found.count)


class Rounds:
    """A sequence of rounds: one tree for each margin that has trees, then a step of the shared parameters."""

    def __init__(
        self,
        engine: BoostingModel,
        rows: BoostingRows,
        risk: Risk,
        constrained: bool = True,
        among: Among | None = None,
    ) -> None:
        self.engine, self.constrained, self.occurrences = engine, constrained, risk.occurrences
        found = risk.occurrences
        self.increasing = bool(found is not None and found.increasing) if among is None else among.increasing
        rows, risk, self.group_levels = in_groups(rows, risk)
        self.network: dict[str, Any] = {} if among is None else among.network
        self.sample: Any = None if among is None else among.sample
        levels, shared = risk.start() if among is None else (among.levels, EMPTY)
        active = active_rows(risk, levels, shared, rows.matrix.shape[0])
        self.delay = self._delay_margin(rows, risk)
        if not active.all():
            rows, risk = rows.take(active), risk.take(active)
        self.rows, self.risk, self.base, self.shared, self.done = rows, risk, levels.copy(), shared, 0
        self.shared_curvature = risk.shared_curvature()
        self.scale = float(rows.matrix.shape[0] if among is None else among.rows)
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
            try:
                dataset = self._dataset(params) if dataset is None else dataset
                sequence.append(lightgbm.Booster(params, dataset) if _has_splits(dataset) else None)
            except lightgbm.basic.LightGBMError as error:
                raise ValueError(f"LightGBM refuses these rows or parameters: {error}") from None
        return sequence

    def _dataset(self, params: dict[str, Any]) -> Any:
        import lightgbm

        alone = {name: value for name, value in params.items() if name not in self.network}
        if self.sample is None:
            return lightgbm.Dataset(self.rows.matrix, params=params, **self._columns()).construct()
        # Bins of a sample of all rows, which every worker has: those of its own rows would miss what only others have.
        bins = lightgbm.Dataset(self.sample, params=alone, **self._columns()).construct()
        return lightgbm.Dataset(self.rows.matrix, params=alone, reference=bins, **self._columns()).construct()

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
            "min_data_in_leaf": min(engine.min_data_in_leaf, max(int(self.scale) // 20, 1)),
            "feature_fraction": engine.feature_fraction,
            "bagging_fraction": engine.bagging_fraction,
            "bagging_freq": int(engine.bagging_fraction < 1),
            "seed": engine.seed,
            "num_threads": engine.threads or threads_for(self.rows.matrix),
            "deterministic": True,
            "force_col_wise": True,
            "verbose": -1,
        }
        if self.risk.steep:
            params["max_delta_step"] = _LARGEST_STEP / engine.learning_rate
        constraints = self._constraints() if first and self.constrained else None
        if constraints is not None:
            params["monotone_constraints"] = constraints
        return {**params, **(_SHALLOW if shallow else {}), **(engine.params or {}), **self.network}

    def _constraints(self) -> list[int] | None:
        width, monotone = self.rows.matrix.shape[1], self.engine.monotone
        age = self.increasing
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
        found.levels_ = self.group_levels
        found.n_columns_ = self.rows.matrix.shape[1] - self.rows.has_group
        return found


def active_rows(risk: Risk, levels: Floats, shared: Floats, rows: int) -> Bools:
    """Rows that cost something; the others would only fill leaves."""
    margins = np.tile(levels, (rows, 1))
    gradient = risk.value_and_gradient(margins, shared)[1]
    return ((gradient != 0) | (risk.bounding_curvature(margins, shared) != 0)).any(axis=1)


def _has_splits(dataset: Any) -> bool:
    """Whether any column has more than one value."""
    return any(dataset.feature_num_bin(k) > 1 for k in range(dataset.num_feature()))


def _signs(monotone: Mapping[str, int] | Sequence[int], encoder: CodeEncoder | None, width: int) -> list[int]:
    """The constraint of each column; by name where the columns have names."""
    names = [f"column {k}" for k in range(width)] if encoder is None else list(encoder.codes_)
    if isinstance(monotone, Mapping):
        if encoder is None:
            raise ValueError(
                "monotone names columns, and those of X have no names: give a list with one sign for each."
            )
        strange = [name for name in monotone if name not in names]
        if strange:
            raise ValueError(f"monotone names {strange[0]!r}, which is no column of X. They are {', '.join(names)}.")
        signs = [monotone.get(name, 0) for name in names]
    else:
        signs = list(monotone)
        if len(signs) != width:
            raise ValueError(f"monotone has {len(signs)} entries, but there are {width} columns.")
    for name, sign in zip(names, signs, strict=True):
        if isinstance(sign, bool | str) or sign not in (-1, 0, 1):
            raise ValueError(f"monotone has {sign!r} for {name}, and a sign is 1, -1 or 0.")
        if sign and encoder is not None and encoder.codes_[name] is not None:
            raise ValueError(f"monotone has a sign for {name!r}, which holds categories: they have no order.")
    return [int(sign) for sign in signs]
