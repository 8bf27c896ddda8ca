"""The same risks and the same L-BFGS on a GPU, through torch.

Rows stay on the device between fits. Products with the matrix are float32 where the tolerance allows and float64 beyond;
weights, gradients and sums of costs are always float64. Torch is imported when a device is asked for and not before.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from belated.risks.base import Risk, SeparateRisks, WeightedRisk
from belated.risks.delay_laws import DelayLaw, Exponential, Piecewise, Weibull
from belated.risks.delays import CureRisk, HazardRisk, LawRisk
from belated.risks.losses import LogisticLoss
from belated.solvers.long_lbfgs import CAUTION, FARTHEST, REFRESH
from belated.solvers.preconditioned_lbfgs import Solution
from belated.solvers.rows import PlainRows, SparseRows
from belated.typing import Bools, Floats, Ints

Tensor = Any

_MEMORY = 10
_SINGLE = 1e-6  # a tolerance that float32 can serve


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
        raise ValueError("device='cuda' needs PyTorch, which is not installed: pip install belated[torch].") from None
    if torch.cuda.is_available():
        return "cuda"
    if device == "auto":
        return "cpu"
    raise ValueError(
        "device='cuda': PyTorch finds no CUDA device here. Use device='cpu', or 'auto' to use one where there is."
    )


@dataclass(frozen=True)
class DeviceRows:
    """Rows on a device, beside the rows they came from."""

    host: PlainRows | SparseRows
    matrix: Tensor  # of float32, like the next two
    transposed: Tensor
    squared: Tensor  # of the transposed
    device: str

    @classmethod
    def of(cls, host: PlainRows | SparseRows, device: str) -> DeviceRows:
        import torch

        if isinstance(host, PlainRows) and not hasattr(host.matrix, "indptr"):
            dense = torch.as_tensor(host.matrix, dtype=torch.float32, device=device)
            return cls(host, dense, dense.T, dense.T**2, device)
        csr = host.to_csr()
        with _quiet_torch():
            parts = [np.asarray(csr.indptr, "i8"), np.asarray(csr.indices, "i4"), np.asarray(csr.data, "f4")]
            ends, entries, numbers = (torch.as_tensor(part, device=device) for part in parts)
            matrix = _csr(ends, entries, numbers, csr.shape)
            flipped = _csr(ends, entries.long(), numbers, csr.shape).to_sparse_csc()
            ends, entries, numbers = flipped.ccol_indices(), flipped.row_indices(), flipped.values()
            shape = (csr.shape[1], csr.shape[0])
            transposed = _csr(ends, entries, numbers, shape)
            squared = transposed if (csr.data == 1.0).all() else _csr(ends, entries, numbers**2, shape)
        return cls(host, matrix, transposed, squared, device)

    @cached_property
    def doubles(self) -> tuple[Tensor, Tensor]:
        """The matrix and its transpose in float64."""
        with _quiet_torch():
            return self.matrix.double(), self.transposed.double()

    @property
    def shape(self) -> tuple[int, int]:
        return self.host.shape

    @property
    def size(self) -> int:
        return self.host.size

    @property
    def columns(self) -> Any:
        return self.host.columns

    @property
    def n_columns(self) -> int:
        return self.host.n_columns

    def margins(self, coef: Floats, intercept: Floats) -> Floats:
        return self.host.margins(coef, intercept)

    def pull(self, rows: Floats, squared: bool = False) -> Floats:
        return self.host.pull(rows, squared)

    def take(self, rows: Bools) -> DeviceRows:
        return DeviceRows.of(self.host.take(rows), self.device)

    def with_groups(self, groups: Ints, count: int) -> DeviceRows:
        return DeviceRows.of(self.host.with_groups(groups, count), self.device)


def _csr(ends: Tensor, entries: Tensor, numbers: Tensor, shape: tuple[int, int]) -> Tensor:
    """With indices of 32 bits on a GPU, where they are half of the traffic."""
    import torch

    kind = torch.int32 if entries.is_cuda and len(entries) < 2**31 else torch.int64
    return torch.sparse_csr_tensor(ends.to(kind), entries.to(kind), numbers, size=shape, check_invariants=False)


@contextmanager
def _quiet_torch() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)  # that torch's CSR is young
        yield


def cost_of(risk: Risk, device: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The value of a risk as a function of tensors: margins (n, m) and shared parameters (s,)."""
    import torch
    from torch.nn.functional import logsigmoid, softplus

    def put(array: Any) -> Tensor:
        return torch.as_tensor(np.ascontiguousarray(array), device=device)

    if isinstance(risk, SeparateRisks):
        parts = [cost_of(part, device) for part in risk.risks]
        return lambda margins, shared: sum(part(margins[:, [k]], shared) for k, part in enumerate(parts))
    if isinstance(risk, WeightedRisk) and risk.loss.linear_odd and risk.loss.smooth:
        a, both = put(risk.a), put(risk.a + risk.b)
        if isinstance(risk.loss, LogisticLoss):
            return lambda margins, shared: (both * softplus(margins[:, 0]) - a * margins[:, 0]).sum()
        return lambda margins, shared: (both * (margins[:, 0] + 1.0) ** 2 / 4.0 - a * margins[:, 0]).sum()
    if isinstance(risk, LawRisk):
        y, weight = put(risk.y), put(risk.weight)
        start = _law(risk.law, risk.at, put)
        end = None if risk.end is None else _law(risk.law, risk.end, put)
        smoothing = risk.law.smoothing if isinstance(risk.law, Piecewise) else 0.0

        def law_cost(margins: Tensor, shared: Tensor) -> Tensor:
            h = margins[:, -1]
            factor = torch.exp(h.clamp(max=200.0))
            log_hazard, cumulated = start(shared)
            total = cumulated * factor
            if end is None:
                event = total - h - log_hazard
            else:
                inside = ((end(shared)[1] - cumulated) * factor).clamp(1e-300, 300.0)
                event = total - torch.log(-torch.expm1(-inside))
            if isinstance(risk, HazardRisk):
                cost = torch.where(y, event, total)
            else:
                g = margins[:, 0]
                cost = torch.where(y, event - logsigmoid(g), softplus(g) - softplus(g - total))
            return (weight * cost).sum() + smoothing * (shared.diff() ** 2).sum()

        assert isinstance(risk, CureRisk | HazardRisk)
        return law_cost
    raise ValueError(f"{type(risk).__name__} with this loss has no version for a device; use device='cpu'.")


