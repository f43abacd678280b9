"""Questions about the order in which a loss puts its terms together, answered by data flow."""

from __future__ import annotations

import ast

from rlproof.read.anatomy import labels
from rlproof.read.calls import Setting, constants, settings
from rlproof.read.flow import Flow
from rlproof.read.landmarks import called, surrogate_of
from rlproof.read.names import Slot, objective_slot, words
from rlproof.read.parameters import number
from rlproof.read.targets import Script, Target

_AVERAGES = {"mean", "nanmean", "average", "fmean", "median"}
_DROPPED = {"truncated", "truncation", "overlong", "unfinished", "aborted"}


def advantage_change(target: Target) -> ast.stmt | None:
    """The statement that changes the advantages between the two terms of the surrogate."""
    flow = Flow(target.node, labels(target))
    choice = surrogate_of(flow)
    if not isinstance(choice, ast.Call):
        return None
    homes = [home for argument in _chosen(choice) if (home := _home(flow, argument))]
    spans = sorted((home.lineno, _names(home)) for home in homes)
    if len(spans) < 2:
        return None
    (first, before), (last, after) = spans[0], spans[-1]
    for node in flow.order:
        statement = flow.statement[node]
        if first < statement.lineno < last and _reassigns(flow, statement, before & after):
            return statement
    return None


def _chosen(choice: ast.Call) -> list[ast.expr]:
    """What a choice is made from: its arguments, or the entries of `stack([a, b]).min(…)`."""
    match choice.func:
        case ast.Attribute(value=ast.Call(args=[ast.List(elts=terms) | ast.Tuple(elts=terms), *_])):
            return terms
    return choice.args


def _home(flow: Flow, argument: ast.expr) -> ast.stmt | None:
    """Where a term is built: at its last assignment, if it is a name."""
    while isinstance(argument, ast.UnaryOp):
        argument = argument.operand
    if not isinstance(argument, ast.Name):
        return flow.statement.get(argument)
    stores = [s for s in flow.statement.values() if _target_of(s) == argument.id]
    return max(stores, key=lambda s: s.lineno, default=None)


def _target_of(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.AugAssign(target=ast.Name(id=name)):
            return name
    return None


def _names(statement: ast.stmt) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(statement) if isinstance(n, ast.Name))


def _reassigns(flow: Flow, statement: ast.stmt, shared: frozenset[str]) -> bool:
    """Whether a name that both terms use gets other advantages here."""
    name, value = _target_of(statement), getattr(statement, "value", None)
    taint = flow.taints.get(value, frozenset()) if value is not None else frozenset()
    return name in shared and Slot.ADVANTAGES in taint and Slot.NEW not in taint


def ratio_average(target: Target) -> ast.stmt | None:
    """The first statement that averages log-ratios."""
    flow = Flow(target.node, labels(target))
    for node in flow.order:
        if isinstance(node, ast.Call) and called(node) in _AVERAGES:
            taint = flow.taints[node]
            if {Slot.NEW, Slot.OLD} <= taint and Slot.ADVANTAGES not in taint:
                return flow.statement[node]
    return None


def advantage_average(target: Target) -> ast.stmt | None:
    """The last statement that averages advantages alone."""
    flow, found = Flow(target.node, labels(target)), None
    for node in flow.order:
        if isinstance(node, ast.Call) and called(node) in _AVERAGES | {"std", "pstdev", "stdev"}:
            taint = flow.taints[node]
            if Slot.ADVANTAGES in taint and not {Slot.NEW, Slot.OLD} & taint:
                found = flow.statement[node]
    return found


def advantage_reduction(target: Target) -> ast.stmt | None:
    """The first statement that sums or averages advantages alone."""
    flow = Flow(target.node, labels(target))
    for node in flow.order:
        if isinstance(node, ast.Call) and called(node) in _AVERAGES | {"sum", "nansum"}:
            taint = flow.taints[node]
            if Slot.ADVANTAGES in taint and not {Slot.NEW, Slot.OLD} & taint:
                return flow.statement[node]
    return None


def empties_rows(script: Script) -> bool:
    """Whether the script takes whole rows out of a mask, those cut off at the length limit."""
    return any(_drops(node) for node in ast.walk(script.source.tree))


def _drops(node: ast.AST) -> bool:
    """A product, or a choice, of a mask and of something that says which rows were cut off."""
    match node:
        case ast.BinOp(op=ast.Mult() | ast.BitAnd()):
            pass
        case ast.Call() if called(node) in {"where", "masked_fill", "logical_and"}:
            pass
        case _:
            return False
    names = [set(words(n.id)) for n in ast.walk(node) if isinstance(n, ast.Name)]
    whole = [name for name in names if {"sample", "mask"} <= name or {"row", "mask"} <= name]
    if whole and any("mask" in name and name not in whole for name in names):
        return True  # token_mask * sample_mask
    masks = any("mask" in name and not name & _DROPPED for name in names)
    return masks and any(name & _DROPPED for name in names)


def _aliases(function: ast.AST) -> dict[str, str]:
    """`eps = clip_eps`: the name behind a name."""
    return {
        node.targets[0].id: node.value.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Name)
    }


def lower_defaults(script: Script, target: Target) -> list[Setting]:
    """Parameters that a clip subtracts from 1, with their default and where it is written.

    Those without a default have the one of the setting that the calls give them.
    """
    plain = _aliases(target.node)
    subtracted = {
        plain.get(node.right.id, node.right.id)
        for node in ast.walk(target.node)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Sub)
        and number(node.left) == 1
        and isinstance(node.right, ast.Name)
    }
    found = []
    for parameter in target.parameters:
        clips = objective_slot(parameter.name) in (Slot.CLIP, Slot.CLIP_LOW)
        if not clips or parameter.name not in subtracted:
            continue
        if parameter.required:
            found += [s for s in settings(script, target, parameter) if s.default][:1]
            continue
        written = parameter.default
        if isinstance(written, ast.Name):
            written = constants(script).get(written.id)
        value = number(written)
        if written is not None and value is not None:
            found.append(Setting(value, written, target.name, parameter.name))
    return found
