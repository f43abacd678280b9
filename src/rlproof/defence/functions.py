"""The script's own functions as the defence calls them: many at a time, with their defaults.

Shapes: M batches, B rows, T slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from rlproof.bind.advantages import AdvantagesImplementation
from rlproof.bind.implementation import UnbindableError
from rlproof.bind.loss import LossImplementation
from rlproof.bind.sandbox import Sandbox
from rlproof.bind.shaping import ShapingImplementation
from rlproof.defence.worlds import SIZES
from rlproof.faults.seen import Answer, Batch, Rows, ScriptError
from rlproof.judge.findings import FileReport, Skipped
from rlproof.judge.losses import direction
from rlproof.probe.signs import has_negative_log_probs
from rlproof.read.calls import settings
from rlproof.read.names import Slot
from rlproof.read.parameters import number
from rlproof.read.targets import Role, Script, Target

Floats = NDArray[np.float64]
Point = dict[str, str | float]
_AT_ONCE = 128
_GROUP = 8
_BOUNDS = (Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH)


class Loss:
    """One loss, to be asked for the direction in which a descent on it moves log-probs."""

    def __init__(self, function: LossImplementation, point: Point) -> None:
        self.function = function
        self.point = point
        """What the check identified; empty where it did not."""
        target = function.target
        self.name, self.line = target.name, target.node.lineno
        self.is_objective = direction(function.script, target) == "objective"
        """Whether the script maximises what this returns."""
        required = {p.slot for p in target.parameters if p.required}
        self.bounds = 0.2 if required & set(_BOUNDS) else None
        self.beta = 0.04 if Slot.BETA in required else None

    def has(self, *slots: Slot) -> bool:
        """Whether it takes all of these."""
        return self.function.target.has(*slots)

    def batch(
        self,
        new: Rows,
        advantages: Sequence[float],
        mask: list[list[int]],
        old: Rows | None = None,
        ref: Rows | None = None,
    ) -> Batch:
        """A batch with the loss's own defaults; on-policy and at the reference if not told."""
        return Batch(
            new, old or new, ref or new, [float(a) for a in advantages], mask,
            self.bounds, self.bounds, self.beta,
        )  # fmt: skip

    def answers(self, batches: Sequence[Batch]) -> list[Answer]:
        """Values and gradients, a few batches at a time so that each request is short.

        Raises:
            ScriptError: the loss raised, or gave something that is not finite.
            UnbindableError: it hung or died.
        """
        chunks = (batches[i : i + _AT_ONCE] for i in range(0, len(batches), _AT_ONCE))
        return [answer for chunk in chunks for answer in self.function.many(list(chunk))]

    def ascents(self, batches: Sequence[Batch]) -> list[Floats]:
        """Where a step moves each log-prob: −∂L/∂log π (B, T), or + for an objective."""
        sign = 1.0 if self.is_objective else -1.0
        return [sign * np.array(answer.gradient, float) for answer in self.answers(batches)]

    def pulls(self, batches: Sequence[Batch]) -> list[Floats]:
        """The part of `ascents` that the advantages cause."""
        still = [batch.but(advantages=[0.0] * len(batch.advantages)) for batch in batches]
        both = self.ascents([*batches, *still])
        return [a - b for a, b in zip(both[: len(batches)], both[len(batches) :], strict=True)]


class Advantages:
    """One advantage function; or, where the script has none, r minus the group's mean."""

    def __init__(self, function: AdvantagesImplementation | None, point: Point) -> None:
        self.function = function
        self.point = point
        self.name = function.target.name if function else None
        self.line = function.target.node.lineno if function else None

    @property
    def told(self) -> bool:
        """Whether a call says which rewards belong together."""
        if self.function is None:
            return True
        target = self.function.target
        named = target.has(Slot.GROUP_SIZE) or target.has(Slot.GROUP_IDS)
        return named or self.function.layout == "grid"

    @cached_property
    def fixed(self) -> int | None:
        """The group size that is written into it, where one of eight rewards moves no more."""
        if self.told or self.function is None:
            return None
        first = [1.0, 0.0, 0.5, 0.25, 0.75, 0.0, 1.0, 0.5]
        try:
            answers = self.function.many([first, [0.3, *first[1:]]], len(first))
        except UnbindableError:  # it hung or died; whoever asks next is told
            return None
        before, after = (a if isinstance(a, list) else [] for a in answers)
        moved = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
        reach = max(moved) + 1 if moved else 0
        return reach if 2 <= reach < len(first) and len(first) % reach == 0 else None

    @property
    def sizes(self) -> tuple[int, ...]:
        """The group sizes to enumerate."""
        return SIZES if self.fixed is None else (self.fixed,)

    @property
    def whole_batches(self) -> bool:
        """Whether it can be given several groups at once."""
        if self.function is None:
            return False
        over_batch = str(self.point.get("baseline", "")).startswith("batch")
        return self.told or self.fixed is not None or over_batch or not self.point

    def table(self, rewards: Sequence[Sequence[float]], group_size: int) -> Asked:
        """The advantages of every batch of rewards, (M, B).

        Raises:
            ScriptError: it raised on a batch where rewards differ.
            UnbindableError: it hung or died.
        """
        if self.function is None:
            grid = np.array(rewards, float).reshape(len(rewards), -1, group_size)
            own = grid - grid.mean(axis=2, keepdims=True)
            return Asked(own.reshape(len(rewards), -1), 0)
        found = self.function.many([list(map(float, row)) for row in rewards], group_size)
        return _tabled(rewards, found, group_size)


