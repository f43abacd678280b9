"""The real gradient of a loss's divergence: which KL it follows, if any.

The term's slopes at every action of a bandit give its exact expected gradient,

    Σ_a π_a·(∂L/∂log π_a at A = 0)·∇log π_a,

which is compared with ∇KL(π‖ref) and ∇KL(ref‖π). Shapes: V actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rlproof.bind.shaping import ShapingImplementation
from rlproof.defence.functions import Floats, Loss
from rlproof.defence.model import Cell, Fact, Part, Table
from rlproof.faults.seen import Batch
from rlproof.lab.calculus import compare
from rlproof.lab.divergences import kl_gradient_first, kl_gradient_second
from rlproof.lab.fixtures import P4_LOGITS, REF2_LOGITS
from rlproof.lab.policies import Policy, bandit
from rlproof.read.names import Slot
from rlproof.read.parameters import number

TOLERANCE = 1e-4
"""Largest relative distance from a multiple of a KL gradient: finite differences stay below."""
_ZERO = 1e-8
REVERSE, FORWARD = "KL(π‖ref)", "KL(ref‖π)"
_MOVED = (0.9, -0.2, -0.4, -1.3)


@dataclass(frozen=True, slots=True)
class Setting:
    """A policy, its reference, and who drew the action."""

    name: str
    policy: Policy
    reference: Policy
    drawn: Policy


def settings() -> list[Setting]:
    """Two references on-policy, and one off-policy."""
    arms = bandit(4)
    p4, ref2, flat = arms.at(P4_LOGITS), arms.at(REF2_LOGITS), arms.at(np.zeros(4))
    return [
        Setting("P4, ref = softmax(0, .8, −.3, .2)", p4, ref2, p4),
        Setting("P4, uniform ref", p4, flat, p4),
        Setting("the first, sampled from an older policy", arms.at(_MOVED), ref2, p4),
    ]


@dataclass(frozen=True, slots=True)
class Seen:
    """The measured gradient in one setting, and how it lies to the two."""

    setting: Setting
    gradient: Floats
    """Of the loss: what a descent goes against."""

    @property
    def size(self) -> float:
        """Its norm."""
        return float(np.linalg.norm(self.gradient))

    def against(self, which: str) -> tuple[float, float, float]:
        """Cosine, norm ratio, and the relative distance from its best multiple."""
        right = _right(self.setting, which)
        found = compare(self.gradient, right)
        apart = float(np.linalg.norm(self.gradient - found.scale * right)) / self.size
        return found.cosine, self.size / float(np.linalg.norm(right)), apart

    def scale(self, which: str) -> float:
        """The factor on that gradient."""
        right = _right(self.setting, which)
        return float(self.gradient @ right) / float(right @ right)


def _right(setting: Setting, which: str) -> Floats:
    if which == REVERSE:
        return kl_gradient_first(setting.policy, setting.reference)
    return kl_gradient_second(setting.reference, setting.policy)


def measure(loss: Loss) -> tuple[list[Seen], float | None]:
    """The gradient in every setting at β = 1 where the loss takes one, and that default β.

    Raises:
        ScriptError, UnbindableError: the loss can't be asked.
    """
    parameter = loss.function.target.parameter(Slot.BETA)
    default = number(parameter.default) if parameter else None
    beta = 1.0 if parameter else loss.beta
    found = []
    for setting in settings():
        batches = _actions(loss, setting, beta)
        sign = -1.0 if loss.is_objective else 1.0
        slopes = [sign * answer.gradient[0][0] for answer in loss.answers(batches)]
        found.append(Seen(setting, _expected(setting, slopes)))
    return found, default


def _actions(loss: Loss, setting: Setting, beta: float | None) -> list[Batch]:
    """One token for each action, without an advantage."""
    new, ref, old = (p.log_table[0] for p in (setting.policy, setting.reference, setting.drawn))
    return [
        loss.batch(
            [[float(new[a])]], [0.0], [[1]], old=[[float(old[a])]], ref=[[float(ref[a])]]
        ).but(beta=beta)
        for a in range(len(new))
    ]  # fmt: skip


def _expected(setting: Setting, slopes: Sequence[float]) -> Floats:
    total: Floats = setting.drawn.expect(np.array(slopes)[:, None] * setting.policy.scores)
    return total


def in_reward(function: ShapingImplementation) -> list[Seen]:
    """The gradient that a penalty in the reward gives: minus that of E[r′ − r], for β = 1."""
    found = []
    for setting in settings()[:2]:
        new, ref = (p.log_table[0] for p in (setting.policy, setting.reference))
        shifts = []
        for a in range(len(new)):
            rows = [[float(new[a])]]
            batch = Batch(rows, rows, [[float(ref[a])]], [0.0], [[1]], beta=1.0)
            shifts.append(-float(np.sum(function.run(batch))))
        found.append(Seen(setting, _expected(setting, shifts)))
    return found


def which(found: Sequence[Seen]) -> tuple[str | None, float]:
    """Which gradient the on-policy settings show, and with which factor.

    `KL(π‖ref)`, `KL(ref‖π)`, `none` where it is 0 in expectation; None where it is neither.
    """
    on_policy = found[:2]
    if all(seen.size < _ZERO for seen in on_policy):
        return "none", 0.0
    for name in (REVERSE, FORWARD):
        scales = [seen.scale(name) for seen in on_policy]
        fits = all(seen.size > _ZERO and seen.against(name)[2] < TOLERANCE for seen in on_policy)
        if fits and abs(scales[0] - scales[1]) < TOLERANCE * abs(scales[0]):
            return name, float(f"{scales[0]:.6g}")
    return None, 0.0


def part(name: str, line: int, found: Sequence[Seen], place: str) -> Part:
    """What was measured, in words."""
    meant, factor = which(found)
    facts: dict[str, Fact] = {"follows": meant, "factor": factor, "place": place}
    for i, seen in enumerate(found):
        if seen.size > _ZERO:
            facts[f"cosine {REVERSE} {i}"] = seen.against(REVERSE)[0]
            facts[f"cosine {FORWARD} {i}"] = seen.against(FORWARD)[0]
    return Part(
        key="divergence",
        title=f"The divergence's real gradient, in the {place}",
        function=name,
        line=line,
        claims=_claims(meant, place, len(found) > 2),
        says=tuple(_says(found, meant, factor, place)),
        tables=(_table(found),),
        facts=facts,
    )


def _claims(meant: str | None, place: str, off_policy: bool) -> tuple[str, ...]:
    if place == "reward":
        return ("B8", "B9")
    own = {REVERSE: ("B5", "B11"), FORWARD: ("B4", "B12", "B13"), "none": ("B7", "B15")}
    return (*own.get(str(meant), ("B4", "B5")), *(("B10",) if off_policy else ()))


def _says(found: Sequence[Seen], meant: str | None, factor: float, place: str) -> Iterator[str]:
    if meant == "none":
        yield (
            f"On-policy the divergence in the {place} has no expected gradient at all: nothing "
            "holds the policy to the reference."
        )
    elif meant is None:
        cos = found[0].against(REVERSE)[0], found[0].against(FORWARD)[0]
        yield (
            f"It follows neither gradient: cosine {cos[0]:.4f} with ∇{REVERSE}, {cos[1]:.4f} with "
            f"∇{FORWARD}."
        )
    else:
        size = "" if abs(abs(factor) - 1) < TOLERANCE else f"{abs(factor):.4g}·"
        away = "" if factor > 0 else "away from the reference, "
        yield (
            f"Its expected gradient is {away}{size}∇{meant}, exactly (on-policy, per unit of β "
            "where the function takes one)."
        )
    yield from _off_policy(found)


def _off_policy(found: Sequence[Seen]) -> Iterator[str]:
    if len(found) < 3 or found[2].size < _ZERO:
        return
    seen = found[2]
    best = max((REVERSE, FORWARD), key=lambda name: abs(seen.against(name)[0]))
    cosine, _, apart = seen.against(best)
    if apart < TOLERANCE:
        yield f"Off-policy it is ∇{best} as well, {seen.scale(best):.4g} times."
    else:
        yield (
            f"Sampled from an older policy it is the gradient of neither (nearest: ∇{best}, "
            f"cosine {cosine:.4f})."
        )


def _table(found: Sequence[Seen]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for seen in found:
        for name in (REVERSE, FORWARD):
            measured: tuple[Cell, ...] = (None, 0.0)
            if seen.size > _ZERO:
                measured = seen.against(name)[:2]
            rows.append((seen.setting.name, f"∇{name}", *measured))
    return Table(
        "Σ_a π_a·(∂loss/∂log π_a at A = 0)·∇log π_a, beside both gradients",
        ("where", "beside", "cosine", "norm ratio"), tuple(rows),
    )  # fmt: skip
