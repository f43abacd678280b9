"""From a region to an outlined function: lower, slice, collect the parameters."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rlproof.read.names import Slot, is_negative_logp
from rlproof.read.outline.bounds import absolute
from rlproof.read.outline.lower import Lowering
from rlproof.read.outline.neutral import ROW_COUNTS
from rlproof.read.outline.picks import picked
from rlproof.read.outline.ratios import written_out
from rlproof.read.outline.regions import Region, Step, own_statements
from rlproof.read.outline.roles import settled
from rlproof.read.outline.scope import Scope
from rlproof.read.outline.slicing import Slicer
from rlproof.read.outline.state import Choices, Input, SlotOf, State
from rlproof.read.outline.syntax import Functions, arguments, at, free, key_of, rebuilt, stored
from rlproof.read.outline.values import ROLES, Value
from rlproof.read.targets import Parameter


@dataclass(frozen=True, slots=True)
class Built:
    """A synthetic function, its parameters, the settings it met, and why it can't be run."""

    node: ast.FunctionDef
    parameters: tuple[Parameter, ...]
    switches: dict[str, list[Any]]
    named: set[str]
    """Settings of which the file gives a value."""
    chooses: bool
    """Whether a setting chose among formulas."""
    helpers: set[str]
    """Methods that became functions inside it."""
    problem: str

    def has(self, *slots: Slot) -> bool:
        """Whether every one of these parts is played by some parameter."""
        return {p.slot for p in self.parameters} >= set(slots)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A region, and what is asked of its syntax once, whatever is chosen."""

    region: Region
    names: frozenset[str]
    containers: frozenset[str]
    init: tuple[ast.stmt, ...]
    loaded: frozenset[str]
    """Names that anything in the region reads."""


def build(prepared: Prepared, scope: Scope, slot_of: SlotOf, choices: Choices) -> Built | None:
    """Outline one region under one choice of settings; None if nothing can be returned."""
    region = prepared.region
    state = State(scope, slot_of, choices, prepared.names, prepared.containers, region.owner)
    state.sizes = slot_of("logp") is None
    state.computed = region.computed
    before, body = _lowered(prepared, state)
    helpers = [node for nodes, _ in state.helpers.values() for node in nodes]
    slicer = Slicer(state)
    needed: set[str] = set()
    kept = slicer.block(body, needed)
    kept = slicer.block(helpers, needed) + kept
    kept = slicer.block(before, needed) + kept
    if not any(isinstance(n, ast.Return) for s in kept for n in ast.walk(s)):
        return None
    found = _inputs(needed | slicer.given, kept, state)
    found += _unread_masks(found, prepared, state)
    found += _unread_references(found, prepared, state)
    found, ratios = written_out(found, kept)
    kept = picked(kept, [i.name for i in found if i.slot in ROLES])
    above = [*(at(s, kept[0]) for s in ratios), *absolute(found, kept)]
    prelude, lacks = _counts((needed | slicer.given) & state.counts, found, region)
    unknown = _unbound(needed, found, {n for s in [*above, *kept] for n in stored(s)}, state)
    parameters = settled([_parameter(i) for i in found], found, kept)
    problem = next(iter([*slicer.problems, *lacks, *unknown]), "")
    node = _function(region, [*prelude, *above, *kept], parameters)
    return Built(
        node,
        tuple(parameters),
        state.switches,
        state.named,
        state.chooses,
        set(state.helpers),
        problem,
    )


def prepare(region: Region, scope: Scope) -> Prepared:
    """Look at a region's syntax."""
    if region.home is None:  # what the module defines is there anyway
        had = (*Functions.__args__, ast.ClassDef, ast.Import, ast.ImportFrom)
        region = replace(
            region, steps=tuple(s for s in region.steps if not isinstance(s.node, had))
        )
    names: set[str] = set()
    containers: set[str] = set()
    loaded: set[str] = set()
    for step in region.steps:
        if step.kind in ("run", "turn"):
            names |= set(stored(step.node))
        if step.kind == "init":
            continue
        for inner in ast.walk(step.node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
                loaded.add(inner.id)
            found = key_of(inner) if isinstance(inner, ast.Attribute | ast.Subscript) else None
            if found and isinstance(found[0], ast.Name):
                containers.add(found[0].id)
    inits = [s.node for s in region.steps if s.kind == "init"]
    init = _apart(inits[0], _read(region, scope)) if inits else []
    return Prepared(region, frozenset(names), frozenset(containers), tuple(init), frozenset(loaded))


def _lowered(prepared: Prepared, state: State) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The lowered statements before the last function is entered, and those inside it."""
    lowering, region = Lowering(state), prepared.region
    before: list[ast.stmt] = []
    body: list[ast.stmt] = []
    for step in region.steps:
        if step.kind in ("init", "enter"):
            before += body
            body = []
        if step.kind == "init":
            body += _init(step, prepared.init, lowering)
        else:
            body += _step(step, region, lowering)
    if region.value is not None and region.statement is not None:
        value = lowering.value(region.value)
        made = ast.copy_location(ast.Return(lowering.swapped(region.value)), region.statement)
        if value.problem:
            state.lacking[made] = value.problem
        body.append(made)
    return before, body


def _step(step: Step, region: Region, lowering: Lowering) -> list[ast.stmt]:
    state, node = lowering.state, step.node
    outer = step.depth < region.depth
    match step.kind:
        case "enter":
            _enter(node, state)
            last = [s for s in region.steps if s.kind == "enter"][-1]
            ends_here = region.value is None and last is step
            lowering.returned = [] if ends_here else None
            return []
        case "turn":
            assert isinstance(node, ast.For | ast.AsyncFor | ast.While)
            return lowering.enter_loop(node, outer)
    if isinstance(node, ast.Return) and lowering.returned is None:
        return []
    made = lowering.statement(node, outer)
    return made if lowering.returned is not None else [_without_returns(s) for s in made]


def _without_returns(node: ast.stmt) -> ast.stmt:
    """An early return on the way to the value only says when it is not computed."""
    swaps: dict[ast.AST, ast.AST] = {
        inner: ast.copy_location(ast.Pass(), inner)
        for inner in own_statements([node])
        if isinstance(inner, ast.Return)
    }
    made = rebuilt(node, swaps) if swaps else node
    assert isinstance(made, ast.stmt)
    return made


def _enter(node: ast.stmt, state: State) -> None:
    """The parameters of a function: they come from outside."""
    assert isinstance(node, Functions)
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    pairs = [*zip(positional, defaults, strict=True)]
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    for arg, default in pairs:
        state.arguments[arg.arg] = arg
        state.defaults[arg.arg] = default
        state.env.pop(arg.arg, None)
    for rest in (args.vararg, args.kwarg):
        if rest is not None:
            state.env[rest.arg] = Value(problem=f"needs `{rest.arg}`, which may hold anything")


def _init(step: Step, kept: Sequence[ast.stmt], lowering: Lowering) -> list[ast.stmt]:
    """What `__init__` assigns to `self`; its other variables are forgotten."""
    state, node = lowering.state, step.node
    assert isinstance(node, Functions)
    _enter(node, state)
    before = set(state.env)
    body = lowering.block(kept)
    for name in list(state.env):
        if name not in before and not name.startswith("self."):
            del state.env[name]
    for name in arguments(node.args):
        state.arguments.pop(name, None)
        state.defaults.pop(name, None)
    return body


def _read(region: Region, scope: Scope) -> set[str]:
    """Attributes of `self` that a region reads, itself or in the methods that it calls."""
    read: set[str] = set()
    for step in region.steps:
        if step.kind != "init":
            read |= own_attributes(step.node)
    left, seen = list(read), set[str]()
    while left:
        name = left.pop()
        for info in scope.ancestors(region.owner or ""):
            if name in info.methods and name not in seen:
                seen.add(name)
                found = own_attributes(info.methods[name])
                left += found - read
                read |= found
    return read


def relevant(init: ast.stmt, attributes: set[str]) -> list[ast.stmt]:
    """The statements of `__init__` that these attributes may depend on."""
    read = set(attributes)
    kept: list[ast.stmt] = []
    assert isinstance(init, Functions)
    for node in reversed(init.body):
        stores = {n.attr for n in ast.walk(node)
                  if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}  # fmt: skip
        if (stores | set(stored(node))) & read:
            kept.append(node)
            read |= own_attributes(node) | {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return kept[::-1]


def own_attributes(node: ast.AST) -> set[str]:
    """Names k of every `self.k`."""
    return {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
    }


class _Renamed(ast.NodeTransformer):
    """Local variables of `__init__` under names of their own."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.names:
            node.id = f"_init_{node.id}"
        return node


def _apart(init: ast.stmt, attributes: set[str]) -> list[ast.stmt]:
    """Copies of what matters in `__init__`, its local variables renamed."""
    kept = relevant(init, attributes)
    own = {name for node in kept for name in stored(node)}
    renamed = _Renamed(own)
    made = [renamed.visit(copy.deepcopy(node)) for node in kept]
    return [node for node in made if isinstance(node, ast.stmt)]


def _inputs(names: set[str], kept: list[ast.stmt], state: State) -> list[Input]:
    read = set[str]().union(*map(free, kept)) if kept else set()
    read |= {n for s in kept for n in stored(s)}
    order = [i for i in state.inputs.values() if i.name in names]
    return [i for i in order if i.name in read or i.name in names]


def _unread_masks(found: Sequence[Input], prepared: Prepared, state: State) -> list[Input]:
    """A mask that the region is given and that nothing in it reads: a loss that ignores it."""
    if any(i.slot is Slot.MASK for i in found) or prepared.region.value is not None:
        return []
    given = [i for i in state.inputs.values() if i.slot is Slot.MASK and i.computed]
    return [i for i in given if i.name not in prepared.loaded][:1]


def _unread_references(found: Sequence[Input], prepared: Prepared, state: State) -> list[Input]:
    """Reference log-probs that a method is given, and that reach nothing it returns."""
    region = prepared.region
    if region.value is not None or region.home is None:
        return []
    if any(i.slot is Slot.REF for i in found) or not any(i.slot is Slot.OLD for i in found):
        return []
    given = [a for n, a in state.arguments.items() if state.slot_of(n) is Slot.REF]
    return [Input(a.arg, Slot.REF, a.arg, a.lineno, False) for a in given[:1]]


def _counts(
    names: set[str], found: list[Input], region: Region
) -> tuple[list[ast.stmt], list[str]]:
    """Numbers of real tokens, which the mask gives; where there is none every token is real."""
    if not names:
        return [], []
    mask = next((i.name for i in found if i.slot is Slot.MASK), None)
    new = next((i.name for i in found if i.slot is Slot.NEW), None)
    if mask is None and new is None:
        return [], [f"needs `{min(names)}`, a number of tokens, and has no mask to count them in"]
    place = region.statement or region.home
    assert place is not None
    count = f"{mask}.sum()" if mask else f"(0 * {new} + 1).sum()"
    rows = f"len({mask or new})"
    made = [
        ast.parse(f"{name} = {rows if name in ROW_COUNTS else count}").body[0]
        for name in sorted(names)
    ]
    return [at(node, place) for node in made], []


def _unbound(needed: set[str], found: list[Input], assigned: set[str], state: State) -> list[str]:
    given = {i.name for i in found} | state.counts | assigned
    unbound = sorted(n for n in needed - given if not state.scope.has(n) and n != "self")
    lines = state.scope.computed
    reasons = [
        f"line {lines[n]} defines {n} by running code, which is never executed"
        if n in lines
        else f"needs `{n}`, whose meaning is not recognised"
        for n in unbound
    ]
    if "self" in needed:
        reasons.append("passes `self` on, and the object can't be had without running `__init__`")
    return reasons


def _parameter(found: Input) -> Parameter:
    """A default of None says nothing of a number or an array: those are always given."""
    default = found.default
    if isinstance(default, ast.Constant) and default.value is None and found.slot is not Slot.CAP:
        default = None
    return Parameter(found.name, found.slot, default is None, default, is_negative_logp(found.name))


def _function(region: Region, body: list[ast.stmt], parameters: list[Parameter]) -> ast.FunctionDef:
    place = region.statement if region.home is None else region.home
    assert place is not None
    doc = _doc(region)
    args = ast.arguments(
        posonlyargs=[],
        args=[],
        kwonlyargs=[at(ast.arg(p.name), place) for p in parameters],
        kw_defaults=[p.default for p in parameters],
        defaults=[],
    )
    name = region.home.name if region.home is not None else "module"
    node = ast.FunctionDef(name=name, args=args, body=[*doc, *body], decorator_list=[])
    for field in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
        setattr(node, field, getattr(place, field))
    return node


def _doc(region: Region) -> list[ast.stmt]:
    """The docstring of the function, where all of the function is outlined."""
    if not region.whole or region.home is None or ast.get_docstring(region.home) is None:
        return []
    return [region.home.body[0]]
