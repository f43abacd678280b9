"""The loop recorder: a training function run briefly, its parts' calls sorted into rollouts.

A *rollout* is what happens between one sampling of completions and the next; a *burst* is a
run of loss calls with the same old log-probs and data, as a numeric gradient makes them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rlproof.bind.implementation import UnbindableError
from rlproof.bind.sandbox import ChildDiedError, Sandbox
from rlproof.faults.seen import ScriptError
from rlproof.read.names import Slot, objective_slot, words
from rlproof.read.targets import Parameter, Role, Script, Target

_STEPS = {"steps", "iterations", "iters", "updates", "episodes", "rollouts"}
_EPOCHS = {"epochs", "epoch", "mu"}
_RATE = {"lr", "learning_rate", "alpha", "step_size"}
_PARTS = (Role.LOSS, Role.ADVANTAGES, Role.LOG_PROBS, Role.CLIP_FRACTION, Role.ROLLOUT)
_LIMIT = 3000
PROBE_CLIP = 0.05
"""A clip range no default uses: what is still measured at another one was not given it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call of a part: arguments by slot or name, values as nested lists."""

    role: Role
    name: str
    line: int
    args: dict[str, Any]
    result: Any
    keys: dict[str, int | None]
    """Equal keys mean equal values, without comparing them."""
    origin: dict[str, int]
    """Arguments that are the very object an earlier call returned, with that call's number."""


@dataclass(slots=True)
class Rollout:
    """The calls from one sampling to the next."""

    epochs: int | None = None
    calls: list[Call] = field(default_factory=list)

    def of(self, role: Role) -> list[Call]:
        """The calls of one part."""
        return [call for call in self.calls if call.role is role]

    def bursts(self) -> list[Call]:
        """The first loss call of every burst: one per update.

        Where nothing but the loss is called between updates, the number of epochs tells how
        many bursts one stretch of loss calls holds.
        """
        stretches = self._stretches()
        if len(stretches) == 1 and self.epochs and len(stretches[0]) % self.epochs == 0:
            size = len(stretches[0]) // self.epochs
            return stretches[0][::size]
        return [stretch[0] for stretch in stretches]

    def _stretches(self) -> list[list[Call]]:
        """Loss calls on the same data with nothing but log-probs between them."""
        stretches: list[list[Call]] = []
        previous: Call | None = None
        for call in self.calls:
            if call.role is Role.LOSS:
                if previous is None or not _same_data(previous, call):
                    stretches.append([])
                stretches[-1].append(call)
                previous = call
            elif call.role is not Role.LOG_PROBS:
                previous = None
        return stretches


def _same_data(one: Call, other: Call) -> bool:
    slots = (Slot.OLD, Slot.ADVANTAGES, Slot.MASK)
    return all(one.keys.get(slot) == other.keys.get(slot) for slot in slots)


@dataclass(frozen=True, slots=True)
class Recording:
    """One run: its settings, its rollouts, all calls, and the error that ended it."""

    settings: dict[str, Any]
    rollouts: list[Rollout]
    calls: list[Call]
    error: ScriptError | None


@dataclass(frozen=True, slots=True)
class LoopObservation:
    """The recordings of one training function."""

    default: Recording
    epochs: Recording | None
    """More epochs per rollout, and a clip range that nothing else uses."""
    slow: Recording | None
    """A hundredth of the learning rate, so that first-order change decides the direction."""
    prompts: Recording | None
    """Other prompts than the default ones."""


