"""Outlining: losses and advantages that are no module-level function become callables.

A method, a closure or a few statements in a loop are lowered (settings become constants or
parameters, model calls become parameters), sliced backwards from the value in question, and put
into a synthetic `ast.FunctionDef` whose statements keep their original lines. Everything after
`rlproof.read` sees an ordinary function.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlproof.read.names import Slot, advantage_slot, is_logp, objective_slot
from rlproof.read.outline import regions
from rlproof.read.outline.build import Built, build, prepare
from rlproof.read.outline.criteria import advantage_regions, says_advantages
from rlproof.read.outline.directives import Directives
from rlproof.read.outline.inputs import said
from rlproof.read.outline.regions import Definition, Region
from rlproof.read.outline.scope import Scope
from rlproof.read.outline.state import SlotOf
from rlproof.read.outline.syntax import Functions
from rlproof.read.outline.variants import alternatives, base, label
from rlproof.read.targets import Origin, Role, Target

Roles = Mapping[str, Slot]
NOTHING = Directives()
_MOST_VARIANTS = 24


@dataclass(frozen=True, slots=True)
class Doubt:
    """A place that looks like a loss or advantages, and why it can't be judged."""

    name: str
    line: int
    reason: str


def outline(
    tree: ast.Module, known: Sequence[Target], said: Directives = NOTHING
) -> tuple[list[Target], list[Doubt]]:
    """The outlined targets of a module.

    Args:
        tree: the module.
        known: targets that are module-level functions already.
        said: what comments and settings say of names.
    """
    try:
        return _Outliner(tree, known, said).run()
    except RecursionError:
        return [], [Doubt("this file", 1, "its expressions are nested too deeply to follow")]


