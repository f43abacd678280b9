"""Run all rules over one log, record file or dump, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlproof.errors import NothingToCheckError
from rlproof.faults.model import Severity
from rlproof.watch.dump import MOST, DumpStep, dump_step
from rlproof.watch.facts import Facts
from rlproof.watch.readers.items import Item, MetricsRow, RecordedStep, Sample, Source, Unread
from rlproof.watch.row import Row, Translator
from rlproof.watch.rules.model import Alarm, Excusing, Rule, Speaking, Watcher
from rlproof.watch.rules.registry import rules
from rlproof.watch.seen import IDS, StepSeen, unpack
from rlproof.watch.vocabulary import Reading

_UNITS = {
    "reward-mean": "reward", "zero-variance-groups": "share of groups",
    "truncated": "share of completions",
}  # fmt: skip
_UNREAD = 5
"""Lines that could not be read, of which this many are named."""


@dataclass(frozen=True, slots=True)
class Found:
    """One alarm of one rule."""

    rule: Rule
    alarm: Alarm

    @property
    def severity(self) -> Severity:
        """The rule's own, unless what was seen says otherwise."""
        return self.alarm.severity or self.rule.severity

    @property
    def faults(self) -> tuple[str, ...]:
        """Faults of the catalogue that give this."""
        return self.alarm.faults or self.rule.faults


@dataclass(frozen=True, slots=True)
class Inspection:
    """What one path shows, so far."""

    path: str
    kind: str
    framework: str
    rows: int
    steps: int
    completions: int
    findings: tuple[Found, ...]
    normal: tuple[Found, ...]
    said: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    """Checks that could not run, and why."""

    @property
    def exit_code(self) -> int:
        """As for `rlproof check`: 5 where there was nothing to check."""
        if not self.rows and not self.steps and not self.completions:
            return NothingToCheckError.exit_code
        bad = any(found.severity is not Severity.NOTE for found in self.findings)
        return 1 if bad else 0


