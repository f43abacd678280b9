"""A mixin and a function that train TRL's `GRPOTrainer` on an objective of `rlproof.space`.

    trainer = use_objective(GRPOTrainer(…), "dapo")

TRL samples, rewards and logs; advantages and loss are the objective's, with the denominators of all
micro-batches and processes of an update. Checked against TRL 1.16.
Shapes: N rows of a rollout in this process, B rows of a micro-batch, T slots, K rewards.
"""

from __future__ import annotations

from typing import Any, TypeVar

from rlproof.errors import ConfigError
from rlproof.integrations.trl.mixin import check_trainer, put_before
from rlproof.integrations.trl.rollouts import loss_mask
from rlproof.space.aggregation import Scope
from rlproof.space.batch import Batch
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES

T = TypeVar("T")
_KEPT = "rlproof_kept"
"""Key under which the rows that a filter keeps travel with the batch."""


class ProvenObjective:
    """Put before `GRPOTrainer` in the bases of a class; `use_objective` does it to an instance."""

    rlproof_objective: Objective | None = None
    _rlproof_rewards: Any = None

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Any:
        self._rlproof_rewards = super()._calculate_rewards(*args, **kwargs)  # type: ignore[misc]
        return self._rlproof_rewards

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        batch = super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        objective = self.rlproof_objective
        if objective is None or not self.model.training:  # type: ignore[attr-defined]
            return batch
        return _advantages(self, objective, batch, self._rlproof_rewards)

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        objective = self.rlproof_objective
        if objective is None or not self.model.training:  # type: ignore[attr-defined]
            return super()._compute_loss(model, inputs)  # type: ignore[misc]
        new_BT, entropy_BT = _scored(self, model, inputs)
        batch = _batch(self, inputs, new_BT, entropy_BT)
        loss, metrics = objective.loss(batch)
        _log(self, metrics, entropy_BT, batch.mask)
        # the wrapper averages gradients over processes; the parts are to be added
        return loss * self.accelerator.num_processes  # type: ignore[attr-defined]


def use_objective(trainer: T, objective: str | Objective) -> T:
    """Train a `GRPOTrainer`, or an instance of a subclass, on an objective; returns it.

    What the trainer's `loss_type`, `scale_rewards`, `epsilon` and `importance_sampling_level` say
    has no part in it. Coefficients are the objective's: `OBJECTIVES["grpo"].objective.but(…)`.

    Args:
        trainer: before `train()`.
        objective: a name of `rlproof.space.published`, or a point of the space.

    Raises:
        ConfigError: no trainer of TRL's, an unknown name, settings of the trainer that contradict
            the objective, or a coordinate that TRL's batches can't serve.
    """
    check_trainer(trainer)
    how = _named(objective)
    _check(trainer, how)
    put_before(trainer, ProvenObjective)
    assert isinstance(trainer, ProvenObjective)
    trainer.rlproof_objective = how
    return trainer


def _named(objective: str | Objective) -> Objective:
    if isinstance(objective, Objective):
        return objective
    if objective not in OBJECTIVES:
        raise ConfigError(
            f"objective {objective!r}: unknown, expected one of {', '.join(OBJECTIVES)}"
        )
    return OBJECTIVES[objective].objective


def _check(trainer: Any, how: Objective) -> None:
    """Everything that would give another objective than the one that is named."""
    args, kl = trainer.args, how.divergence
    pulled = kl.place != "none" and kl.coefficient != 0
    wrong = [
        (pulled and kl.place != "loss", f"divergence.place is {kl.place!r}: TRL's batches serve "
         "'loss' only; see rlproof.train"),
        (pulled and kl.target == "reference" and not args.beta, "the objective needs a reference, "
         f"and beta is {args.beta}: set it above 0 (its size has no part in the loss)"),
        (args.temperature != how.temperature, f"the trainer samples at temperature "
         f"{args.temperature}, and the objective scores at {how.temperature}"),
        (how.aggregation == "prompt-mean", "aggregation 'prompt-mean' needs whole groups in a "
         "micro-batch, and TRL shuffles rows; see rlproof.train"),
        (how.entropy.coefficient != 0 or how.entropy.top_share < 1, "entropy terms: TRL's own "
         "scorer gives entropies without a gradient, and of one micro-batch; see rlproof.train"),
        (_moving(how), "a correction whose weights depend on the present policy needs all rows of "
         "an update at once; see rlproof.train"),
        (_corrected(how) and not getattr(trainer, "use_vllm", False), "the objective corrects for "
         "the sampler, and TRL keeps log-probs of the sampler with vLLM only"),
        (getattr(trainer, "aux_loss_enabled", False), "the model has a loss of its own for its "
         "router, which would be left out"),
        (args.steps_per_generation % args.gradient_accumulation_steps != 0,
         f"steps_per_generation is {args.steps_per_generation}, and gradient_accumulation_steps "
         f"{args.gradient_accumulation_steps}: expected a multiple, so that an update is of one "
         "rollout"),
    ]  # fmt: skip
    found = next((text for is_wrong, text in wrong if is_wrong), None)
    if found:
        raise ConfigError(f"objective {how.name!r}: {found}")


