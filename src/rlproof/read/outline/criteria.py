"""Which statements produce advantages: those that centre rewards, the last of each chain."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlproof.read.names import Slot, advantage_slot, is_logp, says_advantages, words
from rlproof.read.outline import regions
from rlproof.read.outline.inputs import is_selection
from rlproof.read.outline.regions import Definition, Region
from rlproof.read.outline.syntax import Functions, path_of, stored

_MEANS = {"mean", "nanmean", "fmean", "average", "masked_mean"}
_MEAN_WORDS = {"mean", "means", "avg", "average", "mu", "baseline"}
_CENTRED = {"normalized", "normalised", "normed", "centered", "centred", "standardized"}
_COPIES = {"clone", "detach", "to", "cpu", "cuda", "tolist", "repeat_interleave", "expand"}
_STATISTICS = {"mean", "means", "std", "stds", "var", "avg", "average", "baseline", "max", "min"}
_MODULES = {"torch", "np", "numpy", "jnp", "mx", "math"}


@dataclass(frozen=True, slots=True)
class _Found:
    """A statement or a loop that makes advantages: where, from what, which rewards it centres."""

    node: ast.stmt
    target: ast.expr
    value: ast.expr
    rewards: str


def advantage_regions(body: Sequence[ast.stmt], definition: Definition | None) -> Iterator[Region]:
    """Regions of inline advantages in a function, or at the top level of a module."""
    means = set(_means(body))
    last: dict[str, list[_Found]] = {}
    for node in regions.own_statements(body):
        found = _found(node, means)
        path = path_of(found.target) if found else None
        if found and path:
            last.setdefault(path, []).append(found)
    for path, loop in _collected(body, means):
        last.setdefault(path, []).append(loop)
    said = any(says_advantages(_last(path)) for path in last)
    for path, every in last.items():
        every.sort(key=lambda found: found.node.end_lineno or 0)
        if not (said and _is_step(_last(path))):
            region = _region(body, definition, path, every)
            if region is not None:
                yield region


def _collected(body: Sequence[ast.stmt], means: set[str]) -> Iterator[tuple[str, _Found]]:
    """Advantages that a loop fills in: `advantages[rows] = …`, `advantages.extend(…)`."""
    for block in _blocks(body):
        for index, loop in enumerate(block):
            if not isinstance(loop, ast.For | ast.While):
                continue
            made = {name for before in block[:index] for name in stored(before)}
            for node in regions.own_statements(loop.body):
                name, value = _filled(node)
                if name in made and says_advantages(name) and value is not None:
                    rewards = _centred(value, means)
                    if rewards or _computes(value):
                        spot = ast.copy_location(ast.Name(name, ast.Load()), loop)
                        yield name, _Found(loop, spot, value, "")


def _blocks(body: Sequence[ast.stmt]) -> Iterator[Sequence[ast.stmt]]:
    """A block, and those in its statements."""
    yield body
    for node in body:
        if not isinstance(node, Functions | ast.ClassDef):
            for inner in regions.blocks(node):
                yield from _blocks(inner)


def _filled(node: ast.stmt) -> tuple[str, ast.expr | None]:
    """The variable that a statement puts something into, and what."""
    match node:
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value):
            return name, value
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
            return name, value
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend"), args=[value]
            )
        ):
            return name, value
    return "", None


def _is_step(name: str) -> bool:
    """Whether a name, such as `centred_rewards`, is that of a step on the way to advantages."""
    return not says_advantages(name) and bool(set(words(name)) & _CENTRED)


def _found(node: ast.stmt, means: set[str]) -> _Found | None:
    match node:
        case ast.Assign(targets=[target], value=value):
            pass
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            pass
        case ast.AugAssign(target=target, value=value):
            pass
        case _:
            return None
    path = path_of(target)
    if path is None or _of_log_probs(value):
        return None
    name, rewards = _last(path), _centred(value, means)
    own = advantage_slot(name) is Slot.REWARDS or set(words(name)) & _CENTRED
    if rewards and (own or says_advantages(name)):
        return _Found(node, target, value, rewards)
    changes = isinstance(node, ast.AugAssign) or _computes(value)
    named = says_advantages(name) and isinstance(target, ast.Name)
    return _Found(node, target, value, "") if named and changes else None


def _region(
    body: Sequence[ast.stmt], definition: Definition | None, path: str, every: Sequence[_Found]
) -> Region | None:
    node = every[-1].node
    last_step = _choice_around(body, node, path, every[0].node) or node
    way = regions.way_to(body, last_step)
    if way is None:
        return None
    value = copy.copy(every[-1].target)
    value.ctx = ast.Load()  # type: ignore[attr-defined]
    ast.copy_location(value, node)
    value.end_lineno, value.end_col_offset = node.end_lineno, node.end_col_offset
    start = regions.start_of(definition) if definition else ()
    return Region(
        f"{definition.name if definition else 'module'} (inline advantages, line {node.lineno})",
        definition.node if definition else None,
        definition.owner if definition else None,
        (*start, *way[0], regions.Step("run", last_step, way[1])),
        value,
        node,
        way[1],
        False,
        next((found.rewards for found in reversed(every) if found.rewards), ""),
        tuple(found.value for found in every),
    )


def _choice_around(
    body: Sequence[ast.stmt], node: ast.stmt, path: str, first: ast.stmt
) -> ast.If | None:
    """The outermost `if` around a statement that leaves the name with a value either way."""
    for outer in regions.own_statements(body):
        inner = list(regions.own_statements([outer])) if isinstance(outer, ast.If) else []
        if isinstance(outer, ast.If) and any(s is node for s in inner):
            made = all(_makes(branch, path) for branch in (outer.body, outer.orelse))
            if made or not any(s is first for s in inner):
                return outer
    return None


def _makes(body: Sequence[ast.stmt], path: str) -> bool:
    return any(
        isinstance(s, ast.Assign) and path in (*stored(s), *map(path_of, s.targets))
        for s in regions.own_statements(body)
    )


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _of_log_probs(value: ast.expr) -> bool:
    """Whether log-probs are in it: then it is a part of a loss under the name of advantages."""
    return any(isinstance(n, ast.Name) and is_logp(n.id) for n in ast.walk(value))


def _computes(value: ast.expr) -> bool:
    """Whether this is more than a selection or a copy of something else."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _COPIES:
            break
        value = value.func.value
    works = any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub | ast.Div) for n in ast.walk(value)
    )
    return works and not is_selection(value)


