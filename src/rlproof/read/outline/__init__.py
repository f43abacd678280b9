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

from rlproof.read.names import (
    Slot,
    advantage_slot,
    is_logp,
    objective_slot,
    ratio_slot,
    says_advantages,
    says_clip_fraction,
)
from rlproof.read.outline import regions
from rlproof.read.outline.build import Built, build, prepare
from rlproof.read.outline.criteria import advantage_regions
from rlproof.read.outline.directives import Directives
from rlproof.read.outline.inputs import said
from rlproof.read.outline.layouts import laid_out
from rlproof.read.outline.regions import Definition, Region, from_rewards
from rlproof.read.outline.scope import Scope
from rlproof.read.outline.state import SlotOf
from rlproof.read.outline.statistics import with_statistics
from rlproof.read.outline.syntax import Functions, arguments
from rlproof.read.outline.unnamed import may_have_roles, unnamed_roles
from rlproof.read.outline.variants import alternatives, base, label
from rlproof.read.records import record_slots
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
        self.told: dict[ast.AST, dict[str, Slot]] = {}
        """Roles of the names of each function, asked for once."""

    def run(self) -> tuple[list[Target], list[Doubt]]:
        roles = self.said.project or self.said.comments
        names = regions.names_in(self.tree)
        losses = _speaks_of_losses(names) or _speaks_of_ratios(names)
        if not (roles or losses or _speaks_of_rewards(names) or may_have_roles(self.tree)):
            return [], []
        self.scope = Scope(self.tree)
        found = [d for d in regions.definitions(self.tree) if self._is_open(d)]
        for definition in reversed(found):  # closures before the functions around them
            self._losses(definition)
            self._advantages(definition)
            self._clip_fraction(definition)
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
            node not in self.taken
            and (node.name == "__call__" or not node.name.startswith(("test_", "__")))
        )

    def _roles(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Slot]:
        """What is said of names in a function: on its `def`, in it, and in the project.

        Names of which nothing is said may have a docstring, or the shape of the code.
        """
        if node not in self.told:
            own = self.said.at(node)
            told = {**self.said.inside(node.body), **(own.roles if own else {})}
            self.told[node] = {**unnamed_roles(node), **told}
        return self.told[node]

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
        speaks = _speaks_of_losses(names) or _is_given_a_ratio(node)
        if not speaks and not roles.keys() & names:
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
        around = [step.node for step in definition.outer if step.kind == "enter"]
        said = self._roles(definition.node)
        if not any((said.get(n) or advantage_slot(n)) is Slot.REWARDS for n in names):
            return
        homes = [n for n in (*around, definition.node) if isinstance(n, Functions)]
        found = [record_slots(home) for home in homes]
        roles = {**laid_out(homes), **{n: s for one in found for n, s in one.items()}, **said}
        whole = says_advantages(definition.node.name) and regions.of_returns(definition)
        places = [whole] if whole else advantage_regions(definition.node.body, definition)
        for region in places:
            self._add_advantages(region, roles)

    def _add_advantages(self, region: Region, roles: Roles) -> None:
        """Outline advantages, from the first rewards on that can be given."""
        named = {**roles, **({region.rewards: Slot.REWARDS} if region.rewards else {})}
        region = with_statistics(region, self.tree)
        chosen, slot = region, Slot.REWARDS
        for attempt in from_rewards(region):
            made = build(prepare(attempt, self.scope), self.scope, _slots(named), {})
            held = made is not None and [s for s in _REWARDS if made.has(s)]
            if made is not None and held and not made.problem:
                chosen, slot = attempt, held[0]
                break
        self._add(chosen, Role.ADVANTAGES, advantage_slot, (slot,), named)

    def _clip_fraction(self, definition: Definition) -> None:
        """A method that measures how many tokens are clipped; elsewhere it is part of a loss."""
        if definition.owner and says_clip_fraction(definition.node.name):
            whole = regions.of_returns(definition)
            wanted, roles = (Slot.NEW, Slot.OLD), self._roles(definition.node)
            if whole:
                self._add(whole, Role.CLIP_FRACTION, objective_slot, wanted, roles)

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
        top = [node for node in body if not isinstance(node, (*Functions.__args__, ast.ClassDef))]
        for region in advantage_regions(body, None):
            self._add_advantages(region, {**laid_out(top), **roles})

    def _add(
        self,
        region: Region,
        role: Role,
        names: SlotOf,
        wanted: tuple[Slot, ...],
        roles: Roles,
    ) -> None:
        slot_of = _slots(roles, names)
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


def _slots(roles: Roles, names: SlotOf = advantage_slot) -> SlotOf:
    """The slot of a name: what is said of it, else what it says itself."""
    return lambda name: roles.get(name) or (None if "." in name else said(name, names))


_REWARDS = (Slot.REWARDS, Slot.RECORDS)
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


def _is_given_a_ratio(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return _speaks_of_ratios(arguments(node.args))


def _speaks_of_ratios(names: set[str]) -> bool:
    ratios = any(ratio_slot(name) for name in names)
    return ratios and any(objective_slot(name) is Slot.ADVANTAGES for name in names)


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
