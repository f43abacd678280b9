"""What was sampled at a step, out of TRL's batch. Shapes: B rows, S prompt slots, T slots."""

from __future__ import annotations

from typing import Any

from rlproof.integrations.trl.sampling import Drawn
from rlproof.watch.pack import NO_TOKEN

SAMPLER = "rlproof_sampler_logps"
"""Key under which log-probs of the sampler travel with a batch that TRL shuffles and splits."""
_ROWS = 4
"""Completions whose reference log-probs are looked at all run long."""


def rollout_record(trainer: Any, batch: Any, drawn: list[Drawn], rewards: Any) -> dict[str, Any]:
    """Arguments for `Recorder.record`: rewards, groups, advantages, ids and mask."""
    tokens = batch["completion_ids"]
    rows = len(tokens)
    group = int(trainer.num_generations)
    return {
        "rewards": _weighted(trainer, rewards, rows),
        "groups": group if rows % group == 0 else None,
        "advantages": batch["advantages"],
        "prompts": _unpadded(batch["prompt_ids"], batch["prompt_mask"]),
        "tokens": tokens,
        "mask": loss_mask(batch),
        "sampled_tokens": _fitted(_only(drawn, rows), "tokens", tokens, NO_TOKEN),
    }


def loss_mask(batch: Any) -> Any:
    """1 on tokens that the loss counts (B, T)."""
    mask = batch["completion_mask"]
    return mask * batch["tool_mask"] if "tool_mask" in batch else mask


def with_samples(batch: Any, drawn: list[Drawn]) -> Any:
    """The batch with the log-probs of `generate` beside it, so that it is split alike."""
    tokens = batch["completion_ids"]
    logps = _fitted(_only(drawn, len(tokens)), "logps", tokens, float("nan"))
    return batch if logps is None else {**batch, SAMPLER: logps}


def _only(drawn: list[Drawn], rows: int) -> Drawn | None:
    """The one call that sampled this batch; of several turns nothing is said."""
    whole = [one for one in drawn if one.tokens is not None]
    return whole[0] if len(whole) == 1 and len(whole[0].tokens) == rows else None


def _fitted(one: Drawn | None, name: str, tokens: Any, fill: float) -> Any:
    """An array of a call in the width of the batch."""
    import torch

    array = None if one is None else getattr(one, name)
    if array is None:
        return None
    width = tokens.shape[1]
    array = array[:, :width].to(tokens.device)
    return torch.nn.functional.pad(array, (0, width - array.shape[1]), value=fill)


def _weighted(trainer: Any, rewards: Any, rows: int) -> Any:
    """This process's rewards under their weights (B, K); NaN only where no function answered."""
    if rewards is None:
        return None
    start = trainer.accelerator.process_index * rows
    own = rewards[start : start + rows]
    weighted = own * trainer.reward_weights.to(own.device)
    unscored = own.isnan().all(1, keepdim=True)
    return weighted.nan_to_num(0.0).masked_fill(unscored, float("nan"))


def _unpadded(ids: Any, mask: Any) -> list[list[int]]:
    return [row[real.bool()].tolist() for row, real in zip(ids, mask, strict=True)]


class Anchor:
    """A few completions of the first record, whose reference log-probs must not change."""

    def __init__(self) -> None:
        self._inputs: tuple[Any, ...] | None = None

    def logps(self, trainer: Any, batch: Any) -> Any:
        """Log-probs of the reference on them (R, T); None where it moves on purpose, or none is."""
        moving = getattr(trainer.args, "sync_ref_model", False)
        if "ref_per_token_logps" not in batch or moving or "pixel_values" in batch:
            return None
        if self._inputs is None:
            self._inputs = _forward_inputs(batch)
        return _of_reference(trainer, *self._inputs)


def _forward_inputs(batch: Any) -> tuple[Any, ...]:
    """Ids, attention mask and slots to keep, of the first rows."""
    import torch

    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)[:_ROWS]
    attend = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)[:_ROWS]
    return ids, attend, batch["completion_ids"].shape[1]


def _of_reference(trainer: Any, *inputs: Any) -> Any:
    import torch

    score = trainer._get_per_token_logps_and_entropies
    with torch.no_grad():
        if trainer.ref_model is not None:
            return score(trainer.ref_model, *inputs)[0]
        model = trainer.accelerator.unwrap_model(trainer.model)
        if not hasattr(model, "disable_adapter") or "ref" in model.peft_config:
            return None
        with model.disable_adapter():
            return score(trainer.model, *inputs)[0]
