"""From a live function to its place in a file, and the check of that function alone.

What is judged is the function's source as it stands in its file, in a child process, as `check`
does: not the object in this process. So whatever only the object knows (an instance's attributes,
values of a closure, arguments of a `partial`, a patched global) is refused or not looked at.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import CodeType, FunctionType
from typing import Any

from rlproof.bind.children import shared_for
from rlproof.checks import Options, Outcome
from rlproof.errors import ConfigError
from rlproof.faults.seen import Seen
from rlproof.judge.check import check
from rlproof.judge.findings import FileReport
from rlproof.read.notebook import is_python
from rlproof.read.outline.directives import Directive, slots
from rlproof.read.script import script_of
from rlproof.read.source import Cell, Source, load, shown
from rlproof.read.targets import FunctionNode, Role, Script, Target
from rlproof.repair import fix

Examine = Callable[[Seen, Script], None]
_SAID = (Role.LOSS, Role.ADVANTAGES)
"""The roles that a caller can give a function whose names say nothing."""


@dataclass(frozen=True, slots=True)
class Live:
    """A live function found in its source."""

    name: str
    """`grpo_loss`, or `Trainer.compute_loss`."""
    source: Source
    node: FunctionNode

    @property
    def lines(self) -> range:
        """The lines of the function, its decorators included."""
        return range(_first(self.node), (self.node.end_lineno or self.node.lineno) + 1)


def locate(function: Any) -> Live:
    """The source of a function or of a method of a class.

    Raises:
        ConfigError: it has no source of its own, or depends on what only the object knows.
        SourceError: its file can't be read.
    """
    plain = _plain(function)
    code, name = plain.__code__, plain.__qualname__
    if code.co_name == "<lambda>":
        raise ConfigError(f"{name} is a lambda, which no report can point at; give it a `def`")
    if "<locals>" in name:
        raise ConfigError(
            f"{name.replace('.<locals>.', '.')} is made inside a function, so its source alone "
            "does not say what it computes; move it to the top level of its file"
        )
    source = _source(code, name)
    node = next(_defined(source, code), None)
    if node is None:
        raise ConfigError(
            f"{name}: {shown(source.path)} no longer has it at line {code.co_firstlineno}; "
            "import it anew"
        )
    return Live(name, source, node)


def _plain(function: Any) -> FunctionType:
    if isinstance(function, functools.partial):
        inner = getattr(function.func, "__qualname__", "the function")
        raise ConfigError(f"{function!r} is a partial; give {inner} itself")
    if isinstance(function, type):
        raise ConfigError(f"{function.__qualname__} is a class; give one of its methods")
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, type) and inspect.ismethod(function):
        name = function.__qualname__
        raise ConfigError(
            f"{name} is bound to an object, whose attributes are not looked at; give {name} of "
            "the class"
        )
    inner = inspect.unwrap(getattr(function, "__func__", function))
    if isinstance(inner, FunctionType):
        return inner
    raise ConfigError(
        f"{function!r} has no Python source; expected a function, or a method of a class"
    )


def _source(code: CodeType, name: str) -> Source:
    path = code.co_filename
    if os.path.isfile(path):
        return load(path)
    if cells := _cells(path):
        return cells
    raise ConfigError(
        f"{name} was made in {shown(path)}, which is no file; write it in a file and import it"
    )


def _cells(path: str) -> Source | None:
    """What was entered so far in this IPython or Jupyter session, if the function is of it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or path not in getattr(shell.compile, "_filename_map", {path: 0}):
        return None
    lines: list[str] = []
    found: list[Cell] = []
    for number, entered in enumerate(shell.history_manager.input_hist_parsed):
        if entered.strip() and is_python(entered):
            added = entered.rstrip("\n").split("\n")
            found.append(Cell(number, len(lines) + 1, len(added)))
            lines += added
    text = "\n".join(lines) + "\n"
    return Source("cells", text, ast.parse(text), tuple(found))


