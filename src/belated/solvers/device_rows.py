"""Rows on a GPU, through torch: the same risks and the same L-BFGS run on them.

Rows stay on the device between fits. Products with the matrix are float32 where the tolerance allows and float64 beyond;
weights, gradients and sums of costs are always float64. Torch is imported when a device is asked for and not before.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from belated.arrays import namespace
from belated.extras import how_to_install
from belated.solvers.rows import PlainRows, SparseRows
from belated.typing import Bools, Ints

Tensor = Any

_SINGLE = 1e-6  # float32 is precise enough for tolerances from here up


def resolve_device(device: str) -> str:
    """``"cpu"``, ``"cuda"``, or for ``"auto"`` the second where there is one."""
    if device not in ("cpu", "cuda", "auto"):
        raise ValueError(f"device={device!r} is not known; choose 'cpu', 'cuda' or 'auto'.")
    if device == "cpu":
        return "cpu"
    try:
        import torch
    except ImportError:
        if device == "auto":
            return "cpu"
        raise ValueError(f"device='cuda' needs PyTorch, which is not installed: {how_to_install('torch')}.") from None
    if torch.cuda.is_available():
        return "cuda"
    if device == "auto":
        return "cpu"
    raise ValueError(
        "device='cuda': PyTorch finds no CUDA device here. Use device='cpu', or 'auto' to use one where there is."
    )


@dataclass(frozen=True)
class DeviceRows:
    """Rows on a device, beside the rows they came from. Its products take tensors, or NumPy arrays and then run there.

    ``exact`` asks for products in float64.
    """

    host: PlainRows | SparseRows
    matrix: Tensor  # of float32 unless exact, like the next; exact too where columns are far from zero
    transposed: Tensor
    squared: Tensor  # the transposed matrix with squared values, always of float32
    device: str
    exact: bool = False
    groups: Tensor = None  # 0/1 columns (n, count) beside the matrix, None where there are none
    wide: ClassVar[bool] = True

    @classmethod
    def of(cls, host: PlainRows | SparseRows, device: str) -> DeviceRows:
        import torch

        if isinstance(host, PlainRows) and not hasattr(host.matrix, "indptr"):
            dense = torch.as_tensor(host.matrix, dtype=torch.float32, device=device)
            return cls(host, dense, dense.T, dense.T**2, device)
        csr = host.to_csr()
        with _quiet_torch():
            # Values far from zero would be rounded before their centre is taken off.
            kind = "f4" if host.center is None else "f8"
            parts = [np.asarray(csr.indptr, "i8"), np.asarray(csr.indices, "i4"), np.asarray(csr.data, kind)]
            ends, entries, numbers = (torch.as_tensor(part, device=device) for part in parts)
            matrix = _csr(ends, entries, numbers, csr.shape)
            flipped = _csr(ends, entries.long(), numbers, csr.shape).to_sparse_csc()
            ends, entries, numbers = flipped.ccol_indices(), flipped.row_indices(), flipped.values()
            shape = (csr.shape[1], csr.shape[0])
            transposed = _csr(ends, entries, numbers, shape)
            squared = transposed if (csr.data == 1.0).all() else _csr(ends, entries, numbers**2, shape)
        return cls(host, matrix, transposed, squared, device, exact=host.center is not None)

    def for_tolerance(self, tol: float) -> DeviceRows:
        """The same rows, with products as exact as a tolerance needs."""
        return self if self.exact or tol >= _SINGLE else self._doubled

    @cached_property
    def _doubled(self) -> DeviceRows:
        with _quiet_torch():
            groups = None if self.groups is None else self.groups.double()
            matrix, transposed = self.matrix.double(), self.transposed.double()
            return replace(self, matrix=matrix, transposed=transposed, groups=groups, exact=True)

    def put(self, array: Any) -> Tensor:
        """A NumPy array on this device."""
        import torch

        return torch.as_tensor(np.ascontiguousarray(array), device=self.device)

    @property
    def n_groups(self) -> int:
        return 0 if self.groups is None else self.groups.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        n, columns = self.host.shape
        return n, columns + self.n_groups

    @property
    def size(self) -> int:
        return self.host.size

    @property
    def row_sum(self) -> int | None:
        return None if self.host.row_sum is None else self.host.row_sum + (self.groups is not None)

    @property
    def columns(self) -> Any:
        return self.host.columns

    @property
    def n_columns(self) -> int:
        return self.host.n_columns

    @property
    def by_number(self) -> Any:
        return self.host.by_number  # type: ignore[union-attr]

    @property
    def least_spread(self) -> tuple[int, float]:
        return self.host.least_spread

    @property
    def largest_entry(self) -> tuple[int, float]:
        return self.host.largest_entry

    def margins(self, coef: Any, intercept: Any) -> Any:
        """Margins (n, m) under weights (m, columns) and intercepts (m,)."""
        if isinstance(coef, np.ndarray):
            return self.margins(self.put(coef), self.put(intercept)).cpu().numpy()
        if self.groups is not None:
            return self._alone.margins(coef[:, : -self.n_groups], intercept) + self._of_groups(
                coef[:, -self.n_groups :]
            )
        if self._to_subtract is not None:
            intercept = intercept - coef @ self._to_subtract
        return _by_column(self.matrix, coef).T + intercept

    def transpose_dot(self, rows: Any, squared: bool = False) -> Any:
        """X' rows of shape (m, columns), from rows (n, m); with the squares of X's values where asked."""
        if isinstance(rows, np.ndarray):
            return self.transpose_dot(self.put(rows), squared).cpu().numpy()
        if self.groups is not None:
            in_groups = (self.groups.T @ rows.to(self.groups.dtype)).double().T
            return namespace(in_groups).concat([self._alone.transpose_dot(rows, squared), in_groups], axis=1)
        sums = _by_column(self.squared if squared else self.transposed, rows.T)
        if self._to_subtract is None:
            return sums
        total = rows.sum(0)[:, None]
        if not squared:
            return sums - total * self._to_subtract
        return (total * self.put(self.host._spread)).where(self._to_subtract != 0, sums)

    @cached_property
    def _to_subtract(self) -> Any:
        """What products take off columns far from zero: nothing where the matrix is dense, and centred itself."""
        host = self.host
        center = host.center if isinstance(host, SparseRows) else host._to_subtract
        return None if center is None else self.put(center)

    @property
    def center(self) -> Any:
        center = self.host.center
        return center if center is None or not self.n_groups else np.append(center, np.zeros(self.n_groups))

    @cached_property
    def _alone(self) -> DeviceRows:
        """Without the columns of groups."""
        return replace(self, groups=None)

    def _of_groups(self, levels: Tensor) -> Tensor:
        return (self.groups @ levels.T.to(self.groups.dtype)).double()

    def take(self, rows: Bools | Ints) -> DeviceRows:
        return DeviceRows.of(self.host.take(rows), self.device)

    def with_groups(self, groups: Ints, count: int) -> DeviceRows:
        """The same rows with one 0/1 column more for each group; the matrix stays as it is."""
        import torch

        places = torch.as_tensor(np.ascontiguousarray(groups), device=self.device)
        columns = places[:, None] == torch.arange(count, device=self.device)[None, :]
        return replace(self, groups=columns.to(self.matrix.dtype))


def _by_column(matrix: Tensor, vectors: Tensor) -> Tensor:
    """The products of a matrix with vectors (m, d), of shape (m, n); one at a time is far faster than all in one call."""
    import torch

    return torch.stack([matrix @ vector.to(matrix.dtype) for vector in vectors]).double()


def _csr(ends: Tensor, entries: Tensor, numbers: Tensor, shape: tuple[int, int]) -> Tensor:
    """With indices of 32 bits on a GPU, where they are half of the traffic."""
    import torch

    kind = torch.int32 if entries.is_cuda and len(entries) < 2**31 else torch.int64
    return torch.sparse_csr_tensor(ends.to(kind), entries.to(kind), numbers, size=shape, check_invariants=False)


@contextmanager
def _quiet_torch() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
        yield
