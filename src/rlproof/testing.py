"""Assertions for a project's own tests: a function, or a whole script, is held to its objective.

    from rlproof.testing import assert_conforms, check_trainer, trainer_checks

    def test_loss():
        assert_conforms(mytrainer.policy_loss, "dapo")

    @pytest.mark.parametrize(("name", "check"), trainer_checks("train.py"))
    def test_trainer(name, check):
        check()

Whatever runs, runs in a child process, from the source in the file: see docs/how-to/testing.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import Any
from unittest import SkipTest

import click

from rlproof.checks import Options, Outcome, check_paths
from rlproof.errors import ConfigError, NothingToCheckError
from rlproof.faults.model import Severity
from rlproof.faults.seen import Seen
from rlproof.judge import conforms, source_loop
from rlproof.judge.declared import recipe_called
from rlproof.judge.findings import FileReport, Finding, TargetReport
from rlproof.live import check_live
from rlproof.read.landmarks import definition
from rlproof.read.script import read
from rlproof.read.source import shown
from rlproof.read.targets import Script
from rlproof.report.bytarget import REST, Part, parts
from rlproof.report.github import relative
from rlproof.report.text import frame, told
from rlproof.space.objective import Objective

WIDTH = 100
_UNPROVED = ("identifying", "the divisor of")
"""Checks without which nobody knows which objective a function computes."""


def assert_conforms(
    function: Any,
    objective: str | Objective = "auto",
    *,
    role: str | None = None,
    names: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> None:
    """Assert that a function computes what a published objective asks of it.

    Its source is probed in a child process, in value and gradient, as `rlproof check` does.

    Args:
        function: a function at the top level of a file, or a method of a class; over lists,
            NumPy arrays or torch tensors.
        objective: the name of a recipe, whose free coordinates stay free; an `Objective`, which
            is compared number by number, at its own clip bounds and β where the function takes
            them; or `auto`: any published objective will do.
        role: what the function is: `loss`, `advantages`, … Needed only where names don't say it.
        names: parameters with the part they play: `{"lp": "new", "lp0": "old", "a": "adv"}`.
        timeout: seconds for each call.

    Raises:
        AssertionError: there is an error or a warning, in the words of `rlproof check`, or no
            known objective reproduces what the function gives.
        ConfigError: the function can't be found, recognised or called, or an argument is wrong.
    """
    if isinstance(objective, Objective):
        conforms.refuse(objective)
    else:
        recipe_called(objective)  # a wrong name is told before anything runs
    more: list[Finding] = []

    def compare(seen: Seen, script: Script) -> None:
        if isinstance(objective, Objective):
            more.extend(_compared(objective, seen, script))

    declared = objective if isinstance(objective, str) else "auto"
    outcome = check_live(
        function, objective=declared, role=role, names=names, timeout=timeout, examine=compare
    )
    _settle(outcome, more, objective)


def _compared(objective: Objective, seen: Seen, script: Script) -> Iterator[Finding]:
    targets = {target.name: target for target in script.targets}
    for loss in seen.losses:
        yield from conforms.of_loss(objective, loss, definition(targets[loss.function]))
    for advantages in seen.advantages:
        where = definition(targets[advantages.function])
        yield from conforms.of_advantages(objective, advantages, where)


def _settle(outcome: Outcome, more: list[Finding], objective: str | Objective) -> None:
    """Raise what is to be raised: a finding, then what could not be run, then what is unknown."""
    report, lines = _near(outcome, outcome.called()[0])
    if found := [f for f in report.findings if f.severity is not Severity.NOTE]:
        raise AssertionError("\n" + told(report, found, lines, WIDTH))
    if more:  # what is wrong with the formula is not known, only that it is another one
        raise AssertionError("\n" + click.unstyle(frame(report, more[0], lines, WIDTH, brief=True)))
    for skipped in report.skipped:
        if skipped.check.startswith("running "):
            name = skipped.check.removeprefix("running ")
            raise ConfigError(f"{name} can't be called: {skipped.reason}")
    compared = isinstance(objective, Objective)
    for skipped in report.skipped:
        if not compared and skipped.check.startswith(_UNPROVED):
            meant = "a published objective" if objective == "auto" else f"{objective}"
            raise AssertionError(f"not shown to be {meant}: {skipped.check}: {skipped.reason}")
    if not report.checked:
        raise ConfigError(f"{shown(report.path)}: the function has a role that no probe judges")


def check_trainer(
    trainer: str | os.PathLike[str] | ModuleType,
    *,
    objective: str = "auto",
    timeout: float | None = None,
) -> None:
    """Assert that a whole training script is free of errors and warnings, as `rlproof check` is.

    Args:
        trainer: the path of a script, a notebook or a folder, or an imported module.
        objective: the recipe that is meant; `auto` takes what the script or the project declares.
        timeout: seconds for each call of the script's functions.

    Raises:
        AssertionError: there is an error or a warning, in the words of `rlproof check`.
        NothingToCheckError: no function with a role is there, or none could be judged.
        SourceError: a file can't be read.
        ConfigError: an argument or a setting is wrong.
    """
    path = _path(trainer)
    outcome = _run(path, objective, timeout)
    if outcome.exit_code == 1:
        raise AssertionError("\n" + click.unstyle(outcome.render("full", WIDTH)))


def trainer_checks(
    trainer: str | os.PathLike[str] | ModuleType,
    *,
    objective: str = "auto",
    timeout: float | None = None,
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The checks of a script one by one: an id and a callable for each function with a role.

    Making the list only reads the script. The first call runs it, once for all of them. A call
    raises `AssertionError` with the findings, or `unittest.SkipTest`, which pytest knows, where
    the function could not be run. The last one is `file`: whatever belongs to no function.

    Args:
        trainer: the path of a script or a notebook, or an imported module.
        objective: the recipe that is meant; `auto` takes what the script or the project declares.
        timeout: seconds for each call of the script's functions.

    Raises:
        NothingToCheckError: no function with a role is there.
        SourceError: the file can't be read.
        ConfigError: an argument or a setting is wrong.
    """
    path = _path(trainer)
    recipe_called(objective)
    for name, _ in listed(path):
        yield name, _Check(path, name, objective, timeout)


