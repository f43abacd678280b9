"""Whether a function computes one given objective: the same inputs, both answers.

For an `Objective` that has no name. Each batch goes to the function and to the objective; the
first, smallest one where value or gradient differ is the evidence. Shapes: B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import log
from typing import Any

import numpy as np

from rlproof.errors import ConfigError
from rlproof.faults.model import Evidence, Severity, rounded
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import AdvantagesSeen, Batch, LossSeen, Place, ScriptError
from rlproof.judge.findings import Finding
from rlproof.space.aggregation import Scope
from rlproof.space.batch import Batch as Given
from rlproof.space.filters import Filter
from rlproof.space.objective import Objective

_TOLERANCE = 2e-4  # of identification: what float32 and finite differences leave
_STABILISER = 2e-3  # advantages are alike whatever is added to the std, up to 1e-3
_PROBABILITIES = (0.5, 0.25, 0.75)
_FAR = ((0.9, 0.01), (0.01, 0.9))
_REWARDS = (
    ([1.0, 0.0], 2),
    ([0.0, 1.0, 1.0, 1.0], 4),
    ([0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0], 4),
    ([0.5, 2.0, -1.0, 3.0, 0.0, 1.5], 3),
)


def refuse(objective: Objective) -> None:
    """Whether one function of log-probs can show the objective at all.

    Raises:
        ConfigError: a coordinate needs what no such function is given.
    """
    why = {
        "mismatch": objective.mismatch.action != "none",
        "rejection": objective.rejection.action != "none",
        "entropy": bool(objective.entropy.coefficient) or objective.entropy.top_share < 1,
        "aggregation": objective.aggregation == "prompt-mean",
        "divergence.target": objective.divergence.place == "loss"
        and objective.divergence.target == "sampler",
    }
    if blocked := [axis for axis, is_blocked in why.items() if is_blocked]:
        raise ConfigError(
            f"objective {objective.name!r}: {', '.join(blocked)} can't be seen in a function of "
            "log-probs, advantages and a mask; leave it out, or give the name of a recipe"
        )


def of_loss(objective: Objective, seen: LossSeen, place: Place) -> Iterator[Finding]:
    """The first difference between a loss and the objective, if there is one.

    A loss that divides by a constant is compared up to that constant. One that is declared to be
    maximised, or is by what was measured where nothing is declared, is compared with −L. Which
    completions a filter leaves out is decided before a loss is called, so the filter is not asked.
    """
    objective = objective.but(filter=Filter())
    scale = _scale(objective, seen)
    for label, batch in _batches(objective, seen):
        meant, slopes = objective.value_and_gradient(_given(objective, batch))
        try:
            got = seen.run(batch)
        except ScriptError as error:
            yield _finding(
                objective, place, "loss", Evidence(label, error.kind, rounded(scale * float(meant)))
            )
            return
        expected = scale * float(meant)
        if _differ(got.value, expected, _TOLERANCE):
            evidence = Evidence(f"{label}: loss", rounded(got.value), rounded(expected))
            yield _finding(objective, place, "loss", evidence)
            return
        found, wanted = np.array(got.gradient), scale * np.asarray(slopes)
        apart = np.abs(found - wanted) > _TOLERANCE * np.maximum(1.0, np.abs(wanted))
        if apart.any():
            row, slot = (int(i) for i in np.argwhere(apart)[0])
            what = f"{label}: ∂loss/∂logp of row {row + 1}, token {slot + 1}"
            evidence = Evidence(what, rounded(found[row, slot]), rounded(wanted[row, slot]))
            yield _finding(objective, place, "loss", evidence)
            return


def of_advantages(objective: Objective, seen: AdvantagesSeen, place: Place) -> Iterator[Finding]:
    """The first difference between advantages and those of the objective, if there is one."""
    for rewards, size in _REWARDS:
        try:
            meant = objective.advantages(np.array(rewards), size)
        except ValueError as error:
            raise ConfigError(
                f"objective {objective.name!r}: its advantages can't be compared ({error})"
            ) from None
        expected = [float(x) for x in meant]
        label = f"rewards {_short(rewards)}, group_size {size}"
        try:
            got = list(seen.run(rewards, size))
        except ScriptError as error:
            evidence = Evidence(label, error.kind, _rounded(expected))
            yield _finding(objective, place, "advantages", evidence)
            return
        if any(_differ(g, e, _STABILISER) for g, e in zip(got, expected, strict=True)):
            evidence = Evidence(label, _rounded(got), _rounded(expected))
            yield _finding(objective, place, "advantages", evidence)
            return


def _finding(objective: Objective, place: Place, what: str, evidence: Evidence) -> Finding:
    are = "loss is not that" if what == "loss" else "advantages are not those"
    message = f"the {are} of the objective that was given ({objective.name})"
    return Finding(catalogue()["OBJ001"], Severity.ERROR, place, message, evidence)


def _scale(objective: Objective, seen: LossSeen) -> float:
    """−1 for what is to be maximised; with a constant divisor, the one that was measured."""
    gain = float(seen.point.get("surrogate_weight", -1.0)) > 0
    sign = -1.0 if seen.declared == "objective" or (seen.declared is None and gain) else 1.0
    if not objective.aggregation.startswith("constant"):
        return sign
    factor = float(seen.point.get("factor", 1.0))
    return sign * factor if factor > 0 else sign


def _batches(objective: Objective, seen: LossSeen) -> Iterator[tuple[str, Batch]]:
    """One token first, with round probabilities; then the reference; then rows of 1 and 2."""
    clip = objective.clip
    known = {
        "low": clip.low,
        "high": clip.high,
        "cap": clip.cap if "dual-clip cap" in seen.slots else None,
        "beta": objective.divergence.coefficient if objective.divergence.place == "loss" else 0.0,
    }
    at = _settings(objective, seen)
    near = product(_PROBABILITIES, _PROBABILITIES)
    for (new, old), adv in product((*near, *_FAR), (1.0, -1.0)):
        rows = [[log(new)]]
        batch = Batch(rows, [[log(old)]], rows, [adv], [[1]], **known)
        yield f"one token, π_new = {new:g}, π_old = {old:g}, A = {adv:g}{at}", batch
    for ref in (0.25, 0.75):
        half = [[log(0.5)]]
        batch = Batch(half, half, [[log(ref)]], [0.0], [[1]], **known)
        yield f"one token, A = 0, π_new = π_old = 0.5, π_ref = {ref:g}{at}", batch
    padded = bool({"mask", "lengths"} & seen.slots)
    new_BT, old_BT = [[-1.0, -1.3], [-0.7, -1.6]], [[-1.1, -1.0], [-1.0, -1.5]]
    ref_BT = [[-0.9, -1.2], [-0.8, -1.4]]
    mask_BT = [[1, 1 - padded], [1, 1]]
    lengths = f"{1 if padded else 2} and 2"
    for advantages in ([0.0, 1.0], [1.0, -0.5]):
        batch = Batch(new_BT, old_BT, ref_BT, advantages, mask_BT, **known)
        said = ", ".join(f"{a:g}" for a in advantages)
        yield f"rows of {lengths} tokens, A = ({said}){at}", batch


def _settings(objective: Objective, seen: LossSeen) -> str:
    """What the loss is given of the objective's own numbers."""
    clip, said = objective.clip, ""
    if any("clip range" in slot for slot in seen.slots):
        said += f", clip range {clip.low} and {clip.high}"
    if "divergence coefficient" in seen.slots and objective.divergence.place == "loss":
        said += f", beta = {objective.divergence.coefficient:g}"
    return said


def _given(objective: Objective, batch: Batch) -> Given:
    constant = objective.aggregation.startswith("constant")
    return Given(
        new=np.array(batch.new),
        advantages=np.array(batch.advantages),
        mask=np.array(batch.mask, dtype=float),
        old=np.array(batch.old),
        ref=np.array(batch.ref),
        scope=Scope(length=1.0) if constant else Scope(),
    )


def _short(rewards: list[float]) -> str:
    return "[" + ", ".join(f"{r:g}" for r in rewards) + "]"


def _rounded(values: list[float]) -> list[float]:
    return [rounded(value, 5) for value in values]


def _differ(got: Any, expected: float, tolerance: float) -> bool:
    near = abs(got - expected) <= tolerance * max(1.0, abs(expected))
    return not near  # not-a-number is near nothing
