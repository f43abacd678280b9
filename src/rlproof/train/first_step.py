"""The record of a step, and the judgement of the first one before hours are spent.

Shapes: B rows of an update over all processes, T slots.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlproof.errors import FirstStepError
from rlproof.faults.model import Severity
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES
from rlproof.train.config import TrainConfig
from rlproof.train.distributed import Ranks
from rlproof.train.step import Update, slope
from rlproof.watch.inspect import Found, Inspector
from rlproof.watch.readers.opening import open_source


def facts(config: TrainConfig, objective: Objective, vocabulary: int) -> dict[str, Any]:
    """What the run declares about itself, by the names of `rlproof.watch.facts`."""
    found: dict[str, Any] = {
        "baseline": objective.advantage.baseline,
        "scale": objective.advantage.scale,
        "group_size": config.batch.group,
        "vocabulary": vocabulary,
        "updates": config.updates,
        "entropy_coefficient": objective.entropy.coefficient,
    }
    if objective.name in OBJECTIVES:
        found["objective"] = objective.name
    if objective.divergence.place == "loss":
        found["beta"] = objective.divergence.coefficient
        if objective.divergence.estimator in ("k1", "k2", "k3"):
            found["estimator"] = objective.divergence.estimator
    elif objective.divergence.place == "none":
        found["beta"] = 0.0
    clip = objective.clip
    if clip.convention == "delta" and clip.low is not None and clip.high is not None:
        found |= {"clip_low": clip.low, "clip_high": clip.high}
    return found


def record_of(
    objective: Objective, update: Update, number: int, declared: dict[str, Any], ranks: Ranks
) -> dict[str, Any]:
    """The arguments for `rlproof.record`: the rows of all processes of one update.

    The gradient is taken by autograd through the value of the loss, with the denominators that
    the micro-batches had. With a bonus for entropy it is that of the rest, and tells what the loss
    is; the value, which has the bonus in it, is left out.
    """
    part = update.part
    given: dict[str, Any] = {
        "advantages": ranks.rows(part.advantages),
        "new_logps": ranks.rows(update.new),
        "old_logps": ranks.rows(update.new if part.old is None else part.old),
        "sampler_logps": ranks.rows(part.rollout.logps),
        "mask": ranks.rows(part.mask),
        "tokens": ranks.rows(part.rollout.tokens),
        "grad": ranks.rows(slope(objective, update)),
    }
    if update.entropy is not None:
        given["entropy"] = ranks.rows(update.entropy)
    if part.ref is not None:
        given["ref_logps"] = ranks.rows(part.ref)
    if part.kept is not None:
        given["mask"] = given["mask"] * ranks.rows(part.kept)[:, None]
    if part.whole or not _of_batch(objective):
        given["rewards"] = ranks.rows(part.rewards)
    if not objective.entropy.coefficient:  # the bonus is no function of log-probs
        given["loss"] = update.loss
    declared = dict(declared)
    return {**given, "groups": part.group, "update": number,
            "objective": declared.pop("objective", None), "facts": declared}  # fmt: skip


def _of_batch(objective: Objective) -> bool:
    """Whether advantages depend on completions of other prompts."""
    how = objective.advantage
    scale = how.scale.startswith("batch") or how.scale == "nonzero-share"
    return how.baseline == "batch-mean" or scale or how.whiten != "none"


def judged(path: Path) -> tuple[Found, ...]:
    """What the rules of `rlproof inspect` find in recorded steps."""
    return Inspector(str(path), open_source(str(path))).run().findings


def check_gradient(difference: float, dtype: str) -> None:
    """Refuse a fused gradient that is not that of autograd, beyond what rounding explains.

    Raises:
        FirstStepError: it is not.
    """
    bound = 1e-3 if dtype == "float32" else 0.1
    if not difference <= bound:  # NaN too
        raise FirstStepError(
            "the first step is wrong, training does not go on: the gradient of the fused loss "
            f"differs from that of autograd by {difference:.2g} of its largest entry, expected at "
            f"most {bound:g}; please report the model and the versions of torch and transformers"
        )


def refuse(findings: tuple[Found, ...], path: Path) -> list[str]:
    """The findings in words.

    Raises:
        FirstStepError: one of them has severity error.
    """
    said = [f"{f.rule.code} {f.rule.name}: {f.alarm.message}" for f in findings]
    bad = [line for f, line in zip(findings, said, strict=True) if f.severity is Severity.ERROR]
    if bad:
        raise FirstStepError(
            f"the first step is wrong, training does not go on: {'; '.join(bad)} "
            f"(`rlproof inspect {path}` shows the evidence)"
        )
    return said
