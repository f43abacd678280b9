"""How a script uses one of its functions: its calls, and the value that one parameter gets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from rlproof.read.landmarks import called
from rlproof.read.loop.values import Values
from rlproof.read.names import Slot, advantage_slot
from rlproof.read.parameters import number
from rlproof.read.targets import FunctionNode, Parameter, Script, Target, module_functions

_NAN_AWARE = {"nanmean", "nansum", "nanstd", "nanvar", "nanmedian"}
_NAN_TESTS = {"isnan", "isfinite"}


@dataclass(frozen=True, slots=True)
class Setting:
    """A number that a parameter gets, and where that number is written."""

    value: float
    node: ast.expr
    function: str
    default: str = ""
    """The name of the setting, where the number is only the default of one: `args.group_size`."""


def is_called(script: Script, target: Target) -> bool:
    """Whether another function puts it to use."""
    return any(True for _ in _calls(script, target))


def _calls(script: Script, target: Target) -> Iterator[tuple[FunctionNode, ast.Call]]:
    """The calls of a function by others, with those around them; tests and trials left out."""
    for node in module_functions(script.source.tree):
        if node is target.node or node.name.startswith("test"):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and called(inner) == target.name:
                if not any(isinstance(a, ast.List | ast.Tuple) for a in inner.args):
                    yield node, inner


def settings(script: Script, target: Target, parameter: Parameter) -> list[Setting]:
    """The numbers that calls give to a parameter, as far as the source tells."""
    found: list[Setting] = []
    position = [p.name for p in target.parameters].index(parameter.name)
    for around, call in _calls(script, target):
        named = [k.value for k in call.keywords if k.arg == parameter.name]
        given = [*call.args[position : position + 1], *named]
        if not given and (parameter.default is None or _has_star(call)):
            continue
        if given and (of_options := _option(script, around, call, given[0])):
            found.append(of_options)
            continue
        written = _origin(script, around, given[0]) if given else parameter.default
        value = number(written)
        if value is not None and written is not None:
            found.append(Setting(value, written, around.name if given else target.name))
    return found


def _option(
    script: Script, around: FunctionNode, call: ast.Call, given: ast.expr
) -> Setting | None:
    """`args.group_size` by the one default that the file has for it.

    None where the call depends on a condition, or the script itself looks at the setting: what
    is done at its default is then not known.
    """
    match given:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str() as name)):
            pass
        case _:
            return None
    fixed = Values(script.source.tree).number(given)
    chosen = any(
        isinstance(node, ast.If | ast.IfExp | ast.Match) and call in ast.walk(node)
        for node in ast.walk(around)
    )
    if fixed is None or isinstance(fixed.value, bool | None) or chosen:
        return None
    if not isinstance(fixed.node, ast.expr) or _is_compared(script, name):
        return None
    homes = [
        node.name
        for node in module_functions(script.source.tree)
        if node.lineno <= fixed.node.lineno <= (node.end_lineno or 0)
    ]
    return Setting(fixed.value, fixed.node, homes[-1] if homes else "<module>", name)


def _is_compared(script: Script, name: str) -> bool:
    """Whether a setting is compared with anything."""
    return any(
        isinstance(node, ast.Compare)
        and any(name in (getattr(n, "attr", ""), getattr(n, "id", "")) for n in ast.walk(node))
        for node in ast.walk(script.source.tree)
    )


def _has_star(call: ast.Call) -> bool:
    """Whether a call spreads a list or a dictionary that may hold anything."""
    starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return starred or any(keyword.arg is None for keyword in call.keywords)


def _origin(script: Script, around: FunctionNode, value: ast.expr) -> ast.expr:
    """What a name stands for: the default of a parameter around it, or a module's constant."""
    if not isinstance(value, ast.Name) or value.id in _assigned(around):
        return value
    if value.id in _parameters(around):
        return defaults(around).get(value.id, value)
    return constants(script).get(value.id, value)


def _parameters(node: FunctionNode) -> set[str]:
    args = node.args
    return {arg.arg for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]}


def _assigned(node: FunctionNode) -> set[str]:
    """Names that a function assigns to."""
    return {n.id for n in ast.walk(node)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # fmt: skip


def defaults(node: FunctionNode) -> dict[str, ast.expr]:
    """The default of every parameter that has one."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    pairs = zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True)
    found = {arg.arg: default for arg, default in pairs}
    return found | {
        arg.arg: default
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is not None
    }


def constants(script: Script) -> dict[str, ast.expr]:
    """Names that the module assigns exactly once, with what they are given."""
    found: dict[str, list[ast.expr]] = {}
    for node in script.source.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found.setdefault(name, []).append(value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def forgets_groups(script: Script, target: Target) -> bool:
    """Whether statements stand in a function that takes a group size and never reads it."""
    if target.origin is None or target.origin.whole:
        return False
    line = target.node.body[-1].lineno
    around = [
        node
        for node in ast.walk(script.source.tree)
        if isinstance(node, FunctionNode) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if not around:
        return False
    home = max(around, key=lambda node: node.lineno)
    sizes = {n for n in _parameters(home) if advantage_slot(n) is Slot.GROUP_SIZE and len(n) > 1}
    read = {n.id for n in ast.walk(home) if isinstance(n, ast.Name)}
    return bool(sizes) and not sizes & read


def is_told_groups(script: Script, target: Target) -> bool:
    """Whether the function that was outlined takes groups, although nothing kept reads them."""
    homes = (
        node
        for node in ast.walk(script.source.tree)
        if isinstance(node, FunctionNode)
        and (node.name, node.lineno) == (target.node.name, target.node.lineno)
    )
    told = (Slot.GROUP_SIZE, Slot.GROUP_IDS)
    played = {p.name for p in target.parameters if p.slot not in (None, *told)}
    return bool(target.origin and target.origin.whole) and any(
        advantage_slot(name) in told and len(name) > 1 and name not in played
        for home in homes
        for name in _parameters(home)
    )


def tests_missing(target: Target) -> bool:
    """Whether a function asks which rewards are no numbers: it may leave a whole group out."""
    calls = (n for n in ast.walk(target.node) if isinstance(n, ast.Call))
    return any(called(n) in _NAN_TESTS for n in calls)


def reads_missing(target: Target) -> bool:
    """Whether an advantage function reckons with rewards that are not a number."""
    rewards = target.parameter(Slot.REWARDS)
    for node in ast.walk(target.node):
        if isinstance(node, ast.Call) and called(node) in _NAN_AWARE:
            return True
        if isinstance(node, ast.Call) and called(node) in _NAN_TESTS and rewards:
            if any(isinstance(a, ast.Name) and a.id == rewards.name for a in node.args):
                return True
    return False
