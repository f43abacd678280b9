"""One script from source to report: bind, probe, judge every target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, TypeVar

from rlproof.bind.advantages import AdvantagesImplementation
from rlproof.bind.children import Child
from rlproof.bind.extraction import ExtractionImplementation
from rlproof.bind.gauge import GAUGES, GaugeImplementation
from rlproof.bind.implementation import Implementation, UnbindableError
from rlproof.bind.logprobs import LogProbsImplementation
from rlproof.bind.loss import LossImplementation
from rlproof.bind.metric import MetricImplementation
from rlproof.bind.outlined import functions
from rlproof.bind.sandbox import DEFAULT_SECONDS, ChildDiedError, Sandbox
from rlproof.bind.shaping import ShapingImplementation
from rlproof.faults.model import Severity
from rlproof.faults.seen import (
    AdvantagesSeen,
    Batch,
    ExtractionSeen,
    GaugeSeen,
    LogProbsSeen,
    LoopSeen,
    LossSeen,
    MetricSeen,
    Place,
    ScriptError,
    Seen,
    ShapingSeen,
)
from rlproof.judge import (
    advantages,
    alike,
    bonus,
    bounds,
    declared,
    differences,
    extraction,
    logprobs,
    loops,
    losses,
    metrics,
    rows,
    shapes,
    shaping,
    source_loop,
)
from rlproof.judge.axes import LOSS_AXES as AXES
from rlproof.judge.axes import is_published
from rlproof.judge.findings import FileReport, Finding, Skipped, TargetReport, detect, once
from rlproof.judge.identify import TOLERANCE
from rlproof.judge.ignored import honoured
from rlproof.judge.pairs import partners
from rlproof.judge.source_only import source_findings, unread_lengths
from rlproof.probe.loop import Recorder
from rlproof.probe.loss import everything
from rlproof.probe.signs import has_negative_log_probs
from rlproof.read.anatomy import declares_unused, mutation, random_draw
from rlproof.read.gauges import gauge_spots, speaks_of_tools
from rlproof.read.landmarks import clipping, comparing, definition
from rlproof.read.names import Slot
from rlproof.read.targets import Role, Script, Target
from rlproof.read.tokens import gauge_landmarks, shaping_landmarks
from rlproof.space import recipes

S = TypeVar("S")
_BOUNDS = (Slot.CLIP_LOW, Slot.CLIP_HIGH)
_SEEDS = 8  # under which a loss must answer the same


def check(
    script: Script,
    *,
    run: bool = True,
    seconds: float = DEFAULT_SECONDS,
    objective: str | None = None,
    default: str | None = None,
    examine: Callable[[Seen], None] | None = None,
    begin: Callable[[], Child] | None = None,
    honour: bool = True,
) -> FileReport:
    """Judge one script.

    Args:
        script: what `rlproof.read` found.
        run: False looks at the source only.
        seconds: limit for each function of the script.
        objective: the declared recipe; the script's own `# rlproof: objective=` comes second.
        default: the recipe of a script that declares none, such as the project's.
        examine: is given what was seen while the script's functions can still be called.
        begin: starts a child process; a warm one may.
        honour: set findings apart that the script's own comments ignore.

    Raises:
        ConfigError: the declared recipe is unknown.
    """
    recipe = declared.recipe_of(script, objective, default)
    if not script.targets:  # nothing to run: a loop may be written out at the top level
        report = _source_only(script, {})
    elif not run:
        report = _source_only(script, {t.name: "--no-run was given" for t in script.targets})
    else:
        with Sandbox(script.source, seconds, functions(script), begin) as sandbox:
            report = _Check(script, sandbox, recipe, examine).report()
    if honour:
        report = honoured(script, report, run=run)
    return report.of_cells(script.source.cells)


def _source_only(script: Script, reasons: Mapping[str, str]) -> FileReport:
    read = source_loop.judge(script)
    found = [*detect(Seen(source=read.sightings)), *source_findings(script, set(reasons))]
    findings = [replace(finding, by_reading=True) for finding in found]
    return FileReport(
        script.source.path,
        tuple(TargetReport(t.role, t.name, t.node.lineno) for t in script.targets),
        tuple(sorted(findings, key=lambda f: (f.place.line, f.place.end_line, f.code))),
        (*(Skipped(f"running {name}", reason) for name, reason in reasons.items()), *read.skipped),
        read=len(read.loops),
    )


class _Check:
    """The state of one check: what was seen so far, and what could not be."""

    def __init__(
        self,
        script: Script,
        sandbox: Sandbox,
        recipe: str | None,
        examine: Callable[[Seen], None] | None = None,
    ) -> None:
        self.script = script
        self.examine = examine
        self.sandbox = sandbox
        self.recipe = recipe
        self.reasons: dict[str, str] = {}
        self.notes = [Skipped(name, reason) for name, reason in script.doubts]
        self.other: list[tuple[Place, dict[str, Any]]] = []
        self.negative = False
        self.unknown: set[str] = set()
        self.unnamed: dict[str, Skipped] = {}
        self.shaped: dict[str, dict[str, str | float]] = {}
        self.read = 0

    def report(self) -> FileReport:
        try:
            self.sandbox.load()
        except ChildDiedError as error:
            reason = f"loading the definitions: {error}"
            return _source_only(self.script, {t.name: reason for t in self.script.targets})
        self.negative = has_negative_log_probs(self.script, self.sandbox)
        seen = Seen(
            losses=self._each(Role.LOSS, self._loss),
            advantages=self._each(Role.ADVANTAGES, self._advantages),
            metrics=self._each(Role.CLIP_FRACTION, self._metric),
            log_probs=self._each(Role.LOG_PROBS, self._log_probs),
            extractions=self._each(Role.LOG_PROBS, self._extraction),
            shaping=self._each(Role.SHAPING, self._shaping),
            gauges=tuple(g for role in GAUGES for g in self._each(role, self._gauge)),
        )
        self._each(Role.NUMERIC_GRADIENT, self._gradient)
        self.other += bonus.judge(self.script, self.sandbox)
        seen = replace(seen, other=tuple(self.other))
        first = detect(seen)
        blamed = {f.place.function for f in first}
        self.notes += [s for name, s in self.unnamed.items() if name not in blamed]
        broken = any(f.severity is Severity.ERROR for f in first)
        seen = replace(seen, loops=self._each(Role.TRAIN, lambda t: self._loop(t, broken)))
        read = source_loop.judge(self.script, frozenset(loop.function for loop in seen.loops))
        self.notes += read.skipped
        self.read = len(read.loops)
        seen = replace(seen, source=read.sightings)
        findings = once([*detect(seen), *source_findings(self.script, set(self.reasons))])
        shown = detect(replace(seen, source=()))
        run = {(f.code, f.place) for f in shown}
        findings = [
            f if f in shown else replace(f, by_reading=True)
            for f in findings
            if f in shown or (f.code, f.place) not in run
        ]
        if self.examine is not None:
            self.examine(seen)
        return self._assemble(seen, findings)

    def _assemble(self, seen: Seen, findings: list[Finding]) -> FileReport:
        skipped = [Skipped(f"running {n}", r) for n, r in self.reasons.items()] + self.notes
        judged = {loss.function for loss in seen.losses} | {a.function for a in seen.advantages}
        judged |= (
            set(self.shaped)
            | {m.function for m in seen.metrics}
            | {f.function for f in seen.log_probs}
            | {f.function for f in seen.extractions}
            | {g.function for g in seen.gauges}
            | {loop.function for loop in seen.loops}
        )
        points = {s.function: dict(s.point) for s in seen.losses}
        points |= {s.function: dict(s.point) for s in seen.advantages}
        points |= {s.function: dict(s.point) for s in seen.log_probs}
        points |= {s.function: dict(s.point) for s in seen.extractions}
        points |= self.shaped
        of_advantages = {a.function: dict(a.point) for a in seen.advantages}
        used = partners(self.script, [s.function for s in seen.losses], of_advantages)
        shared = {loss: of_advantages[name] for loss, name in used.items()}
        return FileReport(
            self.script.source.path,
            tuple(
                self._target(t, points.get(t.name, {}), shared.get(t.name, {}))
                for t in self.script.targets
            ),
            tuple(sorted(findings, key=lambda f: (f.place.line, f.place.end_line, f.code))),
            tuple(skipped),
            len(judged),
            self.read,
        )

    def _target(
        self, target: Target, point: dict[str, str | float], shared: dict[str, str | float]
    ) -> TargetReport:
        known = target.role is Role.LOSS and target.name not in self.unknown
        healthy = all(is_published(axis, str(point[axis])) for axis in AXES if axis in point)
        named = known and healthy and "ratio_to" not in point
        recipe = recipes.name_of({**shared, **point}) if named else None
        return TargetReport(target.role, target.name, target.node.lineno, point, recipe)

    def _each(self, role: Role, judge: Callable[[Target], S | None]) -> tuple[S, ...]:
        seen: list[S] = []
        for target in self.script.of(role):
            reason = self.sandbox.reasons.get(target.entry)
            reason = (target.origin.reason if target.origin else "") or reason
            try:
                if reason:
                    raise UnbindableError(reason)
                result = judge(target)
            except UnbindableError as error:
                self.reasons[target.name] = str(error)
            except ScriptError as error:
                self.reasons[target.name] = f"on a probe: {error}"
            else:
                if result is not None:
                    seen.append(result)
        return tuple(seen)

    def _loss(self, target: Target) -> LossSeen | None:
        try:
            loss = LossImplementation(self.script, target, self.sandbox, self.negative)
        except UnbindableError:
            self.other += shapes.judge(self.script, target, self.sandbox, self.negative)
            raise
        self._side_effects(loss)
        answers = loss.raws(everything(), range(_SEEDS))
        values = [a["value"] for a in answers if "error" not in a and isfinite(a["value"])]
        if len(values) == len(answers) and len(set(values)) > 1:
            other = next(value for value in values if value != values[0])
            where = random_draw(target) or definition(target)
            self.other.append((where, {"random": [values[0], other]}))
            reason = "it draws random numbers, so its values can't be judged"
            self.notes.append(Skipped(f"identifying {target.name}", reason))
            return None
        self._empty_mask(loss)
        self.other += [*rows.judge(loss), *bounds.judge(loss)]
        seen = losses.judge(loss)
        self._unknown(seen)
        self._width(seen)
        facts = {**seen.facts, **declared.of_loss(self.recipe, target, seen)}
        point = {**seen.point, **alike.indistinguishable(seen.point, loss.masked)}
        return replace(seen, point=point, facts=facts)

    def _unknown(self, seen: LossSeen) -> None:
        axes = {"surrogate", "divergence", "aggregation", "level"} - set(seen.point)
        residual = float(seen.facts["residual"])
        if axes:
            reason = f"no known value reproduces its {', '.join(sorted(axes))}"
            reason += f" ({seen.facts['nearest']})" if seen.facts.get("nearest") else ""
        elif residual > TOLERANCE and not seen.facts["divergence_on_padding"]:
            reason = f"each coordinate fits alone; together they leave a residual of {residual:.2g}"
        else:
            return
        self.unknown.add(seen.function)
        self.notes.append(Skipped(f"identifying {seen.function}", f"unknown objective: {reason}"))

    def _width(self, seen: LossSeen) -> None:
        """A divisor that is the width only because a setting was left out: said, no fault."""
        setting = seen.facts["width_instead_of"]
        if setting and seen.point.get("aggregation") == "all-slots":
            reason = f"without `{setting}` it is the padded width: constant only if that is fixed"
            self.notes.append(Skipped(f"the divisor of {seen.function}", reason))

    def _empty_mask(self, loss: LossImplementation) -> None:
        """A batch without a real token: a note where it raises or gives NaN."""
        if not loss.target.has(Slot.MASK):
            return
        empty = Batch([[-1.0]], [[-1.0]], [[-1.0]], [1.0], [[0]])
        answer = loss.raw(empty)
        value, error = answer.get("value"), answer.get("error")
        if error or value != value:
            line = error.get("line") if error else None
            where = Place(loss.target.name, line, line) if line else definition(loss.target)
            got = error["type"] if error else "nan"
            self.other.append((where, {"raises": ("a batch without a real token", got)}))

    def _side_effects(self, function: Implementation) -> None:
        if function.mutated:
            where = mutation(function.target, function.mutated) or definition(function.target)
            self.other.append((where, {"mutated": sorted(function.mutated)}))

    def _advantages(self, target: Target) -> AdvantagesSeen:
        function = AdvantagesImplementation(self.script, target, self.sandbox)
        seen = advantages.judge(function)
        self._side_effects(function)
        single = seen.facts["single"]
        if single.error and not seen.facts["equal_failures"]:
            self.other.append(
                (seen.where["division"], {"raises": ("a group of one member", single.error.kind)})
            )
        if not seen.point:
            reason = "unknown formula: no known baseline and scale reproduce its values"
            self.notes.append(Skipped(f"identifying {target.name}", reason))
        facts = {**seen.facts, **declared.of_advantages(self.recipe, seen)}
        return replace(seen, facts=facts)

    def _metric(self, target: Target) -> MetricSeen:
        function = MetricImplementation(self.script, target, self.sandbox)
        self._side_effects(function)
        slots = frozenset(
            "clip range" if "clip range" in p.slot else str(p.slot)
            for p in target.parameters
            if p.slot
        )
        where = {
            "function": definition(target),
            "clip": clipping(target),
            "test": comparing(target),
        }
        bounds = {str(p.slot) for p in target.parameters if p.slot in _BOUNDS}
        known = (Slot.NEW, Slot.OLD, Slot.MASK, Slot.ADVANTAGES, Slot.CLIP, *_BOUNDS)
        names = {p.name for p in target.parameters}
        complete = all(p.slot in known for p in target.parameters)
        complete = complete and not declares_unused(target, names)
        if reason := metrics.unknown(function):
            self.unnamed[target.name] = Skipped(f"identifying {target.name}", reason)
        return MetricSeen(target.name, slots, where, function.run, frozenset(bounds), complete)

    def _shaping(self, target: Target) -> ShapingSeen:
        function = ShapingImplementation(self.script, target, self.sandbox)
        point = self.shaped[target.name] = shaping.judge(function)
        self._side_effects(function)
        where = shaping_landmarks(target)
        slots = frozenset(str(p.slot) for p in target.parameters if p.slot)
        return ShapingSeen(target.name, where, point, function.run, slots)

    def _log_probs(self, target: Target) -> LogProbsSeen | None:
        if target.has(Slot.MODEL):
            return None
        function = LogProbsImplementation(self.script, target, self.sandbox)
        seen = logprobs.judge(function)
        self._side_effects(function)
        return seen

    def _extraction(self, target: Target) -> ExtractionSeen | None:
        """A function that asks a model: judged with the one that stands in for it."""
        if not target.has(Slot.MODEL):
            return None
        function = ExtractionImplementation(self.script, target, self.sandbox)
        seen = extraction.judge(function)
        # taking a key out of a dictionary that was made for the call harms nobody
        function.mutated -= {p.name for p in target.parameters if p.slot is Slot.TENSORS}
        self._side_effects(function)
        if seen is not None and seen.facts.get("lengths"):
            said = next(unread_lengths(self.script, target), None)
            where = said.place if said else definition(target)
            self.other.append((where, {"lengths": seen.facts["lengths"], "unread": said}))
        if seen is None:
            reason = "unknown formula: what it returns is none of the known readings of the model"
            self.notes.append(Skipped(f"identifying {target.name}", reason))
        return seen

    def _gauge(self, target: Target) -> GaugeSeen | None:
        if self.negative and target.role is not Role.COMPLETION_MASK:
            return None  # which of them mean negative log-probs can't be told
        if target.role is Role.RETURNS and not speaks_of_tools(self.script.source.text):
            return None  # nothing is masked but the end of rows
        function = GaugeImplementation(self.script, target, self.sandbox)
        slots = frozenset(str(p.slot) for p in target.parameters if p.slot)
        where = {**gauge_spots(target), **gauge_landmarks(target)}
        return GaugeSeen(target.role, target.name, slots, where, function.run, target.doc)

    def _gradient(self, target: Target) -> None:
        """Whether a numeric gradient is one, and puts parameters back when the function raises."""
        function, theta = target.parameter(Slot.FUNCTION), target.parameter(Slot.THETA)
        if (
            function is None
            or theta is None
            or any(p.required and not p.slot for p in target.parameters)
        ):
            return
        for kind in differences.KINDS:
            arguments = {function.name: ["function", kind], theta.name: ["list", differences.THETA]}
            try:
                answer = self.sandbox.state({"function": target.name, "arguments": arguments})
            except ChildDiedError as error:
                raise UnbindableError(str(error)) from None
            self.other += differences.facts(target, theta.name, answer)

    def _loop(self, target: Target, broken: bool) -> LoopSeen:
        seen = loops.judge(Recorder(self.script, target, self.sandbox))
        error = seen.facts["error"]
        explained = broken or (error is not None and not error.own)
        if error and explained:
            hint = "; repair the errors above first" if broken else ""
            self.notes.append(Skipped(f"the end of {target.name}", f"stopped with {error}{hint}"))
        return replace(seen, facts={**seen.facts, "error_explained": explained})
