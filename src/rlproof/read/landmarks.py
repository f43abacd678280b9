"""Where in a function each step of the objective is written, found by data flow.

A landmark is a statement (or loop) that a finding about that step points at. A step that
can't be located falls back to the function's `def` line, never to a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.faults.seen import Place
from rlproof.read.flow import Flow
from rlproof.read.names import Slot, words
from rlproof.read.targets import FunctionNode, Target, body_without_doc

_PICKERS = {"min", "max", "minimum", "maximum", "fmin", "fmax", "amin", "amax"}
_REDUCERS = {"sum", "mean", "nanmean", "masked_mean", "average", "fsum", "dot", "einsum"}
CLIPPERS = {"clip", "clamp", "clamp_", "clip_by_value"}
WHITENING = {"whiten", "whitened", "whitening", "normalize", "normalise", "standardize"}
"""Words of the names of functions that take mean and std of what they are given."""
_SURROGATE = "surrogate"


def place(function: str, node: ast.AST) -> Place:
    """The span of one node."""
    line, end = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
    start, stop = node.col_offset, node.end_col_offset or 0  # type: ignore[attr-defined]
    return Place(function, line, end, start, stop)


def definition(target: Target) -> Place:
    """The `def` line of a function."""
    node = target.node
    start = node.col_offset
    return Place(target.name, node.lineno, node.lineno, start, start + len(f"def {node.name}"))


def clipping(target: Target) -> Place:
    """The first statement that clips anything; the `def` line without one."""
    for node in ast.walk(target.node):
        if isinstance(node, ast.Assign | ast.Return | ast.AugAssign | ast.AnnAssign):
            if any(isinstance(n, ast.Call) and called(n) in CLIPPERS for n in ast.walk(node)):
                return place(target.name, node)
    return definition(target)


def comparing(target: Target) -> Place:
    """The first assignment that compares anything; the `def` line without one."""
    for node in ast.walk(target.node):
        if isinstance(node, ast.Assign | ast.Return):
            if any(isinstance(n, ast.Compare) for n in ast.walk(node)):
                return place(target.name, node)
    return definition(target)


def loss_landmarks(target: Target) -> dict[str, Place]:
    """Landmarks of a loss: ratio, surrogate, sign, divergence, slots, reduce, clip, beta."""
    found = _LossAnatomy(target).landmarks()
    spots = {key: place(target.name, node) for key, node in found.items() if node is not None}
    fallback = definition(target)
    for key in ("ratio", "surrogate", "sign", "divergence", "slots", "reduce", "clip", "beta"):
        spots.setdefault(key, fallback)
    spots.setdefault("penalty", spots["divergence"])
    spots.setdefault("old_penalty", spots["divergence"])
    spots.setdefault("width", spots["reduce"])
    spots.setdefault("in_reward", spots["divergence"])
    spots.setdefault("estimate", spots["divergence"])
    return spots


class _LossAnatomy:
    def __init__(self, target: Target) -> None:
        self.target = target
        labels = {p.name: p.slot or f"?{p.name}" for p in target.parameters}
        first = Flow(target.node, labels)
        self.surrogate = surrogate_of(first)
        marks = {self.surrogate: _SURROGATE} if self.surrogate else {}
        self.flow = Flow(target.node, labels, marks)

    def landmarks(self) -> dict[str, ast.AST | None]:
        sign = self._sign()
        loop = self._loop(sign)
        reduce = self._reduce()
        return {
            "ratio": self._meeting(Slot.NEW, Slot.OLD),
            "surrogate": self._of(self.surrogate),
            "sign": sign,
            "divergence": self._divergence(),
            "slots": loop or reduce or sign,
            "reduce": reduce or loop,
            "clip": self._bounds(),
            "beta": self._first_use(Slot.BETA) or self._scaled_penalty(),
            "penalty": self._penalty(),
            "old_penalty": self._last_meeting(Slot.NEW, Slot.OLD),
            "width": self._width(),
            "in_reward": self._in_reward(),
            "estimate": self._estimate(),
        }

    def _of(self, node: ast.AST | None) -> ast.stmt | None:
        return self.flow.statement.get(node) if node else None

    def _meeting(self, first: Slot, second: Slot) -> ast.stmt | None:
        """The statement where two parameters first stand on the two sides of an operator."""
        return next(self._meetings(first, second), None)

    def _last_meeting(self, first: Slot, second: Slot) -> ast.stmt | None:
        """The last such statement, where there are several."""
        found = list(self._meetings(first, second))
        handed = self._handed(first, second)
        return handed or found[-1] if len(found) > 1 or (found and handed) else None

    def _handed(self, first: Slot, second: Slot) -> ast.stmt | None:
        """The last statement that gives a function one parameter in one argument, one in another.

        What meets inside a helper is pointed at where the helper is called.
        """
        last: ast.stmt | None = None
        for node in self.flow.order:
            if not isinstance(node, ast.Call) or called(node) in _PICKERS | _REDUCERS:
                continue
            given = [self.flow.taints[a] for a in (*node.args, *(k.value for k in node.keywords))]
            one = any(first in taint and second not in taint for taint in given)
            if one and any(second in taint and first not in taint for taint in given):
                last = self._of(node)
        return last

    def _divergence(self) -> ast.stmt | None:
        """Where the two policies meet alone, or are handed on together, or meet at all."""
        pair = Slot.NEW, Slot.REF
        alone = next(self._meetings(*pair, alone=True), None)
        return alone or self._handed(*pair) or self._meeting(*pair)

    def _meetings(self, first: Slot, second: Slot, alone: bool = False) -> Iterator[ast.stmt]:
        for node in self.flow.order:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div):
                left, right = self.flow.taints[node.left], self.flow.taints[node.right]
                for one, other in ((left, right), (right, left)):
                    statement = self._of(node)
                    mixed = second in one or (alone and first in other)
                    if first in one and second in other and not mixed and statement:
                        yield statement

    def _sign(self) -> ast.stmt | None:
        """Where the surrogate enters the sum: its own statement if that already adds it up."""
        home = self._of(self.surrogate)
        if home is None or isinstance(home, ast.AugAssign | ast.Return):
            return home
        if any(isinstance(n, ast.USub) for n in ast.walk(home)) or self._reduces(home):
            return home
        for node in self.flow.order:
            later = self.flow.statement[node]
            if later.lineno > home.lineno and _SURROGATE in self.flow.taints[node]:
                return later
        return home

    def _loop(self, sign: ast.stmt | None) -> ast.stmt | None:
        """The innermost loop over slots: it walks over something tainted, or over a range."""
        loops = self.flow.loops.get(sign, ()) if sign else ()
        return loops[-1] if loops else None

    def _reduces(self, statement: ast.stmt) -> bool:
        return any(isinstance(n, ast.Call) and called(n) in _REDUCERS for n in ast.walk(statement))

    def _reduce(self) -> ast.stmt | None:
        """The last statement that sums, averages or divides what holds the surrogate."""
        last: ast.stmt | None = None
        for node in self.flow.order:
            sums = isinstance(node, ast.Call) and called(node) in _REDUCERS
            divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            if (sums or divides) and _SURROGATE in self.flow.taints[node]:
                last = self._of(node)
        return last

    def _clip(self) -> ast.stmt | None:
        """Where the ratio is clipped, by whatever bounds."""
        for node in self.flow.order:
            if isinstance(node, ast.Call) and called(node) in CLIPPERS | _PICKERS:
                taint = self.flow.taints[node]
                if Slot.NEW in taint and Slot.ADVANTAGES not in taint:
                    return self._of(node)
        return None

    def _bounds(self) -> ast.stmt | None:
        """Where the bounds are used first; a statement that only renames one is no use."""
        first = self._first_use(Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH)
        computes = (ast.BinOp, ast.Call)
        if isinstance(first, ast.Assign):
            if not any(isinstance(node, computes) for node in ast.walk(first.value)):
                return self._clip() or first
        return first or self._clip()

    def _scaled_penalty(self) -> ast.stmt | None:
        """Where something that is no parameter multiplies the divergence."""
        for node in self.flow.order:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                sides = self.flow.taints[node.left], self.flow.taints[node.right]
                if any(Slot.REF in side for side in sides) and any(not side for side in sides):
                    return self._of(node)
        return None

    def _penalty(self) -> ast.stmt | None:
        """Where the divergence is summed apart from the surrogate."""
        for node in self.flow.order:
            if isinstance(node, ast.Call) and called(node) in _REDUCERS:
                taint = self.flow.taints[node]
                if Slot.REF in taint and Slot.ADVANTAGES not in taint:
                    return self._of(node)
        return None

    def _estimate(self) -> ast.stmt | None:
        """The assignment whose name is weighed or added as the penalty: an estimator's last step.

        Where the two policies meet may be before a choice between several estimators.
        """
        last: dict[str, ast.stmt] = {}
        for node in self.flow.order:
            statement, taint = self.flow.statement[node], self.flow.taints[node]
            alone = {Slot.NEW, Slot.REF} <= taint and not taint & {Slot.ADVANTAGES, Slot.OLD}
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
                    if alone:
                        last[name] = statement
                    else:
                        last.pop(name, None)
        used = [
            last[side.id]
            for node in self.flow.order
            if isinstance(node, ast.BinOp)
            for side, other in ((node.left, node.right), (node.right, node.left))
            if isinstance(side, ast.Name) and side.id in last
            and self.flow.taints[other] & {Slot.BETA, _SURROGATE}
        ]  # fmt: skip
        return used[-1] if used else None

    def _in_reward(self) -> ast.stmt | None:
        """Where something of the policies alone is taken off what holds the advantages."""
        for node in self.flow.order:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                left, right = self.flow.taints[node.left], self.flow.taints[node.right]
                alone = Slot.NEW in right and Slot.ADVANTAGES not in right
                if Slot.ADVANTAGES in left and alone:
                    return self._of(node)
        return None

    def _width(self) -> ast.stmt | None:
        """Where one axis of a shape is the divisor."""
        for node in self.flow.order:
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                if any(is_width(inner) for inner in ast.walk(node.right)):
                    return self._of(node)
        return None

    def _first_use(self, *slots: Slot) -> ast.stmt | None:
        names = {p.name for p in self.target.parameters if p.slot in slots}
        for node in self.flow.order:
            used = isinstance(node, ast.Name) and node.id in names
            if used and not isinstance(self._of(node), ast.If | ast.While):  # a question about it
                return self._of(node)
        return None


def called(node: ast.Call) -> str:
    """The last part of the name that is called."""
    func = node.func
    return func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")


def is_width(node: ast.AST) -> bool:
    """`x.shape[1]` or `x.size(-1)`: one axis, not the number of rows or of all slots."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=index):
            return not _is_zero(index)
        case ast.Call(func=ast.Attribute(attr="size"), args=[index]):
            return not _is_zero(index)
    return False


