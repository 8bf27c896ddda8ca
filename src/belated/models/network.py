"""NetworkModel: margins from a neural network, trained by PyTorch on mini-batches of any risk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import joblib
import numpy as np
from sklearn.base import clone

from belated.extras import needs
from belated.features.network_inputs import NetworkInputs
from belated.models.base import Model, require_risk, require_setting
from belated.models.minibatches import MiniBatches
from belated.notices import logger, progress_bar
from belated.risks.base import Risk
from belated.solvers.device_rows import resolve_device
from belated.tables.writing import write_beside
from belated.typing import Bools, Floats, Ints

_AT_ONCE = 65_536  # rows whose margins are computed together
_AUXILIARY_EPOCHS = 5
_SMALL = 200_000  # rows of a batch times units
_MEMORY = 0.99  # of the moving average of weights, which is what predicts
_SHARED_RATE = 0.01  # of a few parameters that all rows share, which a small rate would take too long to move


class NetworkModel(Model):
    """Minimise a risk by a neural network (PyTorch, extra ``torch``), AdamW and mini-batches.

    By default the network is :class:`belated.models.network_module.TableNetwork`: embeddings of categories, numbers spread over
    ranges between quantiles, residual blocks. Batches are stratified, so that scarce rows (late ones, positives) are in each of
    them, and weighted, so that a batch's gradient is on average that of the whole risk.

    Parameters
    ----------
    epochs : int, optional
        How often all rows are seen. None: chosen in fit, by cross-validation over blocks of arrival time, on the method's own
        risk.
    learning_rate : float
        Of AdamW.
    decay : float
        Which share of the weights fades in an epoch: AdamW's weight decay times learning rate times batches.
    batch_size : int, optional
        By default a hundredth of the rows, between 256 and 16,384.
    width, depth, embedding, dropout : numbers
        Of the network: units in a layer, residual blocks, length of an embedding.
    embedding_rows : int
        The table of embeddings has at most so many; further categories share them.
    bins : int
        Ranges of a number.
    rare : int
        Categories that occur less often than this share an embedding.
    delay_model : {"linear", "full"}
        How much freedom the delay margin of DFM has: see :class:`belated.BoostingModel`.
    module : nn.Module, optional
        A network of your own: called with numbers (n, d) float32, NaN where missing, and places of categories (n, k), it returns
        margins (n, m), where m is 1 but for DFM and STC (2). It must fit the method; it is copied, not changed. A model with
        one is kept by pickle or joblib, not by ``save``.
    device : {"auto", "cpu", "cuda"}
    bf16 : bool
        On a GPU, compute the network in bfloat16; weights, and the risk itself, are never rounded.
    checkpoint : path, optional
        A file that keeps the state after each epoch. A fit that is interrupted and run again with the same rows and parameters
        goes on there and ends with the same result.
    seed : int
    progress : bool
        Whether to show a progress bar of epochs.

    Attributes
    ----------
    curve_ : list of float
        The mean risk of the batches of each epoch.
    shared_ : array of shape (s,)
    base_ : array of shape (m,)
        The constant to which the network adds.
    """

    setting = "epochs"
    grid = (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30)
    takes_simplest = False
    auxiliary_follows_setting = False
    minibatches = True
    takes_groups = True
    takes_kinks = True
    takes_missing = True

    def __init__(
        self,
        epochs: int | None = None,
        learning_rate: float = 1e-3,
        decay: float = 0.35,
        batch_size: int | None = None,
        width: int = 128,
        depth: int = 2,
        embedding: int = 8,
        dropout: float = 0.2,
        embedding_rows: int = 2**20,
        bins: int = 16,
        rare: int = 50,
        delay_model: str = "linear",
        module: Any = None,
        device: str = "auto",
        bf16: bool = True,
        checkpoint: str | Path | None = None,
        seed: int = 0,
        progress: bool = False,
    ) -> None:
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.decay = decay
        self.batch_size = batch_size
        self.width = width
        self.depth = depth
        self.embedding = embedding
        self.dropout = dropout
        self.embedding_rows = embedding_rows
        self.bins = bins
        self.rare = rare
        self.delay_model = delay_model
        self.module = module
        self.device = device
        self.bf16 = bf16
        self.checkpoint = checkpoint
        self.seed = seed
        self.progress = progress

    def encode(self, X: Any, weight: Floats) -> NetworkRows:
        with needs("torch"):
            import torch  # noqa: F401
        self._check()
        self.inputs_ = NetworkInputs.learn(X, weight, self.embedding_rows, self.bins, self.rare)
        return self.transform(X)

    def transform(self, X: Any) -> NetworkRows:
        if isinstance(X, NetworkRows):
            return X
        return NetworkRows.of(*self.inputs_.transform(X), resolve_device(self.device))

    def fit(self, encoded: NetworkRows, risk: Risk) -> NetworkModel:
        require_risk(self, risk)
        epochs = int(require_setting(self))
        training = _Training(self, encoded, risk, self.checkpoint)
        with progress_bar(f"{type(self).__name__}: epochs", epochs, self.progress) as advance:
            for _ in range(training.done):
                advance()
            while training.done < epochs:
                training.one_epoch()
                advance()
        self.__dict__.update(training.model(epochs).__dict__)
        return self

    def path(self, encoded: NetworkRows, risk: Risk, values: Sequence[float]) -> Iterator[NetworkModel]:
        """Copies of this model as it is after the first epochs of one and the same training, from few to many."""
        training = _Training(self, encoded, risk, None)
        for value in self.simplest_first(values):
            while training.done < value:
                training.one_epoch()
            yield training.model(int(value))

    def for_trials(self) -> NetworkModel:
        copy: NetworkModel = clone(self)
        return copy.set_params(checkpoint=None, progress=False)

    def margins(self, X: Any) -> Floats:
        rows, net = self.transform(X), self._network()
        if not self.groups_:
            return _margins_of(net, rows, self.base_, self.bf16)
        size = self.inputs_.size
        columns = [
            _margins_of(net, rows.with_groups(np.full(len(rows), k), size), self.base_, self.bf16)
            for k in range(self.groups_)
        ]
        return np.concatenate(columns, axis=1)

    def auxiliary_margin(self, encoded: NetworkRows, risk: Risk, rows: Bools, groups: Ints, new_groups: Ints) -> Floats:
        size, count = self.inputs_.size, int(max(groups.max(), new_groups.max())) + 1
        training = _Training(self, encoded.take(np.flatnonzero(rows)).with_groups(groups, size), risk, None, count)
        for _ in range(_AUXILIARY_EPOCHS):
            training.one_epoch()
        return _margins_of(training.averaged.module, encoded.with_groups(new_groups, size), training.base, self.bf16)[
            :, 0
        ]

    @property
    def encoders(self) -> list[Any]:
        return [] if self.inputs_.encoder is None else [self.inputs_.encoder]

    def _network(self) -> Any:
        """The network with its weights, built where a file or another process has left only those."""
        if not hasattr(self, "_net_"):
            import torch

            self._net_ = _build(self, len(self.base_), self.simple_, self.groups_)
            self._net_.load_state_dict({name: torch.as_tensor(value) for name, value in self.weights_.items()})
            self._net_.to(resolve_device(self.device)).eval()
        return self._net_

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_net_" in state:
            state["weights_"] = {name: value.cpu().numpy() for name, value in state.pop("_net_").state_dict().items()}
        return state

    def check_fitted(self) -> None:
        try:
            self._network()
        except (RuntimeError, TypeError, IndexError) as error:
            raise ValueError(f"its weights do not fit its network ({error})") from None

    def _check(self) -> None:
        if self.delay_model not in ("linear", "full"):
            raise ValueError(f"delay_model={self.delay_model!r} is not known; choose 'linear' or 'full'.")
        whole = ("epochs", "batch_size", "width", "depth", "embedding", "embedding_rows", "bins", "rare")
        for name in whole:
            value = getattr(self, name)
            least = 0 if name in ("epochs", "depth") else 1
            if value is not None and not (isinstance(value, int) and value >= least):
                raise ValueError(f"{name}={value!r} must be a whole number of at least {least}.")


@dataclass(frozen=True)
class NetworkRows:
    """Rows on a device: numbers (n, d) and places of categories (n, k)."""

    numbers: Any
    places: Any
    device: str

    @classmethod
    def of(cls, numbers: Any, places: Any, device: str) -> NetworkRows:
        import torch

        return cls(torch.as_tensor(numbers, device=device), torch.as_tensor(places, device=device), device)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: Any) -> NetworkRows:
        import torch

        index = torch.as_tensor(rows, device=self.device)
        return replace(self, numbers=self.numbers[index], places=self.places[index])

    def with_groups(self, groups: Ints, size: int) -> NetworkRows:
        """The same with the group as one more category, with places after all others."""
        import torch

        column = torch.as_tensor(groups + size, device=self.device).to(self.places.dtype)
        return replace(self, places=torch.cat([self.places, column[:, None]], dim=1))


def _build(engine: NetworkModel, n_margins: int, simple: Sequence[int], groups: int) -> Any:
    import torch

    from belated.models.network_module import TableNetwork

    if engine.module is not None:
        return deepcopy(engine.module)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(engine.seed)
        return TableNetwork(
            engine.inputs_,
            n_margins,
            simple,
            engine.width,
            engine.depth,
            engine.embedding,
            engine.dropout,
            groups,
        )


class _Training:
    """Epochs of training, one after another."""

    def __init__(
        self, engine: NetworkModel, rows: NetworkRows, risk: Risk, checkpoint: str | Path | None, groups: int = 0
    ) -> None:
        import torch

        self.engine, self.done, self.curve = engine, 0, list[float]()
        if risk.occurrences is not None:
            found, groups = risk.occurrences, risk.occurrences.count
            rows, risk = rows.take(found.row).with_groups(found.group, engine.inputs_.size), found.risk
        self.groups = groups
        self.simple = tuple(risk.simple_margins) if engine.delay_model == "linear" else ()
        self.base, shared = risk.start()
        active = risk.kinds() >= 0
        if not active.all():
            rows, risk = rows.take(np.flatnonzero(active)), risk.take(active)
        self.rows = rows
        self.risk = risk.moved(lambda array: torch.as_tensor(array, device=rows.device))
        self.net = _build(engine, risk.n_margins, self.simple, groups).to(rows.device)
        self.level = torch.as_tensor(self.base, device=rows.device)
        self.shared = torch.as_tensor(shared, device=rows.device)
        batch = engine.batch_size or int(np.clip(len(rows) // 100, 256, 16_384))
        self.batches = MiniBatches.of(torch.as_tensor(risk.kinds(), device=rows.device), min(batch, len(rows)))
        self.averaged = torch.optim.swa_utils.AveragedModel(self.net, multi_avg_fn=_move_average, use_buffers=False)
        fading = engine.decay / max(engine.learning_rate * self.batches.count, 1e-300)
        groups_of = [{"params": list(self.net.parameters()), "weight_decay": fading}]
        groups_of.append({"params": [self.shared], "weight_decay": 0.0, "lr": _SHARED_RATE})
        fused = rows.device != "cpu"
        self.optimizer = torch.optim.AdamW(groups_of, lr=engine.learning_rate, fused=fused)
        self.checkpoint = None if checkpoint is None else _Checkpoint.of(checkpoint, engine, rows, risk)
        if self.checkpoint is not None:
            self._resume(self.checkpoint.load())

    def one_epoch(self) -> None:
        import torch

        self.net.train()
        on_gpu = self.rows.device != "cpu"
        devices = [torch.cuda.current_device()] if on_gpu else []
        seed = self.engine.seed * 100_003 + self.done  # of this epoch, so that one can go on from any
        total = 0.0
        with torch.random.fork_rng(devices=devices), _few_threads(sum(self.batches.drawn) * self.engine.width):
            torch.manual_seed(seed)
            dice = torch.Generator(device=self.rows.device).manual_seed(seed)
            for index, counts in self.batches.epoch(dice):
                with torch.autocast("cuda", torch.bfloat16, enabled=on_gpu and self.engine.bf16):
                    margins = self.net(self.rows.numbers[index], self.rows.places[index])
                if margins.shape[1:] != self.level.shape:
                    raise ValueError(
                        f"the network returned margins of shape {tuple(margins.shape)}, and the method needs (n, {len(self.level)})."
                    )
                now = margins.detach().double() + self.level
                value, slope, d_shared = self.risk.take(index, counts).value_and_gradient(now, self.shared)
                self.optimizer.zero_grad(set_to_none=True)
                margins.backward(slope.to(margins.dtype))
                self.shared.grad = d_shared if len(self.shared) else None
                self.optimizer.step()
                self.averaged.update_parameters(self.net)
                total += value
        self.done += 1
        self.curve.append(total / self.batches.count)
        logger.debug("epoch %d: risk of batches %.6f", self.done, self.curve[-1])
        if self.checkpoint is not None:
            self.checkpoint.save(self._state())

    def _state(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "curve": self.curve,
            "net": self.net.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "shared": self.shared,
        }

    def _resume(self, state: dict[str, Any] | None) -> None:
        if state is None:
            return
        self.done, self.curve = state["done"], state["curve"]
        self.net.load_state_dict(state["net"])
        self.averaged.load_state_dict(state["averaged"])
        self.shared.copy_(state["shared"])
        self.optimizer.load_state_dict(state["optimizer"])
        logger.info("going on after epoch %d", self.done)

    def model(self, epochs: int) -> NetworkModel:
        """The model after the epochs so far."""
        found: NetworkModel = clone(self.engine)
        found.epochs = epochs
        found.inputs_ = self.engine.inputs_
        found._net_ = deepcopy(self.averaged.module).eval()
        found.base_, found.shared_ = self.base, self.shared.cpu().numpy().copy()
        found.simple_, found.groups_, found.curve_ = self.simple, self.groups, list(self.curve)
        return found


@contextmanager
def _few_threads(work: int) -> Iterator[None]:
    """One thread for small batches: several would wait for each other more than they work."""
    import torch

    before = torch.get_num_threads()
    if work >= _SMALL:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _move_average(averages: Any, now: Any, steps: Any) -> None:
    """A moving average of weights whose memory is short at first."""
    import torch

    done = float(steps)
    torch._foreach_lerp_(averages, now, 1.0 - min(_MEMORY, (1.0 + done) / (10.0 + done)))


def _margins_of(net: Any, rows: NetworkRows, base: Floats, bf16: bool) -> Floats:
    import torch

    net.eval()
    parts = []
    with torch.inference_mode(), torch.autocast("cuda", torch.bfloat16, enabled=rows.device != "cpu" and bf16):
        for at in range(0, len(rows), _AT_ONCE):
            some = slice(at, at + _AT_ONCE)
            parts.append(net(rows.numbers[some], rows.places[some]).double().cpu().numpy())
    return np.concatenate(parts) + base if parts else np.zeros((0, len(base)))


@dataclass(frozen=True)
class _Checkpoint:
    """A file with the state of a training, and what it is the training of."""

    path: Path
    key: str

    @classmethod
    def of(cls, path: str | Path, engine: NetworkModel, rows: NetworkRows, risk: Risk) -> _Checkpoint:
        asked = {
            name: value
            for name, value in engine.get_params().items()
            if name not in ("epochs", "checkpoint", "progress")
        }
        if engine.module is not None:
            asked["module"] = {name: value.cpu().numpy() for name, value in engine.module.state_dict().items()}
        data = (rows.numbers.cpu().numpy(), rows.places.cpu().numpy())
        return cls(Path(path), joblib.hash((asked, data, risk)))

    def load(self) -> dict[str, Any] | None:
        import torch

        if not self.path.exists():
            return None
        found = torch.load(self.path, weights_only=True)
        if found["key"] != self.key:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is of a training with other rows or parameters. Name another file, or remove it."
            )
        state: dict[str, Any] = found
        return state

    def save(self, state: dict[str, Any]) -> None:
        import torch

        def write(file: IO[bytes]) -> None:
            torch.save({"key": self.key, **state}, file)

        write_beside(self.path, write)
