"""OnlineNetwork: a NetworkModel that learns from records, one step of AdamW for each batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from belated.features.field_matrix import FieldMatrix
from belated.features.network_inputs import NetworkInputs
from belated.models.network import NetworkModel
from belated.models.network_training import NetworkRows, build, margins_of
from belated.solvers.device_rows import resolve_device
from belated.streaming.methods.base import Costs
from belated.typing import Floats, Ints


class OnlineNetwork:
    """A network with one margin for each head. Numbers have the ranges of the rows it was opened with."""

    passes = 5  # over a snapshot that it starts from

    def __init__(self, engine: NetworkModel, heads: int) -> None:
        import torch

        engine._check()
        self.engine, self.device = engine, resolve_device(engine.device)
        self.base = np.zeros(heads)
        self.net = build(engine, heads, (), 0).to(self.device)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=engine.learning_rate, weight_decay=0.0)
        self.steps = 0

    @classmethod
    def opened(cls, engine: NetworkModel, X: Any, heads: int) -> OnlineNetwork:
        """Fresh, for rows like X. Every column of hashed fields has a place: what is not in the first rows may be frequent later."""
        if isinstance(X, FieldMatrix):
            places = np.arange(min(engine.embedding_rows, X.n_columns), dtype=np.int32)
            fields = np.zeros(X.n_fields, dtype=np.int64)
            engine.inputs_ = NetworkInputs(offsets=fields, size=len(places), lookup=places)
        else:
            engine.inputs_ = NetworkInputs.learn(X, np.ones(len(X)), engine.embedding_rows, engine.bins, 1)
        return cls(engine, heads)

    def _rows(self, X: Any) -> NetworkRows:
        return NetworkRows.of(*self.engine.inputs_.transform(X), self.device)

    def learn(self, X: Any, head: Ints, costs: Costs) -> None:
        """One step on the mean cost of some records."""
        import torch

        if not len(X):
            return
        rows = self._rows(X)
        at = torch.as_tensor(head, device=self.device)[:, None]
        a, b = (torch.as_tensor(part, device=self.device, dtype=torch.float32) for part in (costs.a, costs.b))
        c = 1.0 if costs.c is None else torch.as_tensor(costs.c, device=self.device, dtype=torch.float32)
        self.net.train()
        with torch.random.fork_rng(devices=[] if self.device == "cpu" else [torch.cuda.current_device()]):
            torch.manual_seed(self.engine.seed * 100_003 + self.steps)
            margin = self.net(rows.numbers, rows.places).gather(1, at)[:, 0]
            f = torch.sigmoid(margin)
            if costs.c is None:
                negative = torch.nn.functional.softplus(margin)
            else:
                negative = -torch.log((1.0 - c * f).clamp_min(1e-12))
            loss = (a * torch.nn.functional.softplus(-margin) + b * negative).mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
        self.steps += 1

    def margins(self, X: Any) -> Floats:
        """Margins of shape (n, heads)."""
        return margins_of(self.net, self._rows(X), self.base, False)

    # What a checkpoint keeps.

    def state(self) -> dict[str, Any]:
        found = {f"net/{name}": value.cpu().numpy() for name, value in self.net.state_dict().items()}
        for k, one in self.optimizer.state_dict()["state"].items():
            found |= {f"adam/{k}/{name}": np.asarray(value.cpu()) for name, value in one.items()}
        inputs = self.engine.inputs_
        found |= {f"edges/{k}": edges for k, edges in enumerate(inputs.edges)}
        if inputs.lookup is not None:
            found["lookup"] = inputs.lookup
        sizes = {"steps": self.steps, "heads": len(self.base), "size": inputs.size}
        return {**found, "offsets": inputs.offsets, **{name: np.array(value) for name, value in sizes.items()}}

    @classmethod
    def restored(cls, engine: NetworkModel, state: dict[str, Any]) -> OnlineNetwork:
        """As it was when its state was taken."""
        import torch

        edges = [state[f"edges/{k}"] for k in range(sum(name.startswith("edges/") for name in state))]
        engine.inputs_ = NetworkInputs(
            edges=edges, offsets=state["offsets"], size=int(state["size"]), lookup=state.get("lookup")
        )
        found = cls(engine, int(state["heads"]))
        nets = {name[4:]: torch.as_tensor(value) for name, value in state.items() if name.startswith("net/")}
        found.net.load_state_dict(nets)
        found.steps = int(state["steps"])
        kept: dict[int, dict[str, Any]] = {}
        for name, value in state.items():
            if name.startswith("adam/"):
                _, k, part = name.split("/")
                kept.setdefault(int(k), {})[part] = torch.as_tensor(value)
        groups = found.optimizer.state_dict()["param_groups"]
        found.optimizer.load_state_dict({"state": kept, "param_groups": groups})
        return found