def _is_zero(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant) and index.value == 0


def surrogate_of(flow: Flow) -> ast.expr | None:
    """The choice between two terms; failing that, the product with the advantage."""
    both = {Slot.NEW, Slot.ADVANTAGES}
    for node in flow.order:
        if isinstance(node, ast.Call) and called(node) in _PICKERS and both <= flow.taints[node]:
            return node
    for node in flow.order:
        product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        if (product or _joins(node, flow, both)) and both <= flow.taints[node]:
            return node
    return None


def _joins(node: ast.expr, flow: Flow, both: set[Slot]) -> bool:
    """Whether a helper is given one part in one argument and one in another, for further use."""
    if isinstance(flow.statement[node], ast.Return):
        return False
    match node:
        case ast.Call(func=ast.Name(), args=args, keywords=keywords):
            given = [*args, *(keyword.value for keyword in keywords)]
            return not any(both <= flow.taints.get(one, frozenset()) for one in given)
    return False


def advantages_landmarks(target: Target) -> dict[str, Place]:
    """Landmarks of an advantage function: the statistics (a span), the division, the result."""
    body = body_without_doc(target.node)
    held = {Slot.RECORDS: Slot.REWARDS}
    slots = {p.name: p.slot and held.get(p.slot, p.slot) for p in target.parameters}
    flow = Flow(target.node, {name: slot or f"?{name}" for name, slot in slots.items()})
    statistics = place(target.name, body[0])
    tainted = [s for s in body if _touches(flow, s, Slot.REWARDS)]
    if tainted:
        first, last = place(target.name, tainted[0]), place(target.name, tainted[-1])
        statistics = Place(target.name, first.line, last.end_line, first.col, last.end_col)
    division = _division(flow)
    spots = {"statistics": statistics, "function": definition(target)}
    spots["result"] = place(target.name, _last_return(target.node) or body[-1])
    spots["division"] = place(target.name, division) if division else spots["result"]
    again = _whitened(flow)
    spots["again"] = place(target.name, again) if again else spots["division"]
    for key, node in (("difference", _difference(flow)), ("guard", _guard(flow))):
        spots[key] = place(target.name, node) if node else spots["division"]
    return spots


