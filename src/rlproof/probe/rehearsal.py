"""A rehearsal under the first conventions that run, and the same with other values.

How a script wants its advantages shaped, or its prompts given, can't be read off names. The
numbers of rows, of completions of a prompt and of slots differ on the stage, so that a wrong
shape raises: the first that runs is taken.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import product
from typing import Any

from rlproof.bind.implementation import UnbindableError
from rlproof.bind.rehearsal import Run, Stage
from rlproof.bind.sandbox import Sandbox
from rlproof.read.calls import defaults
from rlproof.read.driver import driver, functions, sampler_beside
from rlproof.read.loop.masks import pad_is_eos
from rlproof.read.names import Slot, objective_slot
from rlproof.read.parameters import calls_by_name
from rlproof.read.targets import Role, Script
from rlproof.read.uses import uses

ROWS = 24
_CONVENTIONS: dict[str, tuple[str, ...]] = {
    "asked": ("text", "ids", "mapping"),
    "width": ("full", "shifted", "completion"),
    "advantages": ("row", "column", "token"),
    "score": ("row", "column", "list", "pair"),
}
_GROUPS = (8, 4, 2, 6, 3, 12)
"""Sizes of groups that divide the rows."""


class Rehearsal:
    """One function of a script on the stage."""

    def __init__(
        self,
        script: Script,
        sandbox: Sandbox,
        function: str,
        *,
        alone: bool = False,
        watch: bool = False,
    ) -> None:
        """Find out what to call and how.

        Args:
            script: the script.
            sandbox: its process.
            function: the function in which a fault was read.
            alone: whether a method that scores is called after one that samples.
            watch: whether calls of losses are recorded.

        Raises:
            UnbindableError: there is nothing that could be called.
        """
        tree = script.source.tree
        main = driver(tree, function)
        if main is None:
            raise UnbindableError("what holds it is no function that can be called from outside")
        beside = sampler_beside(tree, function) if alone else None
        self.calls = (beside, function) if beside else (main,)
        self.gives_advantages = _gives_advantages(script, main)
        losses = [t.name for t in script.of(Role.LOSS) if t.origin is None]
        losses = [name for name in losses if watch and name not in self.calls]
        self.stage = Stage(sandbox, self.calls, uses(tree), tuple(losses))
        group = group_size(tree)
        self.base: dict[str, Any] = {
            "rows": ROWS,
            "group": group or 3,
            "grouped": group is not None,
            "pad_is_eos": pad_is_eos(tree) is not None,
        }
        self.first = self._first()

    def run(self, **settings: Any) -> Run:
        """The same again with other settings."""
        return self.stage.run({**self.base, **settings})

    def whole(self, **settings: Any) -> Run:
        """The same, where it has to come to its end.

        Raises:
            UnbindableError: it does not.
        """
        run = self.run(**settings)
        if not run.whole:
            raise UnbindableError(f"executed with stand-ins it stopped: {run.reason}")
        return run

    def _first(self) -> Run:
        """The run under the first conventions that work; the error of the first where none do."""
        failed: list[dict[str, str]] = []
        first: Run | None = None
        for values in product(*_CONVENTIONS.values()):
            chosen = dict(zip(_CONVENTIONS, values, strict=True))
            if any(chosen.items() >= one.items() for one in failed):
                continue
            run = self.stage.run({**self.base, **chosen})
            if run.ended == "refused" and "asked" not in run.used:
                raise UnbindableError(f"it can't be executed with stand-ins: {run.reason}")
            if run.whole:
                self.base |= chosen
                return run
            first = first or run
            failed.append({name: chosen[name] for name in run.used & set(_CONVENTIONS)})
        assert first is not None
        if first.ended == "refused":
            raise UnbindableError(f"it can't be executed with stand-ins: {first.reason}")
        return first


def _gives_advantages(script: Script, name: str) -> bool:
    """Whether a function computes advantages, or calls one that does."""
    known = {t.name for t in script.of(Role.ADVANTAGES)}
    short = {one.rpartition(".")[2] for one in known}
    return name in known or bool(short & set(calls_by_name(functions(script.source.tree)[name])))


def group_size(tree: ast.Module) -> int | None:
    """How many completions a prompt gets: a number of the script that divides the rows.

    None where no name of the script speaks of it; 3 where one does and no number is given.
    """
    names, values = set[str](), list[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                names.add(name)
            case ast.arg(arg=name):
                names.add(name)
    for name, value in _numbers(tree):
        if _speaks(name) and value in _GROUPS:
            values.append(value)
    if values:
        return values[0]
    return 3 if any(map(_speaks, names)) else None


def _speaks(name: str) -> bool:
    return (objective_slot(name.lower()) is Slot.GROUP_SIZE and len(name) > 1) or name in {"n", "G"}


def _numbers(tree: ast.Module) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(value))):
                found.append((name, value))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=int(value))):
                found.append((name, value))
            case ast.keyword(arg=str(name), value=ast.Constant(value=int(value))):
                found.append((name, value))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found += [
                    (name, default.value)
                    for name, default in defaults(node).items()
                    if isinstance(default, ast.Constant) and isinstance(default.value, int)
                ]
    return found


def interleavings(settings: Mapping[str, Any], within: list[int]) -> list[list[int]]:
    """Orders that deal the things of `within` out to other micro-batches, the rest in place."""
    count = settings["rows"] // (settings["group"] if settings["grouped"] else 1)
    made = []
    for stride in (2, 3, 5):
        mixed = sorted(within, key=lambda i: (within.index(i) % stride, within.index(i)))
        order = list(range(count))
        for place, thing in zip(sorted(within), mixed, strict=True):
            order[place] = thing
        made.append(order)
    return made
