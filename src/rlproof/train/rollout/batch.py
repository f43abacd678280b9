"""What was sampled, as tensors; every engine gives this.

Shapes: B rows, S prompt slots (padded on the left), T completion slots (padded on the right).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from rlproof.errors import RolloutError


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """Prompts with their completions. Token ids are never decoded and encoded again."""

    prompts: Tensor
    """Ids (B, S) int64, padded on the left."""
    prompt_mask: Tensor
    """1 on tokens of the prompt (B, S) int64."""
    tokens: Tensor
    """Ids of the completion (B, T) int64, padded on the right."""
    mask: Tensor
    """1 on tokens that the policy sampled, the end token that it chose included (B, T) int64; 0
    on padding and on what an environment injected."""
    attend: Tensor
    """1 on every real token, injected ones included (B, T) int64."""
    logps: Tensor
    """Log-probs of the sampled tokens in nats (B, T) float32, under the distribution they were
    drawn from; 0 where `mask` is 0. `Engine.exact` says whether that is the one the trainer
    scores."""
    finished: Tensor
    """Whether the row ended by an end token (B,) bool; false where a limit cut it."""
    version: int | None = None
    """How many updates of the weights the sampler had got; None where it wasn't told."""

    @property
    def ids(self) -> Tensor:
        """Prompt and completion (B, S + T): what the model is run on to be trained."""
        return torch.cat([self.prompts, self.tokens], dim=1)

    @property
    def attention(self) -> Tensor:
        """1 on every real token of `ids` (B, S + T)."""
        return torch.cat([self.prompt_mask, self.attend], dim=1)

    @property
    def positions(self) -> Tensor:
        """Position of every token of `ids` (B, S + T), 0 for the first real one."""
        return (self.attention.cumsum(1) - 1).clamp(min=0)

    @property
    def lengths(self) -> Tensor:
        """Real tokens of each completion (B,), injected ones included."""
        return self.attend.sum(1)

    def completions(self) -> list[list[int]]:
        """The ids of each completion without padding, as reward functions get them."""
        lengths = self.lengths.tolist()
        return [row[:n] for row, n in zip(self.tokens.tolist(), lengths, strict=True)]

    def rows(self, index: Sequence[int] | Tensor | slice) -> RolloutBatch:
        """Some rows, in the order given; the widths stay."""
        return self._with({name: tensor[index] for name, tensor in self._tensors().items()})

    def to(self, device: torch.device | str) -> RolloutBatch:
        """The same on another device."""
        return self._with({name: tensor.to(device) for name, tensor in self._tensors().items()})

    def at(self, version: int | None) -> RolloutBatch:
        """The same, sampled after this many updates."""
        return RolloutBatch(**self._tensors(), version=version)

    def _tensors(self) -> dict[str, Tensor]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "version"}

    def _with(self, tensors: dict[str, Tensor]) -> RolloutBatch:
        return RolloutBatch(**tensors, version=self.version)


@dataclass(slots=True)
class Row:
    """One completion as lists, while it is put together."""

    prompt: list[int]
    tokens: list[int]
    sampled: list[bool]
    """Whether the policy chose the token; an environment injected the others."""
    logps: list[float]
    """Nats; 0 for injected tokens."""
    finished: bool = False


def stack(rows: Sequence[Row], pad: int, version: int | None = None) -> RolloutBatch:
    """A batch of rows that are given as lists.

    Args:
        rows: the completions with their prompts.
        pad: the id for padding.
        version: how many updates of the weights the sampler had got.

    Raises:
        RolloutError: there is no row, or a row's lists differ in length.
    """
    if not rows:
        raise RolloutError("there is no completion to stack; expected one row or more")
    for i, row in enumerate(rows):
        if not len(row.tokens) == len(row.sampled) == len(row.logps):
            raise RolloutError(
                f"row {i} has {len(row.tokens)} tokens, {len(row.sampled)} mask entries and "
                f"{len(row.logps)} log-probs; expected one of each a token"
            )
    prompts_BS, prompt_mask_BS = pad_left([row.prompt for row in rows], pad)
    width = max(1, *(len(row.tokens) for row in rows))
    tokens_BT = torch.full((len(rows), width), pad, dtype=torch.int64)
    mask_BT, attend_BT = (torch.zeros(len(rows), width, dtype=torch.int64) for _ in range(2))
    logps_BT = torch.zeros(len(rows), width)
    for i, row in enumerate(rows):
        n = len(row.tokens)
        tokens_BT[i, :n] = torch.tensor(row.tokens, dtype=torch.int64)
        mask_BT[i, :n] = torch.tensor(row.sampled, dtype=torch.int64)
        attend_BT[i, :n] = 1
        logps_BT[i, :n] = torch.tensor(row.logps)
    finished_B = torch.tensor([row.finished for row in rows])
    return RolloutBatch(
        prompts_BS, prompt_mask_BS, tokens_BT, mask_BT, attend_BT, logps_BT * mask_BT, finished_B,
        version,
    )  # fmt: skip


def pad_left(prompts: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Prompts as ids (B, S) with padding on the left, and the mask that is 1 on real tokens."""
    width = max(len(prompt) for prompt in prompts)
    ids_BS = torch.full((len(prompts), width), pad, dtype=torch.int64)
    mask_BS = torch.zeros_like(ids_BS)
    for i, prompt in enumerate(prompts):
        ids_BS[i, width - len(prompt) :] = torch.tensor(prompt, dtype=torch.int64)
        mask_BS[i, width - len(prompt) :] = 1
    return ids_BS, mask_BS
