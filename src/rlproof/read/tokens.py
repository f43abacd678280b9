"""Where a token log-prob function normalises, divides by the temperature, and picks tokens."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from rlproof.faults.seen import Place
from rlproof.read.flow import Flow
from rlproof.read.landmarks import called, definition, place
from rlproof.read.names import Slot
from rlproof.read.targets import FunctionNode, Target, module_functions

_NORMALISERS = {"log_softmax", "softmax", "logsumexp", "exp", "cross_entropy", "Categorical"}
_HALVES = {"half", "bfloat16", "float16"}
_PICKERS = {"gather", "take_along_axis", "roll", "take"}
Test = Callable[[ast.AST], bool]


def log_probs_landmarks(tree: ast.Module, target: Target) -> dict[str, Place]:
    """Landmarks: `normaliser`, `temperature`, `pairing`, `precision`; the `def` line else."""
    temperature = target.parameter(Slot.TEMPERATURE)
    wanted: dict[str, Test] = {
        "normaliser": _normalises,
        "temperature": lambda n: temperature is not None and _scales(n, temperature.name),
        "pairing": _drops_first,
        "picking": lambda n: isinstance(n, ast.Call) and called(n) in _PICKERS,
        "precision": _halves,
    }
    functions = {node.name: node for node in module_functions(tree)}
    spots = {key: _find(target.node, functions, test) for key, test in wanted.items()}
    fallback = definition(target)
    found = {key: spot or fallback for key, spot in spots.items()}
    found["pairing"] = spots["pairing"] or spots["picking"] or fallback
    return found | {"function": fallback}


def shaping_landmarks(target: Target) -> dict[str, Place]:
    """Landmarks of reward shaping: `divergence`, the statement where the policies meet."""
    flow = Flow(target.node, {p.name: p.slot or f"?{p.name}" for p in target.parameters})
    spots = {"function": definition(target), "divergence": definition(target)}
    for node in flow.order:
        if isinstance(node, ast.Call) and called(node) in {"exp", "expm1", "square", "pow"}:
            if flow.taints[node] & {Slot.NEW, Slot.REF}:
                return spots | {"divergence": place(target.name, flow.statement[node])}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            if flow.taints[node] & {Slot.NEW, Slot.REF}:
                return spots | {"divergence": place(target.name, flow.statement[node])}
    return spots


def gauge_landmarks(target: Target) -> dict[str, Place]:
    """Landmarks of a small function: `result`, the last statement that returns."""
    returns = [n for n in ast.walk(target.node) if isinstance(n, ast.Return)]
    last = max(returns, key=lambda n: n.lineno, default=None)
    function = definition(target)
    return {"function": function, "result": place(target.name, last) if last else function}


def _find(
    node: FunctionNode, functions: dict[str, FunctionNode], test: Test, depth: int = 3
) -> Place | None:
    """The smallest statement that holds what is looked for, here or in a helper called here."""
    helpers: list[FunctionNode] = []
    for statement in _statements(node):
        for inner in ast.walk(statement):
            helper = functions.get(called(inner)) if isinstance(inner, ast.Call) else None
            if helper is not None and helper is not node:
                helpers.append(helper)
            elif test(inner):
                return place(node.name, statement)
    deeper = (_find(helper, functions, test, depth - 1) for helper in helpers if depth)
    return next(filter(None, deeper), None)


def _statements(node: FunctionNode) -> Iterator[ast.stmt]:
    """Simple statements of a function, in source order."""
    simple = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr
    found = [n for n in ast.walk(node) if isinstance(n, simple)]
    yield from sorted(found, key=lambda n: n.lineno)


def _normalises(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) in _NORMALISERS


def _scales(node: ast.AST, name: str) -> bool:
    """Whether this divides or multiplies by the temperature."""
    if isinstance(node, ast.AugAssign):
        return _names(node.value, name)
    scales = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult)
    return scales and (_names(node.right, name) or _names(node.left, name))  # type: ignore[attr-defined]


def _names(node: ast.AST, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def _drops_first(node: ast.AST) -> bool:
    """A slice `1:` of anything."""
    return (
        isinstance(node, ast.Slice)
        and isinstance(node.lower, ast.Constant)
        and node.lower.value == 1
    )


def _halves(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _HALVES
