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
    spots["sum"] = _summed(target, flow) or spots["divergence"]
    for node in flow.order:
        if isinstance(node, ast.Call) and called(node) in {"exp", "expm1", "square", "pow"}:
            if flow.taints[node] & {Slot.NEW, Slot.REF}:
                return spots | {"divergence": place(target.name, flow.statement[node])}
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            if flow.taints[node] & {Slot.NEW, Slot.REF}:
                return spots | {"divergence": place(target.name, flow.statement[node])}
    return spots


def cut_mask(target: Target) -> ast.stmt | None:
    """The first statement that takes a part of a mask that is given."""
    masks = {p.name for p in target.parameters if p.slot in (Slot.MASK, Slot.COMPLETION_MASK)}
    for statement in _statements(target.node):
        for node in ast.walk(statement):
            match node:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple()) if name in masks:
                    return statement
    return None


def _summed(target: Target, flow: Flow) -> Place | None:
    """The last statement that sums or averages what is made of both policies."""
    found = [
        flow.statement[node]
        for node in flow.order
        if isinstance(node, ast.Call)
        and called(node) in {"sum", "mean", "nansum", "nanmean", "average"}
        and {Slot.NEW, Slot.REF} <= flow.taints[node]
    ]
    return place(target.name, found[-1]) if found else None


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


def extraction_landmarks(tree: ast.Module, target: Target) -> dict[str, Place]:
    """Landmarks of a function that asks a model, those of a log-softmax among them.

    `call` is the statement that asks the model, `slice` the last one before the tokens are
    picked that takes a part of the logits, `window` the last one of all that takes a part,
    `sum` the last that adds up, `choice` the last that averages or takes the largest.
    """
    spots = log_probs_landmarks(tree, target)
    models = {p.name: "model" for p in target.parameters if p.slot is Slot.MODEL}
    flow = Flow(target.node, models)
    read = [node for node in flow.order if "model" in flow.taints[node]]
    picks = next((flow.statement[n] for n in read if _picks(n)), None)
    slices = [flow.statement[n] for n in read if isinstance(n, ast.Subscript) and _is_part(n)]
    before = [s for s in slices if picks is None or s.lineno <= picks.lineno]
    sums = [flow.statement[n] for n in read if isinstance(n, ast.Call) and called(n) in _SUMS]
    call = next((flow.statement[n] for n in read if _asks(n, models)), None)
    choices = [flow.statement[n] for n in read if isinstance(n, ast.Call) and _chooses(n)]
    chosen = {
        "call": call,
        "choice": choices[-1] if choices else picks,
        "slice": before[-1] if before else picks,
        "window": slices[-1] if slices else picks,
        "sum": sums[-1] if sums else None,
        "mask": cut_mask(target),
        "picking": picks,
    }
    found = {key: place(target.name, node) for key, node in chosen.items() if node}
    fallback = {key: spots["pairing"] if key == "slice" else spots["function"] for key in chosen}
    return spots | fallback | found


_SUMS = {"sum", "mean", "masked_mean", "masked_sum", "nansum"}


def _chooses(node: ast.Call) -> bool:
    return called(node) in {"mean", "max", "amax", "topk"}


def _picks(node: ast.AST) -> bool:
    known = _PICKERS | {"cross_entropy", "nll_loss", "log_prob", "take_along_dim"}
    return isinstance(node, ast.Call) and called(node) in known


def _is_part(node: ast.Subscript) -> bool:
    """A subscript that takes a stretch of an axis."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return any(isinstance(p, ast.Slice) and (p.lower or p.upper) for p in parts)


def _asks(node: ast.AST, models: dict[str, str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    func = node.func
    while isinstance(func, ast.Attribute):
        func = func.value
    return isinstance(func, ast.Name) and func.id in models
