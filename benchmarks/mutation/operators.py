"""Small slips in healthy code: each operator yields edits of one expression or statement.

The first six are what mutation studies of RL programs use (muPRL, arXiv 2408.15150; RLMutation,
arXiv 2301.05651; only their lists of operators were read); the others are slips of GRPO code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Edits = Iterator[tuple[ast.AST, str]]
Operator = Callable[[ast.AST], Edits]


@dataclass(frozen=True)
class Mutant:
    """One edit of a text."""

    operator: str
    line: int
    start: int
    end: int
    new: str
    """What stands in place of the bytes from `start` to `end`."""

    def of(self, text: str) -> str:
        """The text with this edit."""
        data = text.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()


def mutants(text: str, nodes: list[ast.AST]) -> list[Mutant]:
    """Every edit within these nodes that leaves valid Python, each text once."""
    starts = [0]
    for line in text.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found: dict[tuple[int, int, str], Mutant] = {}
    for node in (n for top in nodes for n in ast.walk(top)):
        for name, operator in OPERATORS.items():
            for spot, new in operator(node):
                start = starts[spot.lineno - 1] + spot.col_offset
                end = starts[spot.end_lineno - 1] + spot.end_col_offset
                one = Mutant(name, spot.lineno, start, end, new)
                if (start, end, new) not in found and _parses(one.of(text)):
                    found[start, end, new] = one
    return list(found.values())


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _src(node: ast.AST) -> str:
    text = ast.unparse(node)
    simple = ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.Constant
    return text if isinstance(node, simple) else f"({text})"


def _called(node: ast.AST) -> str:
    """The last name of what is called: `clamp` of `torch.clamp(x)` and of `x.clamp()`."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _renamed(node: ast.Call, new: str) -> str:
    function = node.func
    name = f"{_src(function.value)}.{new}" if isinstance(function, ast.Attribute) else new
    return f"{name}({', '.join(ast.unparse(a) for a in [*node.args, *node.keywords])})"


_MODULES = {"torch", "np", "numpy", "math", "F", "jnp"}


def _subject(node: ast.Call) -> str | None:
    """What a function or a method is applied to."""
    function = node.func
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) not in _MODULES:
        return _src(function.value)
    return _src(node.args[0]) if node.args else None


def _arithmetic(node: ast.AST, pairs: dict[type, str]) -> Edits:
    if isinstance(node, ast.BinOp) and (new := pairs.get(type(node.op))):
        yield node, f"({_src(node.left)} {new} {_src(node.right)})"


def plus_minus(node: ast.AST) -> Edits:
    yield from _arithmetic(node, {ast.Add: "-", ast.Sub: "+"})


def times_divided(node: ast.AST) -> Edits:
    yield from _arithmetic(node, {ast.Mult: "/", ast.Div: "*"})


def comparison(node: ast.AST) -> Edits:
    turned = {ast.Lt: ">", ast.Gt: "<", ast.LtE: ">=", ast.GtE: "<=", ast.Eq: "!=", ast.NotEq: "=="}
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        if new := turned.get(type(node.ops[0])):
            yield node, f"({_src(node.left)} {new} {_src(node.comparators[0])})"


def constant(node: ast.AST) -> Edits:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield node, repr(node.value + 1)


def statement_left_out(node: ast.AST) -> Edits:
    said = isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant)
    if said or isinstance(node, ast.AugAssign):
        yield node, "pass"


def arguments_swapped(node: ast.AST) -> Edits:
    if isinstance(node, ast.Call):
        args = [ast.unparse(a) for a in node.args]
        for i in range(len(args) - 1):
            swapped = [*args[:i], args[i + 1], args[i], *args[i + 2 :]]
            keywords = [ast.unparse(k) for k in node.keywords]
            yield node, f"{_src(node.func)}({', '.join(swapped + keywords)})"


def sign(node: ast.AST) -> Edits:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node, _src(node.operand)
    if isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Tuple):
        yield node, f"return -{_src(node.value)}"


