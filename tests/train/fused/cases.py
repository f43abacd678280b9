"""Inputs of the fused loss, and the same loss through autograd.

Padding holds NaN hidden states, NaN log-probs and the id −100; one row is empty and the mask has
holes. Log-probs of other policies are near those of the model, so that clips cut on both sides.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from rlproof.space.aggregation import Scope
from rlproof.train.fused import FusedBatch, fused_loss, plain_loss

B, T, H, V = 5, 7, 8, 37


@dataclass
class Case:
    hidden: torch.Tensor
    weight: torch.Tensor
    bias: torch.Tensor
    tokens: torch.Tensor
    batch: FusedBatch

    def to(self, dtype: torch.dtype) -> "Case":
        return replace(
            self,
            hidden=self.hidden.to(dtype),
            weight=self.weight.to(dtype),
            bias=self.bias.to(dtype),
        )


def case(seed=0, spread=0.3, scale=1.0, temperature=1.0, dtype=torch.float64, **changes) -> Case:
    """A batch in the middle of training; `changes` go to its `FusedBatch`."""
    torch.manual_seed(seed)
    hidden, weight = torch.randn(B, T, H, dtype=dtype), torch.randn(V, H, dtype=dtype) * scale
    bias, tokens = torch.randn(V, dtype=dtype), torch.randint(V, (B, T))
    mask = (torch.rand(B, T) < 0.7).double()
    mask[2] = 0
    mask[0] = 1
    new = torch.log_softmax((hidden @ weight.T + bias) / temperature, -1)
    new = new.gather(-1, tokens[..., None])[..., 0]

    def near() -> torch.Tensor:
        return new + spread * torch.randn(B, T, dtype=dtype)

    given: dict[str, Any] = {
        "mask": mask, "advantages": torch.randn(B, dtype=dtype), "old": near(), "ref": near(),
        "sampler": near(), "groups": [0, 0, 0, 1, 1], "scope": Scope(length=8.0),
        "kept": torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0]),
    }  # fmt: skip
    given["advantages"][4] = 0.0
    for name in ("old", "ref", "sampler"):
        given[name] = given[name].masked_fill(mask == 0, torch.nan)
    hidden[mask == 0] = torch.nan
    tokens[mask == 0] = -100
    return Case(hidden, weight, bias, tokens, FusedBatch(**given | changes))


def outcome(made: Case, objective, how="fused", **options) -> dict[str, torch.Tensor]:
    """The loss, its gradients, and what is returned beside it."""
    hidden, weight, bias = (
        one.clone().requires_grad_() for one in (made.hidden, made.weight, made.bias)
    )
    if how == "fused":
        options = {"chunk_rows": 5} | options
        result = fused_loss(
            hidden, weight, made.tokens, made.batch, objective, bias=bias, **options
        )
    else:

        def head(rows):
            return torch.nn.functional.linear(rows, weight, bias)

        result = plain_loss(head, hidden, made.tokens, made.batch, objective, **options)
    result.loss.backward()
    found = {
        "loss": result.loss.detach(), "hidden": hidden.grad, "weight": weight.grad,
        "bias": bias.grad, "logps": result.logps,
    }  # fmt: skip
    if result.entropy is not None:
        found["entropy"] = result.entropy
    return found | {f"metric {name}": value for name, value in result.metrics.items()}


def gap(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> float:
    """The largest ‖first − second‖/‖second‖ of all tensors; NaN counts as infinite."""
    assert first.keys() == second.keys()
    worst = 0.0
    for name, one in first.items():
        other = second[name].to(one.dtype)
        assert one.shape == other.shape, name
        if not one.numel():
            continue
        found = (one - other).norm().item() / max(other.norm().item(), 1e-30)
        worst = max(worst, found if found == found else torch.inf)
    return worst
