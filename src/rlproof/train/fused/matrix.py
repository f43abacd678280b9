"""The three matrix products of a chunk: its logits, and the gradients of both their factors.

Logits z = (h·Wᵀ + bias)/τ, so with D = ∂L/∂z

    ∂L/∂h = D·W/τ      ∂L/∂W = Dᵀ·h/τ      ∂L/∂bias = Σ_rows D/τ.

D arrives as rows and one factor for each row; the factors go to the small products and operands,
never over a matrix of the vocabulary's width. The gradient of W is added up in place.

Softmax and sums are float32 (float64 for float64 inputs). Half-precision inputs are multiplied in
their own type where the device is fast at it; on a CPU they are cast up, the matrix once.

Shapes: C rows of a chunk, K of them with a gradient, H hidden, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rlproof.train import products
from rlproof.train.fused.chunk import probabilities, underflown


@dataclass(slots=True)
class Matrix:
    """The output matrix, the buffer of a chunk's logits, and the gradients so far."""

    weight: Tensor
    """(V, H), in the type that is multiplied."""
    bias: Tensor | None
    """(V,), in the type of the sums."""
    temperature: float
    buffer: Tensor
    """Logits, then what is made of them (C, V), in the type of the sums."""
    weight_grad: Tensor | None = None
    bias_grad: Tensor | None = None
    started: bool = False
    """Whether the gradient of the weight holds anything."""

    @classmethod
    def of(
        cls, weight_VH: Tensor, bias_V: Tensor | None, temperature: float, rows: int, narrow: bool
    ) -> Matrix:
        """A matrix with a buffer for some rows; `narrow` multiplies in half precision."""
        wide = accumulated(weight_VH.dtype)
        return cls(
            weight_VH if narrow else weight_VH.to(wide),
            None if bias_V is None else bias_V.to(wide),
            temperature,
            torch.empty(rows, len(weight_VH), dtype=wide, device=weight_VH.device),
        )

    def wants(self, weight: bool, bias: bool) -> None:
        """Makes room for the gradients that are needed."""
        wide, device = self.buffer.dtype, self.weight.device
        if weight:
            self.weight_grad = torch.empty(self.weight.shape, dtype=wide, device=device)
        if bias:
            self.bias_grad = torch.zeros(len(self.weight), dtype=wide, device=device)

    @property
    def _narrow(self) -> bool:
        return self.weight.dtype != self.buffer.dtype

    def probabilities(self, h_CH: Tensor) -> Tensor:
        """softmax((h·Wᵀ + bias)/τ) in the buffer, whose rows hold nothing else any more."""
        z_CV, scale = self.buffer[: len(h_CH)], 1 / self.temperature
        if self._narrow:
            z_CV.copy_(torch.mm(h_CH, self.weight.t()))
            if self.bias is not None:
                z_CV.add_(self.bias)
            z_CV.mul_(scale)
        elif products.served(h_CH, self.weight, self.bias):
            bias_V = None if self.bias is None else self.bias * scale
            products.times_into(z_CV, h_CH * scale, self.weight, bias_V)
        elif self.bias is None:
            torch.addmm(z_CV, h_CH, self.weight.t(), beta=0, alpha=scale, out=z_CV)
        else:
            torch.addmm(self.bias, h_CH, self.weight.t(), beta=scale, alpha=scale, out=z_CV)
        return probabilities(z_CV)

    def log_probs(self, p_CV: Tensor, h_CH: Tensor, tokens_C: Tensor) -> Tensor:
        """log p of the tokens in nats (C,), exact where p itself is too small for its type.

        There log p_v = log p_m + (z_v − z_m) with the most probable token m; the gap of the two
        logits is computed again from their rows of the matrix.
        """
        chosen_C = p_CV.gather(1, tokens_C[:, None])[:, 0]
        logps_C = chosen_C.log()
        small = underflown(chosen_C)
        if len(small):
            top = p_CV[small].argmax(-1)
            gap = self._logits(h_CH[small], tokens_C[small]) - self._logits(h_CH[small], top)
            logps_C[small] = p_CV[small, top].log() + gap
        return logps_C

    def _logits(self, h_KH: Tensor, tokens_K: Tensor) -> Tensor:
        """The logit of one token for each row (K,)."""
        wide = self.buffer.dtype
        z_K = (h_KH.to(wide) * self.weight[tokens_K].to(wide)).sum(-1)
        if self.bias is not None:
            z_K = z_K + self.bias[tokens_K]
        return z_K / self.temperature

    def hidden_gradient(self, d_KV: Tensor, factor_K: Tensor) -> Tensor:
        """∂L/∂h (K, H) of rows D = factor·d."""
        wide = self.buffer.dtype
        if products.served(d_KV, self.weight.t()):
            product_KH = products.times(d_KV, self.weight.t())
        else:
            product_KH = torch.mm(d_KV.to(self.weight.dtype), self.weight).to(wide)
        return product_KH.mul_((factor_K / self.temperature)[:, None])

    def add_gradients(self, d_KV: Tensor, h_KH: Tensor, factor_K: Tensor) -> None:
        """Adds what rows D = factor·d contribute to the gradients of weight and bias."""
        factor_K = factor_K / self.temperature
        if self.bias_grad is not None:
            self.bias_grad.addmv_(d_KV.t(), factor_K)
        total_VH = self.weight_grad
        if total_VH is None:
            return
        wide, first = self.buffer.dtype, not self.started
        self.started = True
        if not self._narrow:
            scaled_KH = h_KH * factor_K[:, None]
            if products.served(scaled_KH, self.weight):
                products.add_outer(total_VH, d_KV, scaled_KH, first)
            elif first:
                torch.mm(d_KV.t(), scaled_KH, out=total_VH)
            else:
                total_VH.addmm_(d_KV.t(), scaled_KH)
            return
        largest = factor_K.abs().max()  # float16 has no room for 1/(number of tokens)
        scaled_KH = (h_KH.to(wide) * (factor_K / largest)[:, None]).to(h_KH.dtype)
        part_VH = torch.mm(d_KV.to(h_KH.dtype).t(), scaled_KH)
        if first:
            total_VH.zero_()
        total_VH.addcmul_(part_VH.to(wide), largest)

    def gradients(self) -> tuple[Tensor | None, Tensor | None]:
        """Of weight and bias, in the type of the sums."""
        if self.weight_grad is not None and not self.started:
            self.weight_grad.zero_()  # no row had a gradient
        return self.weight_grad, self.bias_grad


def accumulated(dtype: torch.dtype) -> torch.dtype:
    """The type of sums over the vocabulary: float32, and float64 for float64."""
    return torch.float64 if dtype == torch.float64 else torch.float32
