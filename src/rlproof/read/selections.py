"""Which rows of a batch a tensor holds: picked by a permutation, a slice, a filter.

Statements of a function are followed in order, once. What an unknown call returns is followed only
where it is given a name of log-probs, advantages or a mask; a reduction ends the trail.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from rlproof.read.landmarks import called
from rlproof.read.names import Slot, objective_slot
from rlproof.read.targets import FunctionNode

_RANDOM = {"randperm", "permutation"}
_REDUCTIONS = {"sum", "mean", "item", "max", "min", "norm", "len", "std", "var", "numel", "all",
               "any", "print", "backward", "append"}  # fmt: skip
_ROWS = (Slot.NEW, Slot.OLD, Slot.REF, Slot.ADVANTAGES, Slot.MASK, Slot.REWARDS)


@dataclass(frozen=True, slots=True)
class Selection:
    """One way to pick rows: its kind, what it depends on, and the statement that picks."""

    kind: str
    """`permutation`, `block`, `stride`, `filter` or `prefix`."""
    key: str
    statement: ast.stmt
    text: str

    def contradicts(self, other: Selection) -> bool:
        """Whether rows picked this way and the other way can't be the same ones."""
        kinds = {self.kind, other.kind}
        if kinds == {"permutation"}:
            return self.key != other.key
        return kinds in ({"block", "stride"}, {"filter", "prefix"}) and self.key == other.key


@dataclass(frozen=True, slots=True)
class Clash:
    """Two tensors that are used together and hold other rows."""

    function: str
    node: ast.AST
    odd: Selection
    others: Selection


Trail = frozenset[Selection]
_NONE: Trail = frozenset()


def clashes(tree: ast.Module, losses: dict[str, tuple[str, ...]]) -> Iterator[Clash]:
    """Every place of a file where rows are mixed up.

    Args:
        tree: the file.
        losses: the functions that pair their arguments row by row, with the parameters that are
            rows.
    """
    shufflers = {n.name for n in tree.body if isinstance(n, FunctionNode) and _shuffles(n)}
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            yield from _Reader(node.name, losses, shufflers).read(node.body)
    top = [s for s in tree.body if not isinstance(s, FunctionNode | ast.ClassDef)]
    yield from _Reader("<module>", losses, shufflers).read(top)


def _shuffles(node: FunctionNode) -> bool:
    """Whether a function returns its argument in an order that it draws itself."""
    names = {a.arg for a in node.args.args}
    match node.body[-1]:
        case ast.Return(value=ast.Subscript(value=ast.Name(id=name), slice=index)):
            drawn = any(isinstance(n, ast.Call) and called(n) in _RANDOM for n in ast.walk(index))
            return name in names and drawn and len(node.args.args) == 1
    return False