def _difference(flow: Flow) -> ast.stmt | None:
    """The last statement that subtracts one thing made of the rewards from another."""
    found: ast.stmt | None = None
    for node in flow.order:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            if Slot.REWARDS in flow.taints[node.left] and Slot.REWARDS in flow.taints[node.right]:
                found = flow.statement[node]
    return found


def _guard(flow: Flow) -> ast.expr | None:
    """The comparison of something made of the rewards with a constant."""
    for node in flow.order:
        if isinstance(node, ast.Compare) and Slot.REWARDS in flow.taints[node]:
            if any(isinstance(c, ast.Constant) for c in node.comparators):
                return node
    return None


def _whitened(flow: Flow) -> ast.stmt | None:
    """The last statement that gives something made of the rewards to a function that whitens."""
    found: ast.stmt | None = None
    for node in flow.order:
        if isinstance(node, ast.Call) and set(words(called(node))) & WHITENING and node.args:
            if Slot.REWARDS in flow.taints[node.args[0]]:
                found = flow.statement[node]
    return found


def _touches(flow: Flow, statement: ast.stmt, slot: Slot) -> bool:
    inside = (n for n in ast.walk(statement) if isinstance(n, ast.expr))
    return any(slot in flow.taints.get(node, ()) for node in inside)


def _division(flow: Flow) -> ast.stmt | None:
    """The statement that divides by something made of the rewards: the scale."""
    found: ast.stmt | None = None
    for node in flow.order:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if Slot.REWARDS in flow.taints[node.right]:
                found = flow.statement[node]
    return found


def _last_return(function: FunctionNode) -> ast.Return | None:
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
    return max(returns, key=lambda n: n.lineno, default=None)


def calls_in(target: Target, name: str) -> Iterator[ast.Call]:
    """Every direct call of a function by its name, in source order."""
    calls = [
        node
        for node in ast.walk(target.node)
        if isinstance(node, ast.Call) and called(node) == name
    ]
    yield from sorted(calls, key=lambda node: (node.lineno, node.col_offset))
