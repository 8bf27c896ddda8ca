"""The network that NetworkModel trains unless it is given another: embeddings, spread-out numbers, a residual perceptron."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from belated.features.network_inputs import NetworkInputs


class TableNetwork(nn.Module):
    """Margins (n, m) of numbers (n, d) and places of categories (n, k).

    - A number is spread over its ranges between quantiles: each range is 0 below, 1 above and rises within it
      (piecewise-linear encoding, Gorishniy et al. 2022). A column with fewer ranges than others never reaches the last ones. A missing one is 0 everywhere, and 1 in a column of its own.
    - Categories are embeddings. Each also adds a weight of its own to every margin, as in a linear model, and so does each range.
    - Both go through residual blocks. A margin in ``simple`` gets the linear part alone.
    """

    first_range: Tensor
    ranges: Tensor
    deep: Tensor

    def __init__(
        self,
        inputs: NetworkInputs,
        n_margins: int,
        simple: Sequence[int],
        width: int,
        depth: int,
        embedding: int,
        dropout: float,
        groups: int,
    ) -> None:
        super().__init__()
        self.n_margins, self.embedding = n_margins, embedding
        own = [len(edges) - 1 for edges in inputs.edges]
        ranges = max(own, default=0)
        self.register_buffer("ranges", torch.tensor(own, dtype=torch.float32))
        self.register_buffer("first_range", torch.arange(ranges, dtype=torch.float32))
        columns = len(inputs.offsets) + (groups > 0)
        self.table = nn.Embedding(max(inputs.size + groups, 1), embedding + n_margins)
        spread = len(inputs.edges) * (ranges + 1)
        self.linear = nn.Linear(spread, n_margins) if spread else None
        self.first = nn.Linear(spread + columns * embedding, width)
        self.blocks = nn.ModuleList(Block(width, dropout) for _ in range(depth))
        self.last = nn.Linear(width, n_margins)
        self.register_buffer("deep", torch.tensor([float(k not in simple) for k in range(n_margins)]))
        self.level = nn.Parameter(torch.zeros(n_margins))
        nn.init.normal_(self.table.weight, std=0.01)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)
        if self.linear is not None:
            nn.init.zeros_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)

    def forward(self, numbers: Tensor, places: Tensor) -> Tensor:
        parts, wide = [], self.level.expand(len(numbers), -1)
        if self.linear is not None:
            missing = torch.isnan(numbers)
            passed = torch.where(missing, 0.0, numbers) * self.ranges
            ranges = (passed[:, :, None] - self.first_range).clamp(0.0, 1.0)
            spread = torch.cat([ranges.flatten(1), missing.to(ranges.dtype)], dim=1)
            parts.append(spread)
            wide = wide + self.linear(spread)
        if places.shape[1]:
            found = self.table(places)
            parts.append(found[:, :, : self.embedding].flatten(1))
            wide = wide + found[:, :, self.embedding :].sum(dim=1)
        hidden = self.first(torch.cat(parts, dim=1))
        for block in self.blocks:
            hidden = block(hidden)
        return wide + self.deep * self.last(torch.relu(hidden))


class Block(nn.Module):
    """x + W2 relu(W1 norm(x))."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.inside = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = x + self.inside(x)
        return found