class _Reader:
    def __init__(
        self, function: str, losses: dict[str, tuple[str, ...]], shufflers: set[str]
    ) -> None:
        self.function = function
        self.losses = losses
        self.shufflers = shufflers
        self.trails: dict[str, Trail] = {}
        self.indices: dict[str, Selection] = {}
        self.loops: list[str] = []
        self.filters: set[str] = set()

    def read(self, body: list[ast.stmt]) -> Iterator[Clash]:
        for statement in body:
            if isinstance(statement, FunctionNode | ast.ClassDef):
                continue
            if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
                self.loops.append(statement.target.id)
                yield from self.read(statement.body)
                self.loops.pop()
                continue
            for inner in ("body", "orelse", "finalbody"):
                yield from self.read(getattr(statement, inner, None) or [])
            if not hasattr(statement, "body"):
                yield from self._simple(statement)

    def _simple(self, statement: ast.stmt) -> Iterator[Clash]:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and called(node) in self.losses:
                yield from self._call(node, statement)
            elif isinstance(node, ast.BinOp) and _speaks(node):
                sides = [self._trail(side, statement) for side in (node.left, node.right)]
                yield from self._clash(node, sides)
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, value, statement)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for one, value in zip(names, values, strict=False):
                    if isinstance(one, ast.Name):
                        self._assign(one.id, value, statement)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value):
                into, given = self.trails.get(name, _NONE), self._trail(value, statement)
                yield from self._clash(statement, [into, given])

    def _call(self, node: ast.Call, statement: ast.stmt) -> Iterator[Clash]:
        names = self.losses[called(node)]
        given = [a for name, a in zip(names, node.args, strict=False) if name]
        given += [k.value for k in node.keywords if k.arg in names]
        yield from self._clash(node, [self._trail(a, statement) for a in given])

    def _clash(self, node: ast.AST, trails: list[Trail]) -> Iterator[Clash]:
        """Of two ways the rarer one is odd, of two as frequent ones the later."""
        ways = [selection for trail in trails for selection in trail]
        for one in ways:
            for other in ways:
                if one.contradicts(other):
                    counts = [sum(w in trail for trail in trails) for w in (one, other)]
                    later = one.statement.lineno > other.statement.lineno
                    if counts[0] < counts[1] or (counts[0] == counts[1] and later):
                        yield Clash(self.function, node, one, other)
                        return

    def _assign(self, name: str, value: ast.expr, statement: ast.stmt) -> None:
        self.trails.pop(name, None)
        self.indices.pop(name, None)
        self.filters.discard(name)
        if (index := self._index(value, statement)) is not None:
            self.indices[name] = index
        elif _filters(value):
            self.filters.add(name)
        shuffled = isinstance(value, ast.Call) and called(value) in self.shufflers
        known = objective_slot(name) in _ROWS or shuffled or not _is_unknown(value)
        if known and (trail := self._trail(value, statement)):
            self.trails[name] = trail

    def _index(self, node: ast.expr, statement: ast.stmt) -> Selection | None:
        """The rows that an index picks."""
        match node:
            case ast.Call() if called(node) in _RANDOM:
                text = ast.unparse(node)
                return Selection("permutation", f"{node.lineno}:{node.col_offset}", statement, text)
            case ast.Name(id=name) if name in self.filters:
                return Selection("filter", name, statement, name)
            case ast.Name(id=name):
                return self.indices.get(name)
            case ast.Subscript(value=ast.Name(id=name)) if name in self.indices:
                return self.indices[name]  # a part of a permutation
            case ast.Call(func=ast.Name(id="slice"), args=[low, high]):
                return self._slice(low, high, None, statement)
            case ast.Slice(lower=low, upper=high, step=step):
                return self._slice(low, high, step, statement)
            case ast.Tuple(elts=[first, *_]):
                return self._index(first, statement)
        return None

    def _slice(
        self,
        low: ast.expr | None,
        high: ast.expr | None,
        step: ast.expr | None,
        statement: ast.stmt,
    ) -> Selection | None:
        text = ":".join(ast.unparse(part) if part else "" for part in (low, high, step)).rstrip(":")
        if isinstance(low, ast.Name) and low.id in self.loops and step is not None and not high:
            return Selection("stride", low.id, statement, text)
        if step is None and isinstance(low, ast.BinOp) and isinstance(low.op, ast.Mult) and high:
            sides = {n.id for n in (low.left, low.right) if isinstance(n, ast.Name)}
            for loop in sides & set(self.loops):
                return Selection("block", loop, statement, text)
        if low is None and step is None and (kept := self._length(high, statement)):
            return Selection("prefix", kept, statement, text)
        return None

    def _length(self, node: ast.expr | None, statement: ast.stmt) -> str:
        """The filter whose result is so long: `len(kept)`, `kept.shape[0]`."""
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[of]):
                pass
            case ast.Subscript(value=ast.Attribute(value=of, attr="shape")):
                pass
            case ast.Call(func=ast.Attribute(value=of, attr="size")):
                pass
            case _:
                return ""
        kept = [s.key for s in self._trail(of, statement) if s.kind == "filter"]
        return kept[0] if len(kept) == 1 else ""

    def _trail(self, node: ast.expr, statement: ast.stmt) -> Trail:
        match node:
            case ast.Name(id=name):
                return self.trails.get(name, _NONE)
            case ast.Subscript(value=value, slice=index):
                picked = self._index(index, statement)
                if picked is None and _reorders(index):
                    return _NONE
                return frozenset({picked}) if picked else self._trail(value, statement)
            case ast.Call(func=ast.Name(id=name), args=[_]) if name in self.shufflers:
                key = f"{node.lineno}:{node.col_offset}"
                drawn = Selection("permutation", key, statement, ast.unparse(node))
                return frozenset({drawn})
            case ast.Call() if called(node) in _REDUCTIONS or called(node) in self.losses:
                return _NONE
            case ast.Call(func=func, args=args):
                inner = [func.value] if isinstance(func, ast.Attribute) else []
                found = _NONE.union(*(self._trail(n, statement) for n in (*inner, *args)))
                mixed = any(one.contradicts(other) for one in found for other in found)
                return _NONE if mixed else found  # what it does with both is not known
            case ast.BinOp(left=left, right=right):
                return self._trail(left, statement) | self._trail(right, statement)
            case ast.UnaryOp(operand=operand):
                return self._trail(operand, statement)
            case ast.DictComp(value=value):
                return self._trail(value, statement)
        return _NONE


def _speaks(node: ast.BinOp) -> bool:
    """Whether a name in it is one of what belongs together row by row."""
    names = (n.id for n in ast.walk(node) if isinstance(n, ast.Name))
    return any(objective_slot(name) in _ROWS for name in names)


def _filters(node: ast.expr) -> bool:
    """Whether a value is a mask of rows: a comparison, or one repeated for each row."""
    match node:
        case ast.Compare():
            return True
        case ast.Call(func=ast.Attribute(value=inner, attr=("repeat_interleave" | "repeat" |
                      "expand" | "flatten" | "view" | "reshape" | "bool"))):  # fmt: skip
            return _filters(inner)
    return False


def _reorders(index: ast.expr) -> bool:
    """Whether an index may pick rows in a way that is not known: anything but constants."""
    first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
    return isinstance(first, ast.Name | ast.Call | ast.Subscript | ast.Attribute)


def _is_unknown(node: ast.expr) -> bool:
    """Whether a call decides what rows come out of it."""
    elementwise = {"exp", "log", "clamp", "clip", "detach", "float", "to", "squeeze", "unsqueeze",
                   "min", "minimum", "maximum", "cuda", "cpu"}  # fmt: skip
    return isinstance(node, ast.Call) and called(node) not in elementwise