class Recorder:
    """Runs one training function of a script with different settings."""

    def __init__(self, script: Script, target: Target, sandbox: Sandbox) -> None:
        self.script = script
        self.target = target
        self.sandbox = sandbox
        self.parts = {t.name: t for t in script.parts(*_PARTS) if t.origin is None}
        unknown = [p.name for p in target.parameters if p.required and not _knob(p, _STEPS)]
        if unknown:
            names = ", ".join(f"`{name}`" for name in unknown)
            raise UnbindableError(f"needs {names}, which have no default, so it was not run")
        if not self.parts:
            raise UnbindableError("calls no recognised part that could be recorded")

    def observe(self) -> LoopObservation:
        """Make all recordings.

        Raises:
            UnbindableError: the default run hung or died.
        """
        base = self._steps(3)
        return LoopObservation(
            default=self._record(base),
            epochs=self._optional(base | self._epochs() | self._clip(), base),
            slow=self._optional(self._steps(2) | self._epochs() | self._rate(), None),
            prompts=self._optional(self._steps(1) | self._prompts(), self._steps(1)),
        )

    def _optional(
        self, settings: dict[str, Any], same_as: dict[str, Any] | None
    ) -> Recording | None:
        """A further run, unless it would say nothing new or does not finish."""
        if settings == same_as or (same_as is None and not self._rate()):
            return None
        try:
            return self._record(settings)
        except UnbindableError:
            return None

    def _record(self, settings: dict[str, Any]) -> Recording:
        request = {
            "function": self.target.name,
            "kwargs": settings,
            "wrap": sorted(self.parts),
            "limit": _LIMIT,
        }
        try:
            answer = self.sandbox.record(request)
        except ChildDiedError as error:
            raise UnbindableError(str(error)) from None
        calls = [self._call(raw, answer["values"]) for raw in answer["calls"]]
        raised = answer.get("error") or answer.get("refused")
        failure = raised and ScriptError(
            raised["type"],
            raised["message"],
            raised.get("line"),
            raised.get("function"),
            raised.get("own", False) and answer["ended"] == "raised",
        )
        return Recording(
            settings, list(_rollouts(calls, self._epochs_of(settings))), calls, failure
        )

    def _epochs_of(self, settings: dict[str, Any]) -> int | None:
        """How many updates a rollout gets in a run with these settings, if that is a knob."""
        for parameter in self.target.parameters:
            if _knob(parameter, _EPOCHS):
                count = settings.get(parameter.name, _number(parameter))
                return int(count) or None
        return None

    def _call(self, raw: dict[str, Any], values: list[Any]) -> Call:
        target = self.parts[raw["name"]]
        slots: dict[str, str] = {p.name: p.slot or p.name for p in target.parameters}
        keys = {slots.get(name, name): key for name, key in raw.get("args", {}).items()}
        args = {slot: values[key] for slot, key in keys.items() if key is not None}
        result = raw.get("result")
        origin = {slots.get(name, name): n for name, n in raw.get("from", {}).items()}
        got = None if result is None else values[result]
        return Call(target.role, target.name, raw["line"], args, got, keys, origin)

    def _steps(self, count: int) -> dict[str, Any]:
        return {p.name: count for p in self.target.parameters if _knob(p, _STEPS)}

    def _epochs(self) -> dict[str, Any]:
        return {
            p.name: max(3, _number(p))
            for p in self.target.parameters
            if _knob(p, _EPOCHS) and not _knob(p, _STEPS)
        }

    def _rate(self) -> dict[str, Any]:
        return {
            p.name: _number(p) / 100
            for p in self.target.parameters
            if p.name in _RATE and _number(p)
        }

    def _clip(self) -> dict[str, Any]:
        """The probe's clip range, under the name that the training function or its loss has."""
        own = [p.name for p in self.target.parameters if objective_slot(p.name) is Slot.CLIP]
        if not own and self.target.node.args.kwarg:
            losses = [t for t in self.parts.values() if t.role is Role.LOSS]
            clips = (loss.parameter(Slot.CLIP) for loss in losses)
            own = [clip.name for clip in clips if clip][:1]
        return dict.fromkeys(own, PROBE_CLIP)

    def _prompts(self) -> dict[str, Any]:
        return {
            p.name: [5]
            for p in self.target.parameters
            if p.name in {"prompts", "prompt_ids"} and _is_prompts(p.default)
        }


def _rollouts(calls: list[Call], epochs: int | None) -> Iterator[Rollout]:
    """A new rollout starts at the first sampling or advantages after a loss call."""
    current = Rollout(epochs)
    trained = False
    for call in calls:
        if trained and call.role in (Role.ROLLOUT, Role.ADVANTAGES):
            yield current
            current, trained = Rollout(epochs), False
        current.calls.append(call)
        trained = trained or call.role is Role.LOSS
    if current.calls:
        yield current


def _knob(parameter: Parameter, names: set[str]) -> bool:
    parts = words(parameter.name)
    return bool(parts) and parts[-1] in names and "size" not in parts


def _number(parameter: Parameter) -> float:
    default = parameter.default
    value = default.value if isinstance(default, ast.Constant) else 0
    return value if isinstance(value, int | float) else 0


def _is_prompts(default: ast.expr | None) -> bool:
    return isinstance(default, ast.Tuple | ast.List) and all(
        isinstance(item, ast.Constant) and isinstance(item.value, int) for item in default.elts
    )
