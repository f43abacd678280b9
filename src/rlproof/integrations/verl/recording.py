"""Record what verl's policy losses are computed from: `loss_mode=rlproof_vanilla`.

    export VERL_USE_EXTERNAL_MODULES=rlproof.integrations.verl RLPROOF_RECORD=steps-{rank}.jsonl
    python -m verl.trainer.main_ppo actor_rollout_ref.actor.policy_loss.loss_mode=rlproof_gspo …

Importing the package registers, beside every policy loss that verl knows, one of the same name
after `rlproof_`, which calls it, returns what it returns, and records the micro-batch. `rlproof`
alone is `rlproof_vanilla`. Read against verl 0.9.1.

verl has no place for trackers of one's own (`Tracking.supported_backend` is a fixed list), and
needs none: `trainer.logger=[console,file]` writes JSON lines that `rlproof inspect` reads.
Shapes: B rows, T slots.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from verl.trainer.ppo import core_algos

from rlproof.integrations.losses import Progress, updates_of_environment, write
from rlproof.integrations.verl.serving import option
from rlproof.watch.record import Recorder, recorder_of

PREFIX = "rlproof"
Loss = Callable[..., tuple[Any, dict[str, Any]]]
Scale = Callable[[Mapping[str, Any], Mapping[str, Any]], float]
_ORDER = (
    "old_log_prob", "log_prob", "advantages", "response_mask", "loss_agg_mode", "config",
    "rollout_is_weights",
)  # fmt: skip
_AGGREGATES_AS = {"sapo": "seq-mean-token-mean", "geo_mean": None}
"""Losses that don't follow `loss_agg_mode`; None: no count of the whole update is in it."""


def record_loss(name: str) -> str:
    """Register a loss that records the one registered as `name`, now or later.

    Returns:
        The new name, for `actor.policy_loss.loss_mode`.
    """
    wrapped = f"{PREFIX}_{name}"
    core_algos.register_policy_loss(wrapped)(recording(name))
    return wrapped


def recording(
    name: str,
    inner: Loss | None = None,
    scale: Scale | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Loss:
    """A policy loss that calls another one and records what it was given.

    Args:
        name: of the loss.
        inner: the loss; the one registered as `name` when it is called without.
        scale: the factor of a micro-batch's loss within the update, of what the loss was given
            and the counts of the update; that of verl's `agg_loss` without.
        facts: bounds of the clip; those of the options without.

    Raises:
        ConfigError: RLPROOF_UPDATES is no whole number from 1 on.
    """
    progress = Progress(updates_of_environment())

    def loss(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        called = inner or core_algos.get_policy_loss_fn(name)
        result: tuple[Any, dict[str, Any]] = called(*args, **kwargs)
        recorder = recorder_of()
        if recorder is not None:
            try:
                given = {**dict(zip(_ORDER, args, strict=False)), **kwargs}
                said = _facts(given.get("config")) if facts is None else facts
                factor = scale or functools.partial(_scale, name)
                _observe(recorder, factor, said, progress, given, result[0])
            except Exception as error:  # a record must not end a run
                recorder.warn(f"{type(error).__name__}: {error}")
        return result

    loss.__name__ = loss.__qualname__ = f"{PREFIX}_{name}" if inner is None else name
    return loss


def _observe(
    recorder: Recorder, scale: Scale, facts: Mapping[str, Any], progress: Progress,
    given: Mapping[str, Any], loss: Any,
) -> None:  # fmt: skip
    """Count the call, and record it where it is due."""
    logps, config = given["log_prob"], given.get("config")
    if not logps.requires_grad:  # not a training pass
        return
    counts = dict(option(config, "global_batch_info") or {})
    rows, ranks = counts.get("global_batch_size"), counts.get("dp_size") or 1
    place = progress.next(len(logps), None if rows is None else rows / ranks)
    if not recorder.due(place.step):
        return
    problems: tuple[str, ...] = ()
    if given.get("rollout_is_weights") is not None:
        problems = ("the loss is weighted by rollout_is_weights, which no record holds",)
    write(
        recorder, place, loss, logps, functools.partial(scale, given, counts),
        old_logps=given.get("old_log_prob"), advantages=given.get("advantages"),
        mask=given.get("response_mask"), facts=_with(facts, updates=progress.updates),
        problems=problems,
    )  # fmt: skip


def _scale(name: str, given: Mapping[str, Any], counts: Mapping[str, Any]) -> float:
    """The loss of the micro-batch within the update over its loss alone, by verl's own rule."""
    mode = _AGGREGATES_AS.get(name, given.get("loss_agg_mode", "token-mean"))
    if mode is None or not counts:
        return 1.0
    mask = given["response_mask"]
    own = {key: value for key, value in counts.items() if key == "loss_scale_factor"}
    whole, alone = (
        float(core_algos.agg_loss(mask.double(), mask, mode, **how)) for how in (counts, own)
    )
    return whole / alone if alone else 1.0


def _facts(config: Any) -> dict[str, Any]:
    """The declared clip bounds."""
    plain = option(config, "clip_ratio")
    low, high = (option(config, name) for name in ("clip_ratio_low", "clip_ratio_high"))
    return _with(
        {}, clip_low=plain if low is None else low, clip_high=plain if high is None else high
    )


def _with(facts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Facts and more of them; what is None is not said."""
    return {name: value for name, value in {**facts, **more}.items() if value is not None}


def register() -> list[str]:
    """Register a recording loss for every policy loss that verl knows; their names."""
    known = [n for n in core_algos.POLICY_LOSS_REGISTRY if not n.startswith(PREFIX)]
    core_algos.register_policy_loss(PREFIX)(recording("vanilla"))
    return [PREFIX, *(record_loss(name) for name in known)]
