"""Mini-batches whose expected gradient is that of the whole risk, though scarce rows are drawn more often than others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_LEAST = 0.05  # of a batch: the share of each kind of rows


@dataclass(frozen=True)
class MiniBatches:
    """Rows by kind (``strata``, index tensors), dealt to ``count`` batches.

    Each batch has as many rows of a kind as their share, but at least a twentieth; a row then counts by the number of rows of its
    kind over the number drawn. Within an epoch a kind is dealt like cards, and shuffled again when it is used up.
    """

    strata: list[Any]
    count: int
    drawn: list[int]  # of each kind, in a batch

    @classmethod
    def of(cls, kinds: Any, batch: int) -> MiniBatches:
        """From the kind of each row, a tensor of whole numbers (n,)."""
        n = len(kinds)
        count = max(round(n / batch), 1)
        strata = [(kinds == kind).nonzero()[:, 0] for kind in kinds.unique().tolist()]
        drawn = [max(-(-len(rows) // count), min(round(_LEAST * batch), len(rows))) for rows in strata]
        return cls(strata, count, drawn)

    def epoch(self, generator: Any) -> Iterator[tuple[Any, Any]]:
        """The rows of each batch, and by how much each counts."""
        import torch

        decks = []
        for rows, drawn in zip(self.strata, self.drawn, strict=True):
            needed = drawn * self.count
            shuffles = [
                rows[torch.randperm(len(rows), generator=generator, device=rows.device)]
                for _ in range(-(-needed // len(rows)))
            ]
            decks.append(torch.cat(shuffles)[:needed].reshape(self.count, drawn))
        counts = torch.cat(
            [
                torch.full((drawn,), len(rows) / drawn, device=rows.device)
                for rows, drawn in zip(self.strata, self.drawn, strict=True)
            ]
        )
        for k in range(self.count):
            yield torch.cat([deck[k] for deck in decks]), counts