def _means(body: Sequence[ast.stmt]) -> Iterator[str]:
    """Variables that hold a mean."""
    for node in regions.own_statements(body):
        if isinstance(node, ast.Assign) and any(_is_mean(n) for n in ast.walk(node.value)):
            yield from stored(node)


def _is_mean(node: ast.AST) -> bool:
    """A call of a mean, or a sum that is divided."""
    match node:
        case ast.BinOp(left=ast.Call() as total, op=ast.Div()):
            return _called(total) == "sum"
        case ast.Call():
            return _called(node) in _MEANS
    return False


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _centred(value: ast.expr, means: set[str]) -> str:
    """The variable of the rewards in `rewards - rewards.mean()`, or an empty string."""
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            left = _variable(node.left)
            inner = list(ast.walk(node.right))
            names = {n.id for n in inner if isinstance(n, ast.Name)}
            mean = names & means or any(set(words(n)) & _MEAN_WORDS for n in names)
            if left and (mean or any(map(_is_mean, inner))):
                return _walked(value, left)
    return ""


def _walked(value: ast.expr, name: str) -> str:
    """The rewards that a comprehension takes one after the other, or the name itself."""
    for node in ast.walk(value):
        if isinstance(node, ast.comprehension) and path_of(node.target) == name:
            return _variable(node.iter) or name
    return name


def _variable(node: ast.expr) -> str:
    """The name of the rewards that an expression lays out anew, if it is one."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        base = node.func.value
        module = isinstance(base, ast.Name) and base.id in _MODULES
        node = node.args[0] if module and node.args else base
    path = path_of(node)
    name = _last(path) if path else ""
    rewards = advantage_slot(name) is Slot.REWARDS and not set(words(name)) & _STATISTICS
    return name if rewards else ""