@dataclass(frozen=True, slots=True)
class Asked:
    """Advantages of many batches, and for how many of them there are none."""

    values: Floats
    failed: int
    """Batches with a group of equal rewards where it raised; they count as 0 here."""


def _tabled(
    rewards: Sequence[Sequence[float]], found: list[list[float] | ScriptError], size: int
) -> Asked:
    rows, failed = [], 0
    for batch, got in zip(rewards, found, strict=True):
        fine = isinstance(got, list) and len(got) == len(batch) and all(map(isfinite, got))
        if fine and isinstance(got, list):
            rows.append(got)
        elif any(len(set(batch[i : i + size])) == 1 for i in range(0, len(batch), size)):
            rows.append([0.0] * len(batch))
            failed += 1
        elif isinstance(got, ScriptError):
            raise got
        else:
            raise UnbindableError(f"gives no finite advantage for the rewards {list(batch)}")
    return Asked(np.array(rows, float), failed)


@dataclass(frozen=True, slots=True)
class Functions:
    """What of a script could be bound."""

    losses: tuple[Loss, ...]
    advantages: tuple[Advantages, ...]
    shaping: tuple[ShapingImplementation, ...]
    group_size: int
    """G that the script uses, or 8."""
    group_size_known: bool
    skipped: tuple[Skipped, ...]


def bind(script: Script, sandbox: Sandbox, report: FileReport) -> Functions:
    """Bind the losses, the advantage functions and the reward shaping of a script.

    Raises:
        ChildDiedError: not even its definitions could be loaded.
    """
    sandbox.load()
    negative = has_negative_log_probs(script, sandbox)
    points = {target.name: dict(target.objective) for target in report.targets}
    skipped: list[Skipped] = []

    def bound(role: Role) -> Iterator[tuple[Target, UnbindableError | None]]:
        for target in script.of(role):
            reason = sandbox.reasons.get(target.name)
            yield target, UnbindableError(reason) if reason else None

    losses, advantages, shaping = [], [], []
    random = {f.place.function for f in report.findings if f.code == "LOP012"}
    for target, reason in [
        *bound(Role.LOSS), *bound(Role.ADVANTAGES), *bound(Role.SHAPING),
    ]:  # fmt: skip
        try:
            if reason:
                raise reason
            if target.name in random:
                raise UnbindableError("it draws random numbers, so it has no one expectation")
            point = points.get(target.name, {})
            if target.role is Role.LOSS:
                losses.append(Loss(LossImplementation(script, target, sandbox, negative), point))
            elif target.role is Role.ADVANTAGES:
                function = AdvantagesImplementation(script, target, sandbox)
                advantages.append(Advantages(function, point))
            else:
                shaping.append(ShapingImplementation(script, target, sandbox))
        except UnbindableError as error:
            skipped.append(Skipped(f"running {target.name}", str(error)))
    size = _group_size(script)
    return Functions(
        tuple(losses), tuple(advantages), tuple(shaping), size or _GROUP, size is not None,
        tuple(skipped),
    )  # fmt: skip


def _group_size(script: Script) -> int | None:
    """The group size that calls of the script set, or else its defaults, if they agree on one."""
    parameters = [
        (target, parameter)
        for role in (Role.ADVANTAGES, Role.ROLLOUT)
        for target in script.of(role)
        if (parameter := target.parameter(Slot.GROUP_SIZE))
    ]
    called = {s.value for target, p in parameters for s in settings(script, target, p)}
    defaults = {value for _, p in parameters if (value := number(p.default)) is not None}
    sensible = {int(size) for size in called or defaults if 2 <= size <= 1024}
    return sensible.pop() if len(sensible) == 1 else None
