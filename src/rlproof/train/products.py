"""Matrix products of float32 on a CPU by oneDNN, where that beats what torch takes for them.

torch gives products of float32 to MKL, which leaves AVX-512 idle on AMD's processors: 75 to 95
GFLOP/s on one core of an EPYC, where oneDNN, which comes with torch as well, reaches 150 to 210 at
the same precision. The operator is the one that torch's compiler calls for linear layers; it is no
documented part of torch, so it is used only where it exists and has multiplied rightly once, and
`torch.backends.mkldnn.enabled = False` turns it off. On other processors nothing changes: none was
measured.

oneDNN compiles code for every shape that it meets, half a megabyte of it. So it gets as many rows
as the four leading bits of their number say (960 of 992), and MKL the rest: few shapes are ever
met. Whether it is used depends on the processor and on shapes, never on a clock, so one machine
gives the same bits every time.

Shapes: M rows, K summed, N outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.overrides import TorchFunctionMode

LEAST = 1 << 20
"""Multiplications of a product, below which the call costs more than is gained."""
FEWEST = 64
"""Rows that oneDNN is called for."""
SLICE = 1_000
"""Outputs that are made at once, so that temporaries stay small."""


def served(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    """Whether oneDNN is to multiply x (…, K) and a weight (N, K)."""
    return (
        x.dtype is torch.float32
        and x.numel() * weight.shape[0] >= LEAST
        and x.numel() >= FEWEST * weight.shape[-1]
        and weight.dim() == 2
        and able(x, weight, bias)
    )


def able(*tensors: Tensor | None) -> bool:
    """Whether oneDNN can take these, and is faster, sizes apart."""
    return (
        all(_plain(one) for one in tensors if one is not None)
        and faster()
        and bool(torch.backends.mkldnn.enabled)
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
            found = [call(x_MK, w_NK), call(x_MK, w_NK.t().contiguous().t())]
    except (AttributeError, RuntimeError):  # another torch has no such operator, or another form
        return False
    return all(bool(((one - exact_MN).abs() < 1e-5).all()) for one in found)


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open() as lines:
            return lines.read(4096)
    except OSError:  # not Linux
        return ""


def call(x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None) -> Tensor:
    """x·Wᵀ + bias by oneDNN alone, without a gradient."""
    if not (weight_NK.is_contiguous() or weight_NK.t().is_contiguous()):
        weight_NK = weight_NK.contiguous()  # with gaps between its rows it takes a slow way
    made: Tensor = torch.ops.mkldnn._linear_pointwise(x_MK, weight_NK, bias_N, "none", [], "")
    return made


def times(x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None) -> Tensor:
    """x·Wᵀ + bias (M, N), without a gradient; for what is `served`."""
    out_MN = x_MK.new_empty(len(x_MK), len(weight_NK))
    times_into(out_MN, x_MK, weight_NK, bias_N)
    return out_MN


def times_into(
    out_MN: Tensor, x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None
) -> None:
    """Writes x·Wᵀ + bias."""
    for at in range(0, len(weight_NK), SLICE):
        part = slice(at, at + SLICE)
        bias = None if bias_N is None else bias_N[part]
        for rows, quick in _blocks(len(x_MK)):
            multiply = call if quick else functional.linear
            out_MN[rows, part] = multiply(x_MK[rows], weight_NK[part], bias)


def add_outer(total_NK: Tensor, d_MN: Tensor, x_MK: Tensor, first: bool) -> None:
    """Adds dᵀ·x to a sum; the first summand overwrites it."""
    for at in range(0, len(total_NK), SLICE):
        part = slice(at, at + SLICE)
        total, fresh = total_NK[part], first
        for rows, quick in _blocks(len(x_MK)):
            d_NM, x = d_MN[rows, part].t(), x_MK[rows]
            if fresh:
                total.copy_(call(d_NM, x.t()) if quick else d_NM @ x)
            elif quick:
                total.add_(call(d_NM, x.t()))
            else:
                total.addmm_(d_NM, x)
            fresh = False


def _outer(d_MN: Tensor, x_MK: Tensor) -> Tensor:
    """dᵀ·x (N, K). The narrower factor is the one that is copied to be transposed."""
    turned = d_MN.shape[1] > x_MK.shape[1]
    first, second = (x_MK, d_MN) if turned else (d_MN, x_MK)
    found = first.new_empty(first.shape[1], second.shape[1])
    add_outer(found, first, second, True)
    return found.t() if turned else found


def _blocks(count: int) -> Iterator[tuple[slice, bool]]:
    """One or two pieces of so many rows, and whether oneDNN takes them."""
    zeros = max(count.bit_length() - 4, 0)
    whole = count >> zeros << zeros if count >= FEWEST else 0
    if whole:
        yield slice(0, whole), True
    if whole < count:
        yield slice(whole, count), False


class _Linear(Function):
    """A linear layer, whose three products are oneDNN's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_NK: Tensor, bias_N: Tensor | None) -> Tensor:
        x_MK = x.reshape(-1, x.shape[-1])
        ctx.save_for_backward(x_MK, weight_NK)
        return times(x_MK, weight_NK, bias_N).view(*x.shape[:-1], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d: Tensor) -> Any:
        x_MK, weight_NK = ctx.saved_tensors
        d_MN = d.reshape(-1, d.shape[-1])
        for_x, for_weight, for_bias = ctx.needs_input_grad
        return (
            times(d_MN, weight_NK.t()).view(*d.shape[:-1], -1) if for_x else None,
            _outer(d_MN, x_MK) if for_weight else None,
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
