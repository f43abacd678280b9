"""The defence of a script: bind its functions, measure them, say what they optimise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from rlproof.bind.implementation import UnbindableError
from rlproof.bind.sandbox import DEFAULT_SECONDS, ChildDiedError, Sandbox
from rlproof.defence import (
    clip,
    direction,
    divergence,
    lengths,
    optimises,
    recipes,
    reward,
    statement,
)
from rlproof.defence.functions import Advantages, Functions, Loss, bind
from rlproof.defence.model import Compared, Objection, Optimised, Part, ScriptDefence
from rlproof.defence.violated import VIOLATED
from rlproof.defence.worlds import PROBABILITIES
from rlproof.faults.seen import ScriptError
from rlproof.judge.check import check
from rlproof.judge.declared import recipe_of
from rlproof.judge.findings import FileReport, Skipped
from rlproof.read.names import Slot
from rlproof.read.targets import Script

T = TypeVar("T")


def defend_script(
    script: Script,
    *,
    seconds: float = DEFAULT_SECONDS,
    objective: str | None = None,
    default: str | None = None,
) -> ScriptDefence:
    """Check a script, then run the claims that apply on its own functions.

    Args:
        script: what `rlproof.read` found.
        seconds: limit for each request to the script's functions.
        objective: the declared recipe; the script's own comment comes second.
        default: the recipe of a script that declares none, such as the project's.

    Raises:
        ConfigError: the declared recipe is unknown.
    """
    report = check(script, seconds=seconds, objective=objective, default=default, honour=False)
    declared = recipe_of(script, objective, default)
    with Sandbox(script.source, seconds) as sandbox:
        try:
            functions = bind(script, sandbox, report)
        except ChildDiedError as error:
            reason = Skipped("the defence", f"loading the definitions: {error}")
            return _assembled(report, _Defence(report), (), (*report.skipped, reason))
        work = _Defence(report)
        optimised = work.run(functions)
    compared = tuple(_compared(report, functions, work, declared))
    skipped = (*report.skipped, *functions.skipped, *work.skipped)
    return _assembled(report, work, optimised, skipped, compared)


def _assembled(
    report: FileReport,
    work: _Defence,
    optimised: tuple[Optimised, ...],
    skipped: tuple[Skipped, ...],
    compared: tuple[Compared, ...] = (),
) -> ScriptDefence:
    objections = tuple(Objection(f, VIOLATED.get(f.code, ())) for f in report.findings)
    once = tuple(dict.fromkeys(skipped))
    return ScriptDefence(report, optimised, tuple(work.parts), compared, objections, once)


@dataclass
class _Defence:
    """The parts found so far, and what could not be measured."""

    report: FileReport
    parts: list[Part] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    rewards: dict[str | None, reward.RewardSeen] = field(default_factory=dict)
    directions: dict[str | None, direction.DirectionSeen] = field(default_factory=dict)
    in_reward: list[divergence.Seen] | None = None

    def run(self, functions: Functions) -> tuple[Optimised, ...]:
        """Measure everything; each loss is paired with the first advantage function."""
        for advantages in functions.advantages:
            self._advantages(advantages, _size(advantages, functions))
        for shaping in functions.shaping:
            target = shaping.target
            seen = self._try(f"the penalty in {target.name}",
                             partial(divergence.in_reward, shaping))  # fmt: skip
            if seen is not None:
                self.in_reward = seen
                self.parts.append(divergence.part(target.name, target.node.lineno, seen, "reward"))
        given = functions.advantages[0] if functions.advantages else Advantages(None, {})
        found = [self._loss(loss, given, functions) for loss in functions.losses]
        if not functions.losses:
            self.skipped.append(Skipped("what its loss does", "no loss could be called"))
            found += [*self._without_loss(given, functions)]
        return tuple(found)

    def _without_loss(self, given: Advantages, functions: Functions) -> Iterator[Optimised]:
        if seen := self.rewards.get(given.name):
            pointed = self.directions.get(given.name)
            yield statement.optimised(
                None, given, self._everything(given, functions,
                                              optimises.without_loss(seen, pointed))
            )  # fmt: skip

    def _everything(
        self, given: Advantages, functions: Functions, pipeline: optimises.PipelineSeen | None
    ) -> statement.Everything:
        codes = [f.code for f in self.report.findings if str(f.severity) == "error"]
        return statement.Everything(
            size=_size(given, functions),
            size_known=functions.group_size_known or given.fixed is not None,
            pipeline=pipeline,
            reward=self.rewards.get(given.name),
            direction=self.directions.get(given.name),
            in_reward=self.in_reward,
            loop=tuple(dict.fromkeys(code for code in codes if code.startswith("LOP"))),
        )

    def _try(self, what: str, measure: Callable[[], T]) -> T | None:
        try:
            return measure()
        except (ScriptError, UnbindableError) as error:
            self.skipped.append(Skipped(what, str(error)))
        return None

    def _advantages(self, function: Advantages, size: int) -> None:
        name = function.name
        seen = self._try(f"the prompt weight of {name}", lambda: reward.measure(function))
        if seen is not None:
            self.rewards[name] = seen
            self.parts.append(reward.part(function, seen, size))
        pointed = self._try(f"graded rewards of {name}",
                              lambda: (direction.measure(function),))  # fmt: skip
        if pointed is not None:
            (found,) = pointed
            if found is not None:
                self.directions[name] = found
            self.parts.append(direction.part(function, found))

    def _loss(self, loss: Loss, given: Advantages, functions: Functions) -> Optimised:
        name = loss.name
        rows = self._try(f"the clip table of {name}", lambda: _clip_part(loss))
        pulled = self._divergence(loss)
        weights = self._try(f"the length weights of {name}", lambda: (lengths.measure(loss),))
        stopping = self._try(f"the direction of {name} where the policy stops",
                             lambda: (lengths.stopping(loss, given),))  # fmt: skip
        pipeline = self._try(f"the expected step of {name}",
                             lambda: optimises.measure(loss, given))  # fmt: skip
        if rows:
            self.parts.append(rows[0])
        if pulled:
            self.parts.append(divergence.part(name, loss.line, pulled[0], "loss"))
        if weights and weights[0]:
            self.parts.append(lengths.part(loss, weights[0]))
        elif weights:
            self.skipped.append(Skipped(f"the length weights of {name}", "it takes no mask"))
        if stopping and stopping[0]:
            self.parts.append(lengths.stopping_part(loss, stopping[0]))
        everything = replace(
            self._everything(given, functions, pipeline),
            divergence=pulled[0] if pulled else None,
            beta=pulled[1] if pulled else None,
            lengths=weights[0] if weights else None,
            stopping=stopping[0] if stopping else None,
            flat=rows[1] if rows else None,
        )
        return statement.optimised(loss, given, everything)

    def _divergence(self, loss: Loss) -> tuple[list[divergence.Seen], float | None] | None:
        what = f"the divergence of {loss.name}"
        if not loss.has(Slot.REF):
            self.skipped.append(Skipped(what, "it takes no reference log-probs"))
            return None
        if loss.point.get("ratio_to") == "reference":
            self.skipped.append(Skipped(what, "the reference stands for the old policy in it"))
            return None
        return self._try(what, lambda: divergence.measure(loss))


def _size(advantages: Advantages, functions: Functions) -> int:
    """The group size to speak of."""
    return advantages.fixed or functions.group_size


def _clip_part(loss: Loss) -> tuple[Part, tuple[str, ...]]:
    rows = clip.measure(loss)
    return clip.part(loss, rows), tuple(clip.flat_places(rows))


def _compared(
    report: FileReport, functions: Functions, work: _Defence, declared: str | None
) -> Iterator[Compared]:
    """The first loss with the first advantage function, beside the recipe."""
    losses = [loss.point for loss in functions.losses if loss.point]
    given = functions.advantages[0] if functions.advantages else None
    point = {**(given.point if given else {}), **(losses[0] if losses else {})}
    named = next((t.recipe for t in report.targets if t.recipe), None)
    name = declared or named or recipes.nearest(point)
    if name is None:
        return
    size = _size(given, functions) if given else functions.group_size
    seen = work.rewards.get(given.name) if given else None
    yield recipes.compare(name, declared is not None, point, size, _two_weights(seen, size))


def _two_weights(seen: reward.RewardSeen | None, size: int) -> tuple[float, float] | None:
    """The weights of prompts with p = .1 and p = .5 at group size G, where they are known."""
    if seen is None:
        return None
    if seen.shape and seen.shape.known:
        found = seen.shape.at(size, 0.1), seen.shape.at(size, 0.5)
        return None if found[0] is None or found[1] is None else (found[0], found[1])
    row = seen.weights.get(size)
    return (row[PROBABILITIES.index(0.1)], row[PROBABILITIES.index(0.5)]) if row else None
