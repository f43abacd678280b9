"""Policy losses of verl that compute an objective of `rlproof.space`.

verl's engines call a policy loss for each micro-batch, add up the gradients, and average them over
processes. `config.global_batch_info` has the counts of the whole mini-batch over all processes, so
the sum is the gradient of the mini-batch however it is cut. Shapes: B rows, T slots.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rlproof.errors import ConfigError
from rlproof.integrations.verl.recording import recording
from rlproof.integrations.verl.serving import (
    aggregation_of_divergence,
    correction_options,
    loss_contradiction,
    loss_refusal,
    needs_whole,
    option,
    own_divergence,
)
from rlproof.space.aggregation import Scope, slot_weights
from rlproof.space.batch import Batch
from rlproof.space.divergences import Divergence
from rlproof.space.entropy import Entropy
from rlproof.space.objective import Objective
from rlproof.space.terms import terms

Loss = Callable[..., tuple[Any, dict[str, Any]]]
_COUNTS = {
    "token-mean": ("tokens", "batch_num_tokens"),
    "sequence-mean": ("sequences", "global_batch_size"),
    "sequence-sum": ("sequences", "global_batch_size"),
    "constant-per-sequence": ("sequences", "global_batch_size"),
}
"""Which count of the mini-batch an aggregation divides by, and verl's name for it."""


def policy_loss(objective: Objective) -> Loss:
    """A policy loss for verl's `register_policy_loss`.

    What the options say of clip bounds and aggregation has no part in it. The divergence to the
    reference and the entropy are added by verl, and their options must be the objective's. The
    weights of `algorithm.rollout_correction` are the correction of an objective that has one.

    The function raises ConfigError where verl can't serve the objective, an option contradicts it,
    or a count of the mini-batch is missing.
    """
    refused = loss_refusal(objective)
    core = objective.but(
        divergence=objective.divergence if own_divergence(objective) else Divergence(),
        entropy=Entropy(),
        mismatch=replace(objective.mismatch, level="token"),
    )

    def loss(
        old_log_prob: Any,
        log_prob: Any,
        advantages: Any,
        response_mask: Any,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: Any = None,
    ) -> tuple[Any, dict[str, Any]]:
        wrong = refused or loss_contradiction(objective, config, loss_agg_mode)
        if wrong:
            raise ConfigError(f"objective {objective.name!r}: {wrong}")
        mask_BT = response_mask.to(log_prob.dtype)
        counts = dict(option(config, "global_batch_info") or {})
        old_BT, sampler_BT = _corrected(objective, old_log_prob, mask_BT, rollout_is_weights)
        batch = Batch(
            new=log_prob, advantages=advantages, mask=mask_BT, old=old_BT, sampler=sampler_BT,
            scope=_scope(objective, mask_BT, counts),
        )  # fmt: skip
        parts = terms(core, batch)
        # the engines average gradients over processes; the parts are to be added
        value = parts.value() * float(counts.get("dp_size") or 1)
        return value.to(log_prob.dtype), _metrics(parts, batch)

    loss.__name__ = loss.__qualname__ = f"rlproof:{objective.name}"
    return loss


def _scope(how: Objective, mask_BT: Any, counts: Mapping[str, Any]) -> Scope:
    """The counts of the mini-batch over all processes.

    Raises:
        ConfigError: one is missing.
    """
    used = {how.aggregation}
    if own_divergence(how):
        used.add(aggregation_of_divergence(how))
    given: dict[str, Any] = {}
    for name in sorted(used & set(_COUNTS)):
        field, key = _COUNTS[name]
        if counts.get(key) is None:
            raise _missing(how, name, f"config.global_batch_info[{key!r}], which verl's engines "
                           "set from 0.8.0 on")  # fmt: skip
        given[field] = float(counts[key])
    if used & {"constant", "constant-per-sequence"}:
        if not counts.get("loss_scale_factor"):
            raise _missing(how, how.aggregation, "the constant: set "
                           "actor_rollout_ref.actor.loss_scale_factor, in tokens")  # fmt: skip
        given["length"] = float(counts["loss_scale_factor"])
    if needs_whole(how):
        _check_whole(how, mask_BT, counts)
        given.pop("tokens", None)  # counted by the objective itself
    return Scope(**given)