class _Outliner:
    def __init__(self, tree: ast.Module, known: Sequence[Target], said: Directives) -> None:
        self.tree = tree
        self.said = said
        self.known = {
            t.name for t in known if t.role in (Role.LOSS, Role.ADVANTAGES) and not _open(t)
        }
        self.taken = {t.node for t in known if t.name in self.known or t.role not in _OPEN_ROLES}
        self.targets: list[Target] = []
        self.doubts: list[tuple[Doubt, set[str]]] = []
        """With the functions that the place calls: one may turn out to be the loss itself."""
        self.outlined: set[tuple[str, int]] = set()
        self.helpers: set[tuple[Role, str | None, str]] = set()

    def run(self) -> tuple[list[Target], list[Doubt]]:
        roles = self.said.project or self.said.comments
        names = regions.names_in(self.tree)
        if not roles and not _speaks_of_losses(names) and not _speaks_of_rewards(names):
            return [], []
        self.scope = Scope(self.tree)
        found = [d for d in regions.definitions(self.tree) if self._is_open(d)]
        for definition in reversed(found):  # closures before the functions around them
            self._losses(definition)
            self._advantages(definition)
        self._of_module()
        inside = {(role, f"{owner}.{name}") for role, owner, name in self.helpers}
        left = [t for t in self.targets if (t.role, t.name.partition(" ")[0]) not in inside]
        homes = {t.node.name for t in left if t.origin and t.origin.whole and not t.origin.reason}
        left = [t for t in left if not homes & (_called(t.node) - {t.node.name})]
        order = sorted(left, key=lambda t: t.node.lineno)
        doubts = [doubt for doubt, names in self.doubts if not homes & names]
        return [_numbered(target, i) for i, target in enumerate(order)], doubts

    def _is_open(self, definition: Definition) -> bool:
        node = definition.node
        return bool(self.said.at(node)) or (
            node not in self.taken and not node.name.startswith(("test_", "__"))
        )

    def _roles(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Slot]:
        """What is said of names in a function: on its `def`, in it, and in the project."""
        own = self.said.at(node)
        return {**self.said.inside(node.body), **(own.roles if own else {})}

    def _marked(self, body: list[ast.stmt], kind: str) -> list[tuple[ast.stmt, ast.expr]]:
        """Statements with a directive of this kind, with what they assign or return."""
        found: list[tuple[ast.stmt, ast.expr]] = []
        for node in regions.own_statements(body):
            said = self.said.at(node)
            if said is None or said.kind != kind or isinstance(node, Functions):
                continue
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AugAssign(target=ast.Name(id=name))
                    | ast.AnnAssign(target=ast.Name(id=name))
                ):
                    value = ast.copy_location(ast.Name(name, ast.Load()), node)
                    found.append((node, value))
        return found

    def _losses(self, definition: Definition) -> None:
        node = definition.node
        roles = self._roles(node)
        names = regions.names_in(node)
        if not _speaks_of_losses(names) and not roles.keys() & names:
            return
        marked = self._inline(definition, self._marked(node.body, "loss"), True)
        if self._add_all(marked, roles):
            return
        found = self._inline(definition, list(regions.backward_calls(node.body)), False)
        if not found and (self.said.at(node) or not _is_metric(node)):
            returns = regions.of_returns(definition)
            found = [returns] if returns else []
        self._add_all(found, roles)

    def _inline(
        self, definition: Definition, values: list[tuple[ast.stmt, ast.expr]], after: bool
    ) -> list[Region]:
        found = (_inline(definition, node, value, after) for node, value in values)
        return [region for region in found if region]

    def _add_all(self, found: Sequence[Region], roles: Roles) -> bool:
        """Outline losses. Returns whether any was one."""
        before = len(self.targets)
        for region in found:
            self._add(region, Role.LOSS, objective_slot, (Slot.NEW, Slot.ADVANTAGES), roles)
        return len(self.targets) > before

    def _advantages(self, definition: Definition) -> None:
        names = regions.names_in(definition.node)
        roles = self._roles(definition.node)
        if not any((roles.get(n) or advantage_slot(n)) is Slot.REWARDS for n in names):
            return
        whole = says_advantages(definition.node.name) and regions.of_returns(definition)
        found = [whole] if whole else advantage_regions(definition.node.body, definition)
        for region in found:
            self._add(region, Role.ADVANTAGES, advantage_slot, (Slot.REWARDS,), roles)

    def _of_module(self) -> None:
        """Losses and advantages written at the top level, in its loops and blocks."""
        body = self.tree.body
        roles = self.said.inside(body)
        marked = self._marked(body, "loss")
        for statement, loss in marked or regions.backward_calls(body):
            way = regions.way_to(body, statement)
            if way is not None:
                own = (regions.Step("run", statement, way[1]),) if marked else ()
                way = ((*way[0], *own), way[1])
                name = f"module (inline loss, line {statement.lineno})"
                region = Region(name, None, None, way[0], loss, statement, way[1], False)
                self._add(region, Role.LOSS, objective_slot, (Slot.NEW, Slot.ADVANTAGES), roles)
        for region in advantage_regions(body, None):
            self._add(region, Role.ADVANTAGES, advantage_slot, (Slot.REWARDS,), roles)

    def _add(
        self,
        region: Region,
        role: Role,
        names: SlotOf,
        wanted: tuple[Slot, ...],
        roles: Roles,
    ) -> None:
        def slot_of(name: str) -> Slot | None:
            return roles.get(name) or (None if "." in name else said(name, names))

        prepared = prepare(region, self.scope)
        first = build(prepared, self.scope, slot_of, {})
        if first is None or self._is_a_call(first):
            return
        if not first.has(*wanted):
            self._doubt(region, role, first)
            return
        start = base(first.switches, first.named)
        seen: dict[str, bool] = {}
        built: list[tuple[dict[str, Any], Built]] = []
        for choice in [{}, *alternatives(first.switches, start)[:_MOST_VARIANTS]]:
            whole = {**start, **choice}
            again = build(prepared, self.scope, slot_of, whole) if whole else first
            if again is not None:
                built.append((choice, again))
        kept: list[tuple[dict[str, Any], Built]] = []
        for choice, made in built:
            text = "\n".join(map(ast.dump, made.node.body))
            if text not in seen and made.has(*wanted):
                seen[text] = True
                kept.append((choice, made))
        for choice, made in kept:
            name = region.name + label(choice, start, first.switches, [c for c, _ in kept])
            origin = Origin(name, "", made.problem, region.whole, made.chooses)
            self.targets.append(Target(role, made.node, made.parameters, origin))
        if not first.problem:
            self.helpers |= {(role, region.owner, name) for name in first.helpers}
        if region.home is not None:
            self.outlined.add((region.home.name, region.home.lineno))

    def _doubt(self, region: Region, role: Role, built: Built) -> None:
        """A differentiated value with one half of a loss: the other half has another name."""
        halves = {"new": Slot.NEW, "adv": Slot.ADVANTAGES}
        missing = [word for word, slot in halves.items() if not built.has(slot)]
        if role is Role.LOSS and region.statement is not None and len(missing) == 1:
            what = {"new": "log-probs of the policy", "adv": "advantages"}[missing[0]]
            why = built.problem or f"no name in it says that it holds {what}"
            hint = f"; if it is a loss, write `# rlproof: loss {missing[0]}=NAME` above its `def`"
            doubt = Doubt(region.name, region.statement.lineno, why + hint)
            self.doubts.append((doubt, _called(built.node)))

    def _is_a_call(self, built: Built) -> bool:
        """Whether it only hands on to a loss that is a target itself."""
        for node in ast.walk(built.node):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in self.known:
                    return True
            if isinstance(node, ast.FunctionDef) and node is not built.node:
                if (node.name, node.lineno) in self.outlined:
                    return True
        return False


