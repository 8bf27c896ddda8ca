"""Trees of rows on a cluster: the rounds of the local engine run in every worker, and LightGBM adds up their histograms by its own network.

What a row adds to a gradient depends on that row, so each worker knows its own. Risks of which that is not true, since all rows share parameters or a sum that
may not be negative, are refused.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from belated.cluster.base import Cluster, Part
from belated.cluster.sharded import Sharded, add_up, by_rows, here
from belated.features.cluster_table import ClusterTable, learn_codes
from belated.features.codes import CodeEncoder
from belated.models.boosting_rounds import Among, BoostingRows, Rounds, active_rows, import_lightgbm, in_groups
from belated.notices import logger
from belated.risks.base import EMPTY, Risk
from belated.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from belated.models.boosting import BoostingModel

_TRIES = 3
_SAMPLE = 100_000  # rows by which numbers are cut into bins
_MINUTES = 2  # that a worker waits for another one


@dataclass(frozen=True)
class ClusterBoostingRows:
    """``rows`` stands for the BoostingRows of each partition."""

    rows: Sharded

    @property
    def cluster(self) -> Cluster:
        return self.rows.cluster

    def take(self, rows: Any) -> ClusterBoostingRows:
        return ClusterBoostingRows(by_rows(_take, self.rows, rows))

    def with_groups(self, groups: Ints) -> ClusterBoostingRows:
        return ClusterBoostingRows(by_rows(_with_groups, self.rows, groups))


def encode_for_trees(model: BoostingModel, table: ClusterTable, weight: Any) -> ClusterBoostingRows:
    """Learn the order of categories, and make a matrix of each partition, once."""
    model.encoder_ = learn_codes(CodeEncoder(), table, weight)
    return ClusterBoostingRows(by_rows(_rows, table.rows, model.encoder_).kept())


def path_on_cluster(
    model: BoostingModel, encoded: ClusterBoostingRows, risk: Risk, values: Sequence[float], first: bool = True
) -> Iterator[BoostingModel]:
    """Copies of a model with the first of the same trees, from few to many."""
    risk_of_rows = risk if risk.occurrences is None else risk.occurrences.risk
    if risk_of_rows.n_shared or risk_of_rows.non_negative or risk_of_rows.n_margins > 1:
        raise ValueError(
            "on a cluster BoostingModel fits risks that are sums over rows alone. This method has parameters that all rows share (DFM, Hazard), or a sum "
            "that may not be negative (NnDF): use LinearModel, or bring some rows here, log.sample(0.1).collect()."
        )
    texts, levels, width = _trained(model, encoded, risk, int(max(values)), first)
    for value in model.simplest_first(values):
        yield _model(model, risk, texts, levels, width, int(value))


def margins_for_groups(model: BoostingModel, encoded: ClusterBoostingRows, groups: Ints) -> Sharded:
    """The first margin of rows as if they were in these groups."""
    return by_rows(partial(_raw_in_groups, model), encoded.rows, groups).kept()


def _trained(
    model: BoostingModel, encoded: ClusterBoostingRows, risk: Risk, rounds: int, first: bool
) -> tuple[str | None, Floats, int]:
    """The trees as text, the constant to which they add, and how many columns there are."""
    occurs = risk.occurrences
    levels = (risk if occurs is None else occurs.risk.without_offset() if occurs.increasing else occurs.risk).start()[0]
    count, width = add_up(_active_on, encoded.rows, risk, levels)
    step = max(-(-count // _SAMPLE), 1)
    sample = _stacked(add_up(_sample_on, encoded.rows, risk, levels, step))
    problem = encoded.cluster.keep(_problem_on, (encoded.rows, risk))
    for tried in range(_TRIES):
        found = encoded.cluster.together(_address, (problem, levels, _home(encoded.cluster)))
        machines = {number: address for number, address in found if number is not None}
        try:
            logger.info("LightGBM on %d workers, %d rows, %d rounds", len(machines), count, rounds)
            told = (problem, model, first, levels, count, sample, rounds, machines)
            texts = encoded.cluster.together(_train, told)
            return next(text for text in texts if text is not None), levels, width[0]
        except Exception as error:  # a worker that is lost takes the others' connections with it
            if isinstance(error, ValueError) or tried + 1 == _TRIES:
                raise
            logger.warning("training on the cluster was interrupted (%s); once more", error)
    raise AssertionError


def _model(engine: BoostingModel, risk: Risk, text: Any, levels: Floats, width: int, rounds: int) -> BoostingModel:
    from sklearn.base import clone

    found: BoostingModel = clone(engine)
    found.rounds, found.encoder_, found.delay_ = rounds, engine.encoder_, None
    found.boosters_ = [import_lightgbm().Booster(model_str=text)] if text else [None]
    found.base_, found.shared_ = levels.copy(), EMPTY
    occurs = risk.occurrences
    found.groups_ = 0 if occurs is None else occurs.count
    found.levels_ = np.zeros(0) if occurs is None else occurs.levels if occurs.increasing else np.zeros(occurs.count)
    found.n_columns_ = width - bool(found.groups_)
    return found


def _home(cluster: Cluster) -> str:
    """An address that every worker can reach, by which it learns its own."""
    client = getattr(cluster, "client", None)
    if client is not None:
        if str(client.scheduler.address).startswith("inproc"):
            raise ValueError(
                "BoostingModel on a cluster needs workers that are processes, since LightGBM has one network in each: Client(processes=True)."
            )
        return str(client.scheduler.address).split("//")[-1].rsplit(":", 1)[0]
    context = getattr(cluster, "context", None)
    return "127.0.0.1" if context is None else str(context.getConf().get("spark.driver.host", "127.0.0.1"))


# On a worker.


def _rows(X: Any, encoder: CodeEncoder) -> BoostingRows:
    matrix = encoder.transform(X) if len(X) else np.zeros((0, len(encoder.codes_)))
    return BoostingRows(matrix, None)


def _take(rows: BoostingRows, keep: Any) -> BoostingRows:
    return rows.take(keep)


def _with_groups(rows: BoostingRows, groups: Ints) -> BoostingRows:
    return rows.with_groups(groups)


def _raw_in_groups(model: BoostingModel, rows: BoostingRows, groups: Ints) -> Floats:
    matrix = rows.with_groups(groups).matrix
    return model._raw(0, matrix) if len(matrix) else np.zeros(0)


def _problem_on(part: Part, value: Any) -> tuple[BoostingRows, Risk, Floats, bool]:
    """Rows as they occur, their risk, the levels of groups, and whether these may only rise."""
    rows, risk = here(value, part)
    increasing = risk.occurrences is not None and risk.occurrences.increasing
    return *in_groups(rows, risk), increasing


def _active_on(rows: BoostingRows, risk: Risk, levels: Floats) -> tuple[int, list[int]]:
    rows, risk, _ = in_groups(rows, risk)
    n, width = rows.matrix.shape
    return int(active_rows(risk, levels, EMPTY, n).sum()) if n else 0, [width]


def _sample_on(rows: BoostingRows, risk: Risk, levels: Floats, step: int) -> list[Any]:
    """Every so many of the rows that cost something."""
    rows, risk, _ = in_groups(rows, risk)
    n = rows.matrix.shape[0]
    return [rows.matrix[active_rows(risk, levels, EMPTY, n)][::step]] if n else []


def _stacked(matrices: list[Any]) -> Any:
    return sparse.vstack(matrices, format="csr") if sparse.issparse(matrices[0]) else np.concatenate(matrices)


def _address(parts: list[Part], value: Any) -> tuple[int | None, tuple[str, int]]:
    """A name of this worker, None where no row of it costs anything, and where others find it."""
    problem, levels, home = value
    mine = (part.kept[problem.number][:2] for part in parts)
    counts = [active_rows(risk, levels, EMPTY, n).any() for rows, risk in mine if (n := rows.matrix.shape[0])]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((home, 9))  # sends nothing
        address = probe.getsockname()[0]
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    return _name(parts) if any(counts) else None, (address, port)


def _name(parts: list[Part]) -> int:
    return min((part.index for part in parts), default=-1)


def _train(parts: list[Part], value: Any) -> str | None:
    """The rounds, with other workers at the same time; all of them get the same trees, and the first gives them."""
    problem, engine, first, levels, count, sample, rounds, machines = value
    name = _name(parts)
    if name not in machines:
        return None
    network: dict[str, Any] = {"num_threads": 1}
    if len(machines) > 1:
        network |= {
            "machines": ",".join(f"{host}:{port}" for host, port in machines.values()),
            "num_machines": len(machines),
            "local_listen_port": machines[name][1],
            "time_out": _MINUTES,
            "tree_learner": "data",
            "pre_partition": True,
        }
    found = [part.kept[problem.number] for part in parts]
    found = [one for one in found if one[0].matrix.shape[0]]
    matrices = [one[0].matrix for one in found]
    rows = BoostingRows(_stacked(matrices), None, None, found[0][0].has_group)
    risk = _Joined([one[1] for one in found], [part.shape[0] for part in matrices])
    try:
        learning = Rounds(engine, rows, risk, first, Among(levels, count, network, sample, increasing=found[0][3]))
        for _ in range(rounds):
            learning.one_round()
        return learning.boosters[0].model_to_string() if name == min(machines) else None
    finally:
        if len(machines) > 1:  # without a booster too: its data may already have begun to listen
            import_lightgbm().basic._LIB.LGBM_NetworkFree()


class _Joined(Risk):
    """Risks of rows of several partitions, one after the other."""

    def __init__(self, risks: list[Risk], sizes: list[int]) -> None:
        self.risks, self.ends = risks, np.cumsum(sizes)[:-1]
        self.stiff = risks[0].stiff

    def _each(self, margins: Floats) -> Iterator[tuple[Risk, Floats]]:
        return zip(self.risks, np.split(margins, self.ends), strict=True)

    def value_and_gradient(self, margins: Any, shared: Any = EMPTY) -> tuple[float, Any, Any]:
        found = [risk.value_and_gradient(some, shared) for risk, some in self._each(margins)]
        return sum(one[0] for one in found), np.concatenate([one[1] for one in found]), EMPTY

    def bounding_curvature(self, margins: Any, shared: Any = EMPTY) -> Any:
        return np.concatenate([risk.bounding_curvature(some, shared) for risk, some in self._each(margins)])

    def take(self, rows: Bools, factor: float = 1.0) -> Risk:
        masks = np.split(rows, self.ends)
        risks = [risk.take(mask, factor) for risk, mask in zip(self.risks, masks, strict=True)]
        return _Joined(risks, [int(mask.sum()) for mask in masks])