@dataclass
class Inspector:
    """The rules over one source."""

    path: str
    source: Source
    facts: Facts = field(default_factory=Facts)
    rows: int = 0
    """Rows of metrics with something known in them."""
    steps: int = 0
    completions: int = 0
    _unread: list[str] = field(default_factory=list)
    _unread_count: int = 0
    _problems: dict[str, None] = field(default_factory=dict)
    _shared: dict[str, Any] = field(default_factory=dict)
    _recorded: set[str] = field(default_factory=set)
    _held: list[Sample] = field(default_factory=list)
    _part: int = 0

    def __post_init__(self) -> None:
        self._translator = Translator(self.source.framework)
        self._watchers: dict[str, tuple[Rule, Watcher]] = {
            code: (rule, rule.start(self.facts)) for code, rule in rules().items()
        }

    def run(self) -> Inspection:
        """To the end of the source."""
        for _ in self.follow():
            pass
        return self.result()

    def follow(self) -> Iterator[Item]:
        """Item by item, after the rules have seen it."""
        for item in self.source.items():
            self._take(item)
            yield item
        self._flush()

    def _take(self, item: Item) -> None:
        match item:
            case MetricsRow():
                row = self._translator.row(item)
                self.rows += bool(row.values)
                self._show("log", row)
            case RecordedStep():
                self._step(unpack(item.record, self._shared))
            case Sample():
                self._sample(item)
            case Unread():
                self._unread_count += 1
                if len(self._unread) < _UNREAD:
                    self._unread.append(f"line {item.where}: {item.reason}")

    def _show(self, about: str, item: Any) -> None:
        with np.errstate(all="ignore"):  # a log may hold anything, and what overflows fits nothing
            for rule, watcher in self._watchers.values():
                if rule.about == about:
                    watcher.see(item)

    def _step(self, step: StepSeen) -> None:
        self.steps += 1
        self._recorded |= _contents(step)
        if len(self._problems) < _UNREAD:
            self._problems |= dict.fromkeys(f"step {step.step:g}: {p}" for p in step.problems)
        self._show("step", step)
        if not step.record.update and (values := _metrics(step)):
            self._show("log", _derived(step.step, values, "of the records"))

    def _sample(self, sample: Sample) -> None:
        self.completions += 1
        same = bool(self._held) and sample.step == self._held[0].step
        if self._held and (not same or len(self._held) >= MOST):
            self._flush()
            self._part = self._part + 1 if same else 0
        self._held.append(sample)

    def _flush(self) -> None:
        """The completions of the step that has ended."""
        if self._held:
            held, self._held = self._held, []
            self._gathered(dump_step(held, self._part))

    def gathered(self, step: DumpStep) -> None:
        """The completions of a step, put together elsewhere."""
        self.completions += step.completions
        self._gathered(step)

    def _gathered(self, step: DumpStep) -> None:
        self._show("dump", replace(step, shared=self._shared))
        if step.metrics:
            self._show("log", _derived(step.step, step.metrics, "of the dump"))

    def result(self) -> Inspection:
        """What is known so far."""
        found = [
            Found(rule, alarm)
            for rule, watcher in self._watchers.values()
            for alarm in watcher.alarms()
        ]
        said = [
            line
            for _, watcher in self._watchers.values()
            if isinstance(watcher, Speaking)
            for line in watcher.said()
        ]
        order = list(Severity)
        found.sort(key=lambda f: (order.index(f.severity), f.rule.code))
        return Inspection(
            path=self.path,
            kind=self.source.kind,
            framework=self._translator.framework or "",
            rows=self.rows,
            steps=self.steps,
            completions=self.completions,
            findings=tuple(f for f in found if not f.rule.normal),
            normal=tuple(f for f in found if f.rule.normal),
            said=tuple(said),
            skipped=tuple(self._skipped()),
        )

    def _skipped(self) -> Iterator[tuple[str, str]]:
        """Rules without what they need, and lines that could not be read."""
        lacking: dict[str, list[str]] = {}
        for code, (rule, _) in self._watchers.items():
            present = self._recorded if rule.about == "step" else self._translator.known
            active = {"log": self.rows, "step": self.steps, "dump": self.completions}[rule.about]
            missing = [name for name in rule.needs if name not in present]
            if active and missing and not rule.normal:
                lacking.setdefault(", ".join(missing), []).append(code)
        for missing_here, codes in lacking.items():
            yield ", ".join(codes), f"not in the file: {missing_here}"
        excuses: dict[str, list[str]] = {}
        for code, (_, watcher) in self._watchers.items():
            if isinstance(watcher, Excusing):
                for reason in watcher.skipped():
                    excuses.setdefault(reason, []).append(code)
        for reason, codes in excuses.items():
            yield ", ".join(codes), reason
        if self._unread_count:
            more = self._unread_count - len(self._unread)
            tail = f", and {more} more" if more > 0 else ""
            yield f"{self._unread_count} lines", "; ".join(self._unread) + tail
        for problem in self._problems:
            yield "a record", problem


def _contents(step: StepSeen) -> set[str]:
    """What a record holds, by the names of `rlproof.record`."""
    names = set(step.arrays) | {n for n in IDS if n in step.record.arrays}
    for name, there in (
        ("mask", step.marks is not None),
        ("groups", step.groups is not None),
        ("loss", step.loss is not None or "grad" in step.arrays),
        ("update", step.record.update is not None),
    ):
        if there:
            names.add(name)
    return names


def _metrics(step: StepSeen) -> dict[str, float]:
    """What a logger would have logged of a recorded step, by the names of the vocabulary."""
    if not step.whole:
        return {}
    values: dict[str, float] = {}
    if (ended := step.ended) is not None and len(ended):
        values["truncated"] = 1 - float(ended.mean())
    rewards, ids = step.rewards, step.group_ids
    if rewards is None or not len(rewards):
        return values
    with np.errstate(all="ignore"):
        values["reward-mean"] = float(rewards.mean())
    if ids is not None:
        groups = [rewards[ids == k] for k in range(int(ids.max()) + 1)]
        if min(map(len, groups)) > 1:
            dead = sum(float(g.min()) == float(g.max()) for g in groups)
            values["zero-variance-groups"] = dead / len(groups)
    return values


def _derived(step: float, values: dict[str, float], where: str) -> Row:
    """A row of metrics that were computed here."""
    readings = {
        name: Reading(name, f"{name} {where}", _UNITS[name]) for name in values
    }  # fmt: skip
    return Row(step, values, readings)