_OPEN_ROLES = (Role.LOSS, Role.TRAIN, Role.ADVANTAGES, Role.ROLLOUT)


def _open(target: Target) -> bool:
    """Whether a recognised function has parameters that no probe can give: it may be outlined."""
    if any(p.required and p.slot is None for p in target.parameters):
        return True
    loose = {p.name for p in target.parameters if p.slot is None}
    asserted = {
        name.id
        for node in ast.walk(target.node)
        if isinstance(node, ast.Assert)
        for name in ast.walk(node.test)
        if isinstance(name, ast.Name)
    }
    read = {
        node.value.id
        for node in ast.walk(target.node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    absent = {p.name for p in target.parameters if p.slot is None and _is_none(p.default)}
    return bool(loose & asserted & read) or bool((absent & read) - _asked(target.node))


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _asked(function: ast.AST) -> set[str]:
    """Names that are asked whether they are there: `x is None`, `if x`, `not x`, `x and y`."""
    found: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Compare(left=ast.Name(id=name), comparators=[other]) if _is_none(other):
                found.add(name)
            case (
                ast.If(test=ast.Name(id=name))
                | ast.IfExp(test=ast.Name(id=name))
                | ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name))
            ):
                found.add(name)
            case ast.BoolOp(values=values):
                found |= {value.id for value in values if isinstance(value, ast.Name)}
    return found


def _called(node: ast.AST) -> set[str]:
    """Names of functions that are called by their plain name."""
    return {
        inner.func.id
        for inner in ast.walk(node)
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name)
    }


def _speaks_of_rewards(names: set[str]) -> bool:
    return any(advantage_slot(name) is Slot.REWARDS for name in names)


def _speaks_of_losses(names: set[str]) -> bool:
    logps = any(is_logp(name) for name in names)
    return logps and any(objective_slot(name) is Slot.ADVANTAGES for name in names)


def _is_metric(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    from rlproof.read.roles import says_metric

    return says_metric(node)


def _inline(
    definition: Definition, statement: ast.stmt, loss: ast.expr, after: bool
) -> Region | None:
    """The way to a statement, and through it where the value is what it assigns."""
    way = regions.way_to(definition.node.body, statement)
    if way is None:
        return None
    name = f"{definition.name} (inline loss, line {statement.lineno})"
    own = (regions.Step("run", statement, way[1]),) if after else ()
    steps = (*regions.start_of(definition), *way[0], *own)
    home, owner = definition.node, definition.owner
    return Region(name, home, owner, steps, loss, statement, way[1], False)


def _numbered(target: Target, index: int) -> Target:
    assert target.origin is not None
    return replace(target, origin=replace(target.origin, entry=f"outlined:{index}"))


__all__ = ["Doubt", "outline"]