def _corrected(how: Objective) -> bool:
    return any(one.action != "none" and one.numerator == "old" for one in _corrections(how))


def _moving(how: Objective) -> bool:
    return any(
        one.action != "none" and (one.normalised or not one.counted) for one in _corrections(how)
    )


def _corrections(how: Objective) -> tuple[Any, Any]:
    return how.mismatch, how.rejection


def _advantages(trainer: Any, how: Objective, batch: Any, rewards_NK: Any) -> Any:
    """The batch with the objective's advantages, and what its filter keeps."""
    from rlproof.integrations.trl.ranks import TrainerRanks
    from rlproof.train.prepare import advantages_of

    ranks = TrainerRanks(trainer.accelerator)
    own_NK = ranks.mine(rewards_NK)
    weights = trainer.reward_weights.to(own_NK.device)
    if how.advantage.combine != "decoupled":
        own_NK = own_NK * weights
    mask_NT = loss_mask(batch)
    made, kept_N = advantages_of(
        how, own_NK.tolist(), trainer.num_generations, mask_NT.float(), ranks
    )
    unscored_N = own_NK.isnan().all(1)
    made = made.masked_fill(unscored_N if made.ndim == 1 else unscored_N[:, None], 0.0)
    more = {} if kept_N is None else {_KEPT: kept_N}
    return {**batch, "advantages": made.to(mask_NT.device), **more}


def _scored(trainer: Any, model: Any, inputs: Any) -> tuple[Any, Any]:
    """Log-probs and entropies (B, T) in nats, by TRL's own forward pass."""
    import torch

    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    attend = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
    more = {name: inputs[name] for name in _MULTIMODAL if name in inputs}
    score = trainer._get_per_token_logps_and_entropies
    keep = inputs["completion_ids"].shape[1]
    found = score(model, ids, attend, keep, compute_entropy=True, **more)
    return found[0], found[1]


_MULTIMODAL = (
    "pixel_values", "image_grid_thw", "num_images", "pixel_attention_mask", "spatial_shapes",
    "num_tiles", "image_sizes", "token_type_ids", "mm_token_type_ids", "image_position_ids",
)  # fmt: skip


def _batch(trainer: Any, inputs: Any, new_BT: Any, entropy_BT: Any) -> Batch:
    """The micro-batch, with the denominators of its update."""
    return Batch(
        new=new_BT,
        advantages=inputs["advantages"],
        mask=loss_mask(inputs).to(new_BT.dtype),
        old=inputs.get("old_per_token_logps"),
        ref=inputs.get("ref_per_token_logps"),
        sampler=inputs.get("sampling_per_token_logps"),
        entropy=None if entropy_BT is None else entropy_BT.detach(),
        kept=inputs.get(_KEPT),
        scope=_scope(trainer, inputs, new_BT),
    )


def _scope(trainer: Any, inputs: Any, new_BT: Any) -> Scope:
    """Counts over the micro-batches of the update that this one belongs to, and all processes."""
    import torch

    from rlproof.integrations.trl.ranks import TrainerRanks
    from rlproof.train.denominators import scope_of

    mine = _window(trainer, inputs)

    def joined(name: str) -> Any:
        return torch.cat([part[name] for part in mine]) if name in inputs else None

    mask = torch.cat([loss_mask(part) for part in mine]).to(new_BT.dtype)
    longest = float(trainer.max_completion_length)
    rows = Batch(
        new=torch.zeros_like(mask), advantages=joined("advantages"), mask=mask,
        old=joined("old_per_token_logps"), ref=joined("ref_per_token_logps"),
        sampler=joined("sampling_per_token_logps"), kept=joined(_KEPT),
        scope=Scope(length=longest),
    )  # fmt: skip
    objective = trainer.rlproof_objective
    ranks = TrainerRanks(trainer.accelerator)
    return scope_of(objective, rows, trainer.num_generations, longest, ranks)


def _window(trainer: Any, inputs: Any) -> list[Any]:
    """The micro-batches of an update, this one among them."""
    size = trainer.current_gradient_accumulation_steps
    buffered = trainer._buffered_inputs
    at = trainer._step % trainer.args.steps_per_generation
    start = at - at % size
    return list(buffered[start : start + size]) or [inputs]


def _log(trainer: Any, metrics: dict[str, Any], entropy_BT: Any, mask_BT: Any) -> None:
    """Metrics under TRL's names, of this process."""
    logged = trainer._metrics["train"]
    logged["clip_ratio/region_mean"].append(float(metrics["clip_fraction"]))
    if trainer.rlproof_objective.divergence.place == "loss":
        logged["kl"].append(float(metrics["divergence_mean"]))
    if entropy_BT is not None:
        count = mask_BT.sum().clamp(min=1)
        logged["entropy"].append(float((entropy_BT.detach() * mask_BT).sum() / count))