def _missing(how: Objective, aggregation: str, what: str) -> ConfigError:
    return ConfigError(f"objective {how.name!r}: aggregation {aggregation!r} needs {what}")


def _check_whole(how: Objective, mask_BT: Any, counts: Mapping[str, Any]) -> None:
    """Whether the micro-batch is all of the mini-batch, so that its own counts are the counts."""
    tokens, rows = counts.get("batch_num_tokens"), counts.get("global_batch_size")
    own = float(mask_BT.sum())
    if tokens != own or rows != len(mask_BT):
        raise ConfigError(
            f"objective {how.name!r}: a denominator leaves out what the objective drops, and "
            f"verl counts everything; that is known only of a whole mini-batch, and this is "
            f"{len(mask_BT)} rows with {own:.0f} tokens of {rows} with {tokens}: set the "
            "micro-batch to the mini-batch, in one process"
        )


def _corrected(how: Objective, old_BT: Any, mask_BT: Any, weights_BT: Any) -> tuple[Any, Any]:
    """Old log-probs, and the sampler's that have verl's weights as their ratio.

    In double precision where there are weights, since log-probs are large against their gap.

    Raises:
        ConfigError: weights where the objective has none, none where it has, or others.
    """
    one = how.mismatch
    if one.action == "none":
        if weights_BT is not None:
            raise ConfigError(
                f"objective {how.name!r}: it has no correction of the sampler, and verl computed "
                "weights; set algorithm.rollout_correction.rollout_is=null or take an objective "
                "that has one, such as 'grpo-tis'"
            )
        return old_BT, None
    if weights_BT is None:
        raise ConfigError(
            f"objective {how.name!r}: its correction of the sampler is computed by verl; set "
            f"{correction_options(one)}"
        )
    seen = weights_BT.double() * mask_BT
    low = one.low if one.action == "mask" else 0.0
    slack = 1e-5
    inside = (seen == 0) | ((seen >= low * (1 - slack)) & (seen <= one.high * (1 + slack)))
    if not bool(inside.all()):
        worst = float(seen[~inside][0])
        raise ConfigError(
            f"objective {how.name!r}: a weight of {worst:g} is outside of {low:g} to "
            f"{one.high:g}; set {correction_options(one)}"
        )
    if one.action == "mask":  # bounds are inclusive, and a logarithm rounds
        seen = seen.where(seen == 0, seen.clamp(one.low * (1 + 1e-12), one.high * (1 - 1e-12)))
    old_BT = old_BT.double()
    return old_BT, old_BT - seen.clamp(min=1e-300).log()


def _metrics(parts: Any, batch: Batch) -> dict[str, float]:
    """What verl logs of its own losses, by its names, of this micro-batch."""
    mask_BT = parts.mask.detach()
    count = mask_BT.sum().clamp(min=1)
    idle_BT = (parts.surrogate[1] == 0) & (batch.advantages != 0)
    drift_BT = (batch.old - batch.new.detach()).where(mask_BT > 0, 0.0)
    return {
        "actor/pg_clipfrac": float((idle_BT * mask_BT).sum() / count),
        "actor/ppo_kl": float(drift_BT.sum() / count),
    }


def recorded(loss: Loss, objective: Objective) -> Loss:
    """The same loss, recorded where RLPROOF_RECORD is set; see `recording`."""
    clip = objective.clip
    bounds = {"clip_low": clip.low, "clip_high": clip.high} if clip.convention == "delta" else {}
    return recording(
        f"rlproof:{objective.name}", loss,
        scale=functools.partial(_scale, objective),
        facts={name: value for name, value in bounds.items() if value is not None},
    )  # fmt: skip


def _scale(objective: Objective, given: Mapping[str, Any], counts: Mapping[str, Any]) -> float:
    """The loss of the micro-batch within the mini-batch over its loss alone."""
    mask_BT = given["response_mask"].double()
    whole = _scope(objective, mask_BT, counts)
    alone = Scope(length=whole.length)
    sums = [float(slot_weights(mask_BT, objective.aggregation, s).sum()) for s in (whole, alone)]
    return sums[0] * float(counts.get("dp_size") or 1) / sums[1] if sums[1] else 1.0