def turned_round(node: ast.AST) -> Edits:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div):
        mark = "-" if isinstance(node.op, ast.Sub) else "/"
        yield node, f"({_src(node.right)} {mark} {_src(node.left)})"


_OTHERS = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "amax": "amin",
    "clamp_min": "clamp_max", "clamp_max": "clamp_min",
}  # fmt: skip
_SPREADS = {"std": "var", "var": "std", "pstdev": "stdev", "stdev": "pstdev"}
_SUMS = {"mean": "sum", "sum": "mean"}


def _instead(names: dict[str, str]) -> Operator:
    def edits(node: ast.AST) -> Edits:
        if new := names.get(_called(node)):
            yield node, _renamed(node, new)  # type: ignore[arg-type]

    return edits


def _left_out(*names: str) -> Operator:
    def edits(node: ast.AST) -> Edits:
        if _called(node) in names and (subject := _subject(node)):  # type: ignore[arg-type]
            yield node, subject

    return edits


def bounds(node: ast.AST) -> Edits:
    """`clamp(min=x)` and `clamp(max=x)`; one bound of two left out."""
    if _called(node) in ("clip", "clamp") and isinstance(node, ast.Call):
        turned = {"min": "max", "max": "min"}
        names = [k.arg for k in node.keywords]
        if len(names) == 1 and names[0] in turned:
            args = [*map(ast.unparse, node.args)]
            value = ast.unparse(node.keywords[0].value)
            yield node, f"{_src(node.func)}({', '.join([*args, f'{turned[names[0]]}={value}'])})"


def mask_left_out(node: ast.AST) -> Edits:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        for kept, gone in ((node.left, node.right), (node.right, node.left)):
            if "mask" in ast.unparse(gone).lower():
                yield node, _src(kept)


def factor_left_out(node: ast.AST) -> Edits:
    """A factor or a divisor that is no mask."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        yield node, _src(node.left)


def axis(node: ast.AST) -> Edits:
    if isinstance(node, ast.keyword) and node.arg in ("dim", "axis"):
        if ast.unparse(node.value) in ("-1", "1", "0"):
            yield node.value, "0" if ast.unparse(node.value) != "0" else "-1"
    if isinstance(node, ast.keyword) and node.arg == "keepdim":
        yield node.value, str(ast.unparse(node.value) != "True")


def window(node: ast.AST) -> Edits:
    """`[:-1]` and `[1:]`, the slip of every shift; also no slice at all."""
    if isinstance(node, ast.Slice) and hasattr(node, "lineno"):
        text = ast.unparse(node)
        for one, other in ((":-1", "1:"), ("1:", ":-1")):
            if text == one:
                yield node, other
                yield node, ":"


_TWINS = (("old", "ref"), ("new", "old"), ("low", "high"), ("sampler", "old"))


def other_tensor(node: ast.AST) -> Edits:
    """A name for that of its sibling."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for one, other in _TWINS:
            for a, b in ((one, other), (other, one)):
                if node.id.startswith(f"{a}_") or node.id.endswith(f"_{a}"):
                    yield node, node.id.replace(a, b)


OPERATORS: dict[str, Operator] = {
    "+ for −": plus_minus,
    "× for ÷": times_divided,
    "< for >": comparison,
    "constant + 1": constant,
    "statement left out": statement_left_out,
    "arguments swapped": arguments_swapped,
    "sign": sign,
    "a − b turned round": turned_round,
    "min for max": _instead(_OTHERS),
    "std for variance": _instead(_SPREADS),
    "mean for sum": _instead(_SUMS),
    "clip left out": _left_out("clip", "clamp", "clamp_min", "clamp_max"),
    "bound of a clamp": bounds,
    "exp or log left out": _left_out("exp", "log", "expm1", "log1p"),
    "detach left out": _left_out("detach", "stop_gradient"),
    "abs or square left out": _left_out("abs", "square"),
    "mask left out": mask_left_out,
    "factor left out": factor_left_out,
    "axis": axis,
    "window": window,
    "sibling's name": other_tensor,
}