def _defined(source: Source, code: CodeType) -> Iterator[FunctionNode]:
    """The definition of a code object; the last of its name where lines are those of a cell."""
    named = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, FunctionNode) and node.name == code.co_name
    ]
    if os.path.isfile(code.co_filename):
        yield from (node for node in named if _first(node) == code.co_firstlineno)
    else:
        yield from reversed(named)


def _first(node: FunctionNode) -> int:
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def check_live(
    function: Any,
    *,
    objective: str | None = None,
    role: str | None = None,
    names: Mapping[str, str] | None = None,
    timeout: float | None = None,
    examine: Examine | None = None,
) -> Outcome:
    """Check one function as `rlproof check` would check its file.

    Args:
        function: a function, or a method of a class.
        objective: the declared recipe; None takes what the script or the project declares.
        role: what it is, where its name and parameters don't say it: `loss` or `advantages`; of
            one that is recognised, the role that is meant.
        names: parameters with the part they play, as in `[tool.rlproof.roles]`.
        timeout: seconds for each call of it.
        examine: is given what was seen while the function can still be called.

    Raises:
        ConfigError: the function can't be found or has no role, or an argument is wrong.
        SourceError: its file can't be read.
    """
    live = locate(function)
    options = Options.resolve((), (), objective, True, timeout, "full")
    script = script_of(live.source, options.roles, _said(live, role, names or {}))
    targets = _targets(live, script, role)
    whole = any(target.role is Role.TRAIN for target in targets)  # a loop calls the others
    warm = shared_for(live.source)
    alone = script if whole else replace(script, targets=tuple(targets))
    report = check(
        alone,
        seconds=options.seconds,
        objective=options.objective,
        default=options.default,
        examine=(lambda seen: examine(seen, alone)) if examine else None,
        begin=warm.start if warm else None,
    )
    report = _only(fix.suggest(alone, report), live, targets).keep(options.codes)
    declared = options.objective or options.default
    return Outcome((report,), {live.source.path: live.source.lines}, (), declared)


def _said(live: Live, role: str | None, names: Mapping[str, str]) -> tuple[Directive, ...]:
    """What the caller says, as a comment above the function would."""
    if role is not None and role not in list(Role):
        raise ConfigError(f"role {role!r} is unknown; expected one of {', '.join(Role)}")
    if not names:
        return ()
    if role not in _SAID:
        raise ConfigError("names are for role='loss' or role='advantages'; give one of them")
    known = {a.arg for a in ast.walk(live.node.args) if isinstance(a, ast.arg)}
    if unknown := sorted(set(names) - known):
        raise ConfigError(
            f"{live.name} has no parameter {unknown[0]!r}; it has {', '.join(sorted(known))}"
        )
    line = live.node.lineno
    return (Directive(str(role), slots(names, "names"), line, line),)


def _targets(live: Live, script: Script, role: str | None) -> list[Target]:
    inside = [t for t in script.targets if t.node.lineno in live.lines]
    found = [t for t in inside if role in (None, t.role)]
    if found:
        return found
    if inside:
        roles = ", ".join(sorted({str(t.role) for t in inside}))
        raise ConfigError(f"{live.name} is no {role}: it is recognised as {roles}")
    missing = [reason for name, reason in script.doubts if name == live.name]
    because = f" ({missing[0]})" if missing else ""
    raise ConfigError(
        f"{live.name} is not recognised as a part of GRPO{because}; say what it is: role='loss', "
        "names={'lp': 'new', 'lp0': 'old', 'a': 'adv', 'm': 'mask'}"
    )


def _only(report: FileReport, live: Live, targets: list[Target]) -> FileReport:
    """What is said of the function: the loops of the file are read even if none is a target."""
    names = {target.name for target in targets}
    return replace(
        report,
        targets=tuple(t for t in report.targets if t.name in names),
        findings=tuple(
            f for f in report.findings if f.place.function in names or f.place.line in live.lines
        ),
        skipped=tuple(
            s
            for s in report.skipped
            if any(s.check == name or s.check.endswith(f" {name}") for name in names)
        ),
    )
