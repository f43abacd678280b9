"""Small questions about how a function is written, answered from its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlproof.faults.seen import Place
from rlproof.read.flow import Flow
from rlproof.read.landmarks import called, place, surrogate_of
from rlproof.read.names import words
from rlproof.read.outline.syntax import root_of
from rlproof.read.targets import Script, Target

RANDOM = {
    "bernoulli", "choice", "choices", "dropout", "gauss", "multinomial", "normal", "rand",
    "rand_like", "randint", "randn", "randn_like", "random", "sample", "shuffle", "uniform",
}  # fmt: skip
_VIEWS = {"ravel", "reshape", "squeeze", "transpose", "unsqueeze", "view"}
_SPREADS = {"std", "pstdev", "stdev", "nanstd", "var", "pvariance", "variance"}


def picker(target: Target) -> str | None:
    """`min` or `max`: how the choice between the two surrogate terms is written."""
    node = surrogate_of(Flow(target.node, labels(target)))
    if not isinstance(node, ast.Call):
        return None
    name = called(node)
    return "min" if "min" in name else "max" if "max" in name else None


def labels(target: Target) -> dict[str, str]:
    """The taint label of every parameter: its slot, or its own name."""
    return {p.name: p.slot or f"?{p.name}" for p in target.parameters}


def std_statement(target: Target) -> ast.stmt | None:
    """The smallest statement that calls a standard deviation or a variance."""
    for node in ast.walk(target.node):
        if isinstance(node, ast.Call) and called(node) in _SPREADS:
            holders = [
                statement
                for statement in ast.walk(target.node)
                if isinstance(statement, ast.stmt)
                and any(inner is node for inner in ast.walk(statement))
            ]
            return min(holders, key=lambda s: (s.end_lineno or 0) - s.lineno)
    return None


def compared_std(script: Script, target: Target) -> tuple[str, ast.stmt] | None:
    """Where `std = x.std() > 0`, or the same in a walrus, is divided by: by True, then.

    In the function, or in one of the module that it calls; with that function's name.
    """
    names = {called(n) for n in ast.walk(target.node) if isinstance(n, ast.Call)}
    helpers = [
        node
        for node in script.source.tree.body
        if isinstance(node, ast.FunctionDef) and node.name in names
    ]
    for function in (target.node, *helpers):
        divisors = {
            name.id
            for node in ast.walk(function)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            for name in ast.walk(node.right)
            if isinstance(name, ast.Name)
        }
        for statement in _assigning_std_compared(function, divisors):
            return getattr(function, "name", target.name), statement
    return None


def _assigning_std_compared(function: ast.AST, names: set[str]) -> Iterator[ast.stmt]:
    """Statements that give one of these names the result of comparing a spread."""
    for statement in ast.walk(function):
        if not isinstance(statement, ast.stmt) or isinstance(statement, ast.FunctionDef):
            continue
        tests = [statement.test] if isinstance(statement, ast.If | ast.While) else [statement]
        for node in (inner for test in tests for inner in ast.walk(test)):
            match node:
                case (
                    ast.NamedExpr(target=ast.Name(id=name), value=ast.Compare(left=left))
                    | ast.Assign(targets=[ast.Name(id=name)], value=ast.Compare(left=left))
                ) if name in names and isinstance(left, ast.Call) and called(left) in _SPREADS:
                    yield statement


def is_unread(target: Target, name: str) -> bool:
    """Whether a function never looks at this parameter."""
    return not any(
        isinstance(node, ast.Name) and node.id == name
        for statement in target.node.body
        for node in ast.walk(statement)
    )


def divides_by_std(target: Target) -> bool:
    """Whether the function divides by something that is called, or computed as, a std."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and any(_is_std(inner) for inner in ast.walk(node.right))
        for node in ast.walk(target.node)
    )


def _is_std(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name):
            return bool(set(words(name)) & {"std", "sigma", "sd", "stddev", "deviation"})
        case ast.Call():
            return called(node) in _SPREADS
    return False


def is_negated(script: Script, target: Target) -> bool:
    """Whether a call of the function stands right behind a minus."""
    return any(
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Call)
        and called(node.operand) == target.name
        for node in ast.walk(script.source.tree)
    )


def maximises(script: Script) -> bool:
    """Whether anything is called with `maximize=True`, as an optimizer can be."""
    return any(
        isinstance(node, ast.keyword)
        and node.arg == "maximize"
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
        for node in ast.walk(script.source.tree)
    )


def declares_unused(target: Target, names: set[str]) -> bool:
    """Whether the function deletes one of these parameters or says that it is not used."""
    deleted = {
        name.id
        for node in ast.walk(target.node)
        if isinstance(node, ast.Delete)
        for name in node.targets
        if isinstance(name, ast.Name)
    }
    said = re.search(r"\b(un|not )used\b|\bignored\b|compatib", target.doc, re.IGNORECASE)
    return bool(names & deleted) or bool(said)


def mutation(target: Target, names: set[str]) -> Place | None:
    """The first statement that assigns into one of these parameters, or into a view of one."""
    views = set(names)
    for node in ast.walk(target.node):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _viewed(value) in views:
                views.add(name)
            case ast.AugAssign(target=ast.Name(id=name)) if name in views:
                return place(target.name, node)
            case ast.Assign() | ast.AugAssign():
                spots = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(
                    isinstance(spot, ast.Subscript) and root_of(spot) in views for spot in spots
                ):
                    return place(target.name, node)
    return None


def _viewed(node: ast.expr) -> str | None:
    """The variable whose numbers an expression shares: `np.asarray(x).reshape(2, -1)` has x's."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(attr="asarray" | "as_tensor"), args=[inner, *_]):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _VIEWS:
                node = inner
            case ast.Attribute(value=inner, attr="T") | ast.Subscript(value=inner):
                node = inner
            case _:
                return node.id if isinstance(node, ast.Name) else None


def random_draw(target: Target) -> Place | None:
    """The first statement that draws random numbers, by the names of what it calls."""
    for node in ast.walk(target.node):
        if isinstance(node, ast.Call) and called(node) in RANDOM:
            return place(target.name, node)
    return None
