"""Matrix products of float32 on a CPU by oneDNN, where that beats what torch takes for them.

torch gives products of float32 to MKL, which leaves AVX-512 idle on AMD's processors: 75 to 95
GFLOP/s on one core of an EPYC, where oneDNN, which comes with torch as well, reaches 150 to 210 at
the same precision. The operator is the one that torch's compiler calls for linear layers; it is no
documented part of torch, so it is used only where it exists and has multiplied rightly once, and
`torch.backends.mkldnn.set_flags(False)` turns it off. On other processors nothing changes: there
MKL is as good, or nothing was measured.

Whether it is used depends on the processor and on shapes, never on a clock, so one machine gives
the same bits every time. Shapes: M rows, K summed, N outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

LEAST = 1 << 21
"""Multiplications of a product, below which the call costs more than is gained."""
SLICE = 4_000
"""Rows of a large result that are made at once, so that temporaries stay small."""


def served(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    """Whether oneDNN is to multiply x (…, K) and a weight (N, K)."""
    return (
        x.dtype is torch.float32
        and x.device.type == "cpu"
        and weight.dim() == 2
        and x.numel() * weight.shape[0] >= LEAST
        and all(_plain(one) for one in (x, weight, bias) if one is not None)
        and faster()
        and torch.backends.mkldnn.enabled
        and not torch.is_autocast_enabled("cpu")
        and torch._C._functorch.peek_interpreter_stack() is None
    )


def _plain(one: Tensor) -> bool:
    return (
        type(one) in (Tensor, nn.Parameter)
        and one.dtype is torch.float32
        and one.layout is torch.strided
        and one.device.type == "cpu"
    )


@cache
def faster() -> bool:
    """Whether this processor is one on which oneDNN was measured to be faster, and it is right."""
    if torch.backends.cpu.get_cpu_capability() != "AVX512" or "AuthenticAMD" not in _processor():
        return False
    x_MK = torch.linspace(-1, 1, 24 * 40).sin().view(24, 40)
    w_NK = torch.linspace(-9, 9, 56 * 40).cos().view(56, 40)
    exact_MN = x_MK.double() @ w_NK.double().t()
    try:
        with torch.no_grad():
            found = [times(x_MK, w_NK), times(x_MK, w_NK.t().contiguous().t())]
    except (AttributeError, RuntimeError):  # another torch has no such operator, or another form
        return False
    return all(bool(((one - exact_MN).abs() < 1e-5).all()) for one in found)


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open() as lines:
            return lines.read(4096)
    except OSError:  # not Linux
        return ""


def times(x: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None) -> Tensor:
    """x·Wᵀ + bias (…, N), without a gradient; for what is `served`."""
    if not (weight_NK.is_contiguous() or weight_NK.t().is_contiguous()):
        weight_NK = weight_NK.contiguous()  # with gaps between its rows it takes a slow way
    made: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight_NK, bias_N, "none", [], "")
    return made


def times_into(
    out_MN: Tensor, x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None
) -> None:
    """Writes x·Wᵀ + bias."""
    for at in range(0, len(weight_NK), SLICE):
        part = slice(at, at + SLICE)
        out_MN[:, part] = times(x_MK, weight_NK[part], None if bias_N is None else bias_N[part])


def outer(d_MN: Tensor, x_MK: Tensor) -> Tensor:
    """dᵀ·x (N, K). The smaller factor is the one that is copied to be transposed."""
    if d_MN.shape[1] > x_MK.shape[1]:
        return times(x_MK.t(), d_MN.t()).t()
    return times(d_MN.t(), x_MK.t())


def add_outer(total_NK: Tensor, d_MN: Tensor, x_MK: Tensor, first: bool) -> None:
    """Adds dᵀ·x to a sum; the first summand overwrites it."""
    turned_KM = x_MK.t()
    for at in range(0, len(total_NK), SLICE):
        part = slice(at, at + SLICE)
        found = times(d_MN[:, part].t(), turned_KM)
        if first:
            total_NK[part] = found
        else:
            total_NK[part].add_(found)


class _Linear(Function):
    """A linear layer, whose three products are oneDNN's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_NK: Tensor, bias_N: Tensor | None) -> Tensor:
        x_MK = x.reshape(-1, x.shape[-1])
        ctx.save_for_backward(x_MK, weight_NK)
        return times(x_MK, weight_NK, bias_N).view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, d: Tensor) -> Any:
        x_MK, weight_NK = ctx.saved_tensors
        d_MN = d.reshape(-1, d.shape[-1])
        for_x, for_weight, for_bias = ctx.needs_input_grad
        return (
            times(d_MN, weight_NK.t()).view(*d.shape[:-1], -1) if for_x else None,
            outer(d_MN, x_MK) if for_weight else None,
            d_MN.sum(0) if for_bias else None,
        )


class FastLinears(TorchFunctionMode):
    """Inside it linear layers are multiplied by oneDNN, with gradients, where it is faster.

    Not for layers whose activations are computed again in the backward pass, which is outside.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func is functional.linear and not kwargs and served(*args):
            x, weight, bias = (*args, None)[:3]
            return _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return func(*args, **(kwargs or {}))
