"""Epochs of training a network: mini-batches of a risk, a moving average of weights, and a file to go on from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import joblib
import numpy as np
from sklearn.base import clone

from belated.models.minibatches import MiniBatches
from belated.notices import logger
from belated.risks.base import Risk
from belated.tables.writing import write_beside
from belated.typing import Floats, Ints

if TYPE_CHECKING:
    from belated.models.network import NetworkModel

_AT_ONCE = 65_536  # rows whose margins are computed together
_SMALL = 200_000  # rows of a batch times units
_MEMORY = 0.99  # of the moving average of weights, which is what predicts
_SHARED_RATE = 0.01  # of a few parameters that all rows share, which a small rate would take too long to move


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


def build(engine: NetworkModel, n_margins: int, simple: Sequence[int], groups: int) -> Any:
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


class Training:
    """Epochs of training, one after another."""

    def __init__(
        self,
        engine: NetworkModel,
        rows: NetworkRows,
        risk: Risk,
        checkpoint: str | Path | None = None,
        groups: int = 0,
        epochs: int = 0,
    ) -> None:
        import torch

        self.engine, self.asked, self.done, self.curve = engine, epochs, 0, list[float]()
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
        self.net = build(engine, risk.n_margins, self.simple, groups).to(rows.device)
        self.level = torch.as_tensor(self.base, device=rows.device)
        self.shared = torch.as_tensor(shared, device=rows.device)
        batch = engine.batch_size or int(np.clip(len(rows) // 100, 256, 16_384))
        self.batches = MiniBatches.of(torch.as_tensor(risk.kinds(), device=rows.device), min(batch, len(rows)))
        self.averaged = torch.optim.swa_utils.AveragedModel(self.net, multi_avg_fn=_move_average, use_buffers=False)
        fading = engine.decay / max(engine.learning_rate * self.batches.count, 1e-300)
        weights = {"params": list(self.net.parameters()), "weight_decay": fading}
        of_all = {"params": [self.shared], "weight_decay": 0.0, "lr": _SHARED_RATE}
        fused = rows.device != "cpu"
        self.optimizer = torch.optim.AdamW([weights, of_all], lr=engine.learning_rate, fused=fused)
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
            "asked": self.asked,
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
        if state["done"] > self.asked:
            logger.info(
                "the checkpoint is %d epochs on, and %d were asked: training begins anew", state["done"], self.asked
            )
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


def margins_of(net: Any, rows: NetworkRows, base: Floats, bf16: bool) -> Floats:
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
        try:
            found: dict[str, Any] = torch.load(self.path, weights_only=True)
            key, finished = found["key"], found["done"] >= found["asked"]
        except Exception as error:
            raise ValueError(
                f"checkpoint={str(self.path)!r} is no checkpoint, or a damaged one ({type(error).__name__}). Name another file, or remove it."
            ) from None
        if key == self.key:
            return found
        if finished:
            logger.info("%s is of a training that was finished: training begins anew", self.path)
            return None
        raise ValueError(
            f"checkpoint={str(self.path)!r} is of an interrupted training with other rows or parameters. Name another file, or remove it."
        )

    def save(self, state: dict[str, Any]) -> None:
        import torch

        def write(file: IO[bytes]) -> None:
            torch.save({"key": self.key, **state}, file)

        write_beside(self.path, write)