def listed(path: str) -> list[tuple[str, int]]:
    """The ids of a script's checks with their lines; nothing is run.

    Raises:
        NothingToCheckError: no function with a role is there.
        SourceError: the file can't be read.
    """
    options = Options.resolve((), (), None, True, None, "full")
    script = read(path, options.roles)
    if not (script.targets or script.homes or source_loop.is_readable(script)):
        raise NothingToCheckError(f"{shown(path)}: no GRPO function recognised")
    known = tuple(TargetReport(t.role, t.name, t.node.lineno) for t in script.targets)
    report = FileReport(path, known, cells=script.source.cells).called()
    return [(part.name, part.line) for part in parts(report)]


class _Check:
    """One function's part of a report. The script is run when the first of them is called."""

    def __init__(self, path: str, name: str, objective: str, timeout: float | None) -> None:
        self.path, self.name, self.objective, self.timeout = path, name, objective, timeout

    def __call__(self) -> None:
        outcome = _cached(self.path, self.objective, self.timeout, os.stat(self.path).st_mtime_ns)
        found = self.name == REST
        for report in outcome.called():
            own = report.path == self.path  # else a file that functions are imported from
            for part in parts(report):
                if own and part.name == self.name:
                    found = True
                    _raise(outcome, report, part)
                elif not own and self.name == REST:
                    _raise(outcome, report, part, skip=False)
        if not found:
            raise AssertionError(f"{shown(self.path)} changed while its tests ran: {self.name}")

    def __repr__(self) -> str:
        return f"<rlproof: {self.name} of {self.path}>"


def _raise(outcome: Outcome, report: FileReport, part: Part, skip: bool = True) -> None:
    if part.strong:
        near, lines = _near(outcome, report)
        raise AssertionError("\n" + told(near, part.strong, lines, WIDTH))
    if skip and part.unrun:
        raise SkipTest(f"could not be run: {part.unrun}")


def _near(outcome: Outcome, report: FileReport) -> tuple[FileReport, list[str]]:
    """The report under a path that people read, and the lines of its file."""
    return replace(report, path=relative(report.path)), outcome.sources[report.path]


@cache
def _cached(path: str, objective: str, timeout: float | None, _: int) -> Outcome:
    return _run(path, objective, timeout)


def _run(path: str, objective: str, timeout: float | None) -> Outcome:
    """Check a script; `auto` leaves what it declares itself in force."""
    declared = None if objective == "auto" else objective
    outcome = check_paths((path,), Options.resolve((), (), declared, True, timeout, "full"))
    if outcome.errors:
        raise outcome.error()
    if outcome.exit_code == NothingToCheckError.exit_code:
        reasons = "; ".join(f"{s.check}: {s.reason}" for r in outcome.reports for s in r.skipped)
        raise NothingToCheckError(f"{shown(path)}: nothing could be judged ({reasons})")
    return outcome


def _path(trainer: str | os.PathLike[str] | ModuleType) -> str:
    if isinstance(trainer, ModuleType):
        if not trainer.__file__:
            raise ConfigError(f"module {trainer.__name__} has no file; give the path of a script")
        return trainer.__file__
    if isinstance(trainer, str | os.PathLike):
        return os.fspath(trainer)
    raise ConfigError(f"{trainer!r}: expected a path or a module; assert_conforms takes functions")