def _law(law: DelayLaw, at: Any, put: Callable[[Any], Tensor]) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """log lambda0 and Lambda0 at prepared times, as functions of the shared parameters."""
    import torch

    if isinstance(law, Exponential):
        times = put(at)
        return lambda shared: (torch.zeros_like(times), times)
    if isinstance(law, Weibull):
        logs = put(at)
        return lambda shared: (
            shared[0] + (shared[0].exp() - 1.0) * logs,
            torch.exp((shared[0].exp() * logs).clamp(max=200.0)),
        )
    assert isinstance(law, Piecewise)
    # Products with these (n, intervals) matrices: reading parameters by index would make the gradient a slow scatter.
    interval, inside = put(at[0])[:, None], put(at[1])[:, None]
    intervals = torch.arange(law.n_shared, device=interval.device)
    widths = put(np.append(np.diff(law.knots, prepend=0.0), 0.0))
    place = (intervals == interval).double()
    exposure = (intervals < interval) * widths + place * inside
    return lambda shared: (place @ shared, exposure @ shared.clamp(max=200.0).exp())


def minimise_on_device(
    rows: DeviceRows, risk: Risk, l2: float, has_intercept: Bools, start: Floats, tol: float, max_iter: int
) -> Solution:
    """L-BFGS in coordinates scaled by a diagonal; stops as :func:`belated.solvers.long_lbfgs.minimise_wide` does."""
    import torch

    cost, m, d = cost_of(risk, rows.device), risk.n_margins, rows.shape[1]
    free = torch.as_tensor(np.flatnonzero(has_intercept), device=rows.device)
    k = len(free)

    def unpack(theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        intercept = theta.new_zeros(m)
        intercept[free] = theta[m * d : m * d + k]
        return theta[: m * d].view(m, d), intercept, theta[m * d + k :]

    matrix, transposed = (rows.matrix, rows.transposed) if tol >= _SINGLE else rows.doubles

    def margins_at(coef: Tensor, intercept: Tensor) -> Tensor:
        return ((matrix @ coef.T.to(matrix.dtype)).double() + intercept).requires_grad_()

    def evaluate(theta: Tensor) -> tuple[Tensor, Tensor]:
        coef, intercept, shared = unpack(theta)
        margins, shared = margins_at(coef, intercept), shared.clone().requires_grad_()
        value = cost(margins, shared)
        d_margins, d_shared = torch.autograd.grad(value, [margins, shared], allow_unused=True, materialize_grads=True)
        d_coef = (transposed @ d_margins.to(transposed.dtype)).double().T + 2.0 * l2 * coef
        total = value.detach() + l2 * (coef**2).sum()
        return total, torch.cat([d_coef.reshape(-1), d_margins.sum(0)[free], d_shared])

    theta = torch.as_tensor(start, dtype=torch.float64, device=rows.device)

    def units(theta: Tensor) -> Tensor:
        curvature = _curvature(cost, margins_at(*unpack(theta)[:2]), unpack(theta)[2]).abs()
        level = curvature.sum(0)
        diagonal = torch.cat(
            [
                ((rows.squared @ curvature.float()).double().T + 2.0 * l2).reshape(-1),
                level[free],
                level[-1:].expand(risk.n_shared) / max(risk.n_shared, 1),
            ]
        )
        return diagonal.clamp(min=1e-12 * float(diagonal.max())).rsqrt()

    unit = units(theta)
    u, promised = theta / unit, np.inf
    value, gradient = evaluate(theta)
    gradient, floor = gradient * unit, max(abs(float(value)) / 10.0, 1e-300)
    memory: list[tuple[Tensor, Tensor, Tensor]] = []
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        if risk.stiff and n_iter % REFRESH == 0:
            fresh = units(u * unit)
            u, gradient, unit, memory = u * unit / fresh, gradient * fresh / unit, fresh, []
        direction = -_two_loops(gradient, memory)
        slope = float(direction @ gradient)
        if not slope < 0:
            memory, direction = [], -gradient
            slope = -float(gradient @ gradient)
        promised = -slope / 2.0 / (risk.scale or max(abs(float(value)), floor))
        if promised <= CAUTION * tol and (len(memory) >= 3 or promised == 0.0):
            break
        step, accepted = (1.0 if memory else 0.1), False
        if risk.stiff:
            step = min(step, FARTHEST / max(float((direction * unit).abs().max()), 1e-300))
        for _ in range(30):
            trial = u + step * direction
            trial_value, trial_gradient = evaluate(trial * unit)
            if float(trial_value) <= float(value) + 1e-4 * step * slope:
                accepted = True
                break
            step *= 0.4
        if not accepted:  # rounding leaves nothing to gain
            break
        trial_gradient = trial_gradient * unit
        s, y = trial - u, trial_gradient - gradient
        product = s @ y
        if float(product) > 1e-10 * float(s.norm() * y.norm()):
            memory = [*memory[-_MEMORY + 1 :], (s, y, product)]
        u, value, gradient = trial, trial_value, trial_gradient
    return Solution((u * unit).cpu().numpy(), n_iter, promised, float(value))


def _curvature(cost: Callable[[Tensor, Tensor], Tensor], margins: Tensor, shared: Tensor) -> Tensor:
    """Second derivative of the cost in each single margin: a row's cost depends on its own margins alone."""
    import torch

    (slopes,) = torch.autograd.grad(cost(margins, shared), [margins], create_graph=True)
    columns = []
    for k in range(margins.shape[1]):
        (second,) = torch.autograd.grad(slopes[:, k].sum(), [margins], retain_graph=True)
        columns.append(second[:, k])
    return torch.stack(columns, dim=1)


def _two_loops(gradient: Tensor, memory: list[tuple[Tensor, Tensor, Tensor]]) -> Tensor:
    q, alphas = gradient.clone(), []
    for s, y, product in reversed(memory):
        alphas.append(s @ q / product)
        q -= alphas[-1] * y
    if memory:
        _, y, product = memory[-1]
        q *= product / (y @ y)
    for (s, y, product), alpha in zip(memory, reversed(alphas), strict=True):
        q += (alpha - y @ q / product) * s
    return q
