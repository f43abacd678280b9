"""Statistics of rewards that a function is given: its caller computes them.

`loss(logps, rewards, mean, std)`, called with `mean = rewards.mean()`: inside the function the
mean is that of the rewards. Without a call that shows it, nothing is known of the parameter.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import replace

from rlproof.read.names import Slot, advantage_slot, words
from rlproof.read.outline.inputs import said
from rlproof.read.outline.regions import Region, Step, own_statements
from rlproof.read.outline.syntax import Functions, at, free

_NAMED = {"mean", "means", "std", "stds", "mu", "sigma", "avg", "var", "baseline"}
_COMPUTED = {"mean", "nanmean", "std", "var", "fmean", "pstdev", "stdev", "sum", "median"}


def with_statistics(region: Region, tree: ast.Module) -> Region:
    """The region with the statistics that its function is given computed at its start."""
    home = region.home
    entered = [i for i, step in enumerate(region.steps) if step.kind == "enter"]
    if home is None or not entered:
        return region
    names = [arg.arg for arg in [*home.args.posonlyargs, *home.args.args, *home.args.kwonlyargs]]
    wanted = [name for name in names if set(words(name)) & _NAMED]
    rewards = [name for name in names if _are_rewards(name)]
    if not wanted or len(rewards) != 1:
        return region
    given = dict(_given(home, names, tree))
    made: list[Step] = []
    for name in wanted:
        value = given.get(name)
        base = _base(value) if value is not None else None
        if value is not None and base is not None:
            made.append(Step("run", _assigned(name, value, base, rewards[0])))
    at_start = entered[-1] + 1
    return replace(region, steps=(*region.steps[:at_start], *made, *region.steps[at_start:]))


def _are_rewards(name: str) -> bool:
    return said(name, advantage_slot) is Slot.REWARDS


def _given(
    home: ast.FunctionDef | ast.AsyncFunctionDef, names: list[str], tree: ast.Module
) -> Iterator[tuple[str, ast.expr]]:
    """What calls of a function give its parameters, variables replaced by what they hold."""
    own = names[1:] if names[:1] == ["self"] else names
    for caller in ast.walk(tree):
        if not isinstance(caller, Functions) or caller is home:
            continue
        for call in ast.walk(caller):
            if isinstance(call, ast.Call) and _name(call.func) == home.name:
                pairs = [*zip(own, call.args, strict=False)]
                pairs += [(k.arg, k.value) for k in call.keywords if k.arg]
                for name, value in pairs:
                    yield name, _held(value, caller)


def _name(func: ast.expr) -> str:
    return getattr(func, "attr", getattr(func, "id", ""))


def _held(value: ast.expr, caller: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.expr:
    """What the one assignment of a variable gives it."""
    if not isinstance(value, ast.Name):
        return value
    found = [
        node.value
        for node in own_statements(caller.body)
        if isinstance(node, ast.Assign)
        and any(isinstance(t, ast.Name) and t.id == value.id for t in node.targets)
    ]
    return found[0] if len(found) == 1 else value


def _base(value: ast.expr) -> str | None:
    """The rewards that a statistic is taken of; None where it is anything else."""
    computes = any(isinstance(n, ast.Call) and _name(n.func) in _COMPUTED for n in ast.walk(value))
    names = {name for name in free(value) if _are_rewards(name)}
    modules = free(value) - names
    others = modules - {"torch", "np", "numpy", "mx", "jnp", "statistics", "sum", "len"}
    return names.pop() if computes and len(names) == 1 and not others else None


def _assigned(name: str, value: ast.expr, base: str, rewards: str) -> ast.stmt:
    """`name = value`, of the rewards under the name that they have in the function."""
    made = copy.deepcopy(value)
    for node in ast.walk(made):
        if isinstance(node, ast.Name) and node.id == base:
            node.id = rewards
    place = at(ast.Name(name, ast.Store()), value)
    return ast.copy_location(ast.Assign([place], made), value)
