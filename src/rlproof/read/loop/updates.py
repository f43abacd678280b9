"""The order of backward passes, updates and clearing, and what a loss is divided by."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlproof.read.landmarks import called
from rlproof.read.loop.events import Event, Kind
from rlproof.read.loop.passes import Passes, said
from rlproof.read.loop.trace import Branch, Frame, Loop, Step
from rlproof.read.names import words

_ACCUMULATION = {"accumulation", "accum", "accumulate", "acc", "gas", "microbatches"}


@dataclass(frozen=True, slots=True)
class Division:
    """One divisor of a loss: the text of it, and the expression around."""

    divisor: ast.expr
    frame: Frame
    node: ast.BinOp | ast.AugAssign


def innermost(step: Step) -> Loop | None:
    """The loop that a step is directly in."""
    return step.loops[-1] if step.loops else None


def is_every_so_often(branch: Branch) -> bool:
    """`if (i + 1) % n == 0`: the branch of a counter, by its test."""
    node = branch.node
    return isinstance(node, ast.If) and any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in ast.walk(node.test)
    )


def before(found: Sequence[Event], kind: Kind, event: Event) -> Event | None:
    """The last event of a kind ahead of another one."""
    ahead = [e for e in found if e.kind is kind and _at(e) < _at(event)]
    return ahead[-1] if ahead else None


def between(found: Sequence[Event], kind: Kind, first: Event, last: Event) -> bool:
    """Whether an event of a kind lies between two others."""
    return any(e.kind is kind and _at(first) < _at(e) < _at(last) for e in found)


def _at(event: Event) -> tuple[int, int, int]:
    line = getattr(event.node, "lineno", 0)
    return event.step.number, line, getattr(event.node, "col_offset", 0)


def accumulates(backward: Event, found: Sequence[Event]) -> tuple[Loop, Event] | None:
    """The loop over micro-batches around a backward pass, and the update that follows it.

    Either the update stands in the same loop under a counter, or right behind the loop.
    """
    loop = innermost(backward.step)
    if loop is None:
        return None
    steps = [e for e in found if e.kind is Kind.STEP and _at(e) > _at(backward)]
    for step in steps:
        if step.step.inside(loop):
            inner = step.step.branches_in(loop)
            own = backward.step.branches_in(loop)
            extra = [b for b in inner if b not in own]
            return (loop, step) if any(map(is_every_so_often, extra)) else None
        return loop, step
    return None


def is_accumulation(node: ast.expr) -> bool:
    """Whether a divisor is, by its name, the number of micro-batches of one update."""
    return bool(set(words(said(node))) & _ACCUMULATION)


def loss_of(event: Event) -> ast.expr | None:
    """What a backward pass starts from."""
    call = event.node
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.args and called(call) in ("backward", "manual_backward"):
        return call.args[0]
    receiver = call.func.value
    match receiver:
        case ast.Call(func=ast.Attribute(attr="scale"), args=[inner]):
            return inner
    return receiver


class Loss:
    """How a loss came about, back through names, returns and helper functions."""

    def __init__(self, passes: Passes, backward: Event) -> None:
        self.passes = passes
        self.divisions: list[Division] = []
        self.shares: list[ast.expr] = []
        """Factors that are the rows of a micro-batch, or its share of all rows."""
        self.certain = True
        self.core: tuple[ast.expr, Frame, Step] | None = None
        """What is left when divisions and factors are taken off."""
        loss = loss_of(backward)
        if loss is None:
            self.certain = False
        else:
            self._follow(loss, backward.step.frame, backward.step, 0)

    def _follow(self, node: ast.expr, frame: Frame, step: Step, depth: int) -> None:
        if depth > 20:
            self.certain = False
            return
        match node:
            case ast.BinOp(op=ast.Div(), left=left, right=right) if not _is_total(left, right):
                self.divisions.append(Division(right, frame, node))
                self._follow(left, frame, step, depth + 1)
            case ast.BinOp(op=ast.Mult(), left=left, right=right) if _is_share(right):
                self.shares.append(right)
                self._follow(left, frame, step, depth + 1)
            case ast.BinOp(op=ast.Mult(), left=left, right=right) if _is_share(left):
                self.shares.append(left)
                self._follow(right, frame, step, depth + 1)
            case ast.UnaryOp(operand=inner):
                self._follow(inner, frame, step, depth + 1)
            case ast.Call() if (called_here := _inlined(step, node)) is not None:
                self._into(called_here, None, depth)
            case ast.Name():
                self._name(node, frame, step, depth)
            case _:
                self.core = node, frame, step

    def _name(self, node: ast.Name, frame: Frame, step: Step, depth: int) -> None:
        key = frame.key(node)
        ahead = (
            [s for s, _ in self.passes.assigned.of(key) if s.number < step.number] if key else []
        )
        own = [s for s in ahead if s.frame is frame]
        if not own:
            if frame.caller and frame.site and node.id in frame.arguments:
                return self._follow(frame.arguments[node.id], frame.caller, frame.site, depth + 1)
            self.certain = False
            return None
        last = own[-1]
        if last.branches and last.branches != step.branches[: len(last.branches)]:
            self.certain = False
            return None
        match last.node:
            case ast.AugAssign(op=ast.Div(), value=value):
                self.divisions.append(Division(value, frame, last.node))
                return self._name(node, frame, last, depth + 1)
            case ast.AugAssign():
                return self._name(node, frame, last, depth + 1)
            case ast.Assign(targets=[ast.Name()], value=value):
                return self._follow(value, frame, last, depth + 1)
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Call() as call):
                inner = _inlined(last, call)
                names = [said(part) for part in parts]
                if inner is not None and node.id in names:
                    return self._into(inner, (names.index(node.id), len(names)), depth)
        self.certain = False
        return None

    def _into(self, frame: Frame, part: tuple[int, int] | None, depth: int) -> None:
        if len(frame.returns) != 1:
            self.certain = False
            return
        step = frame.returns[0]
        value = step.node.value if isinstance(step.node, ast.Return) else None
        if part is not None:
            fits = isinstance(value, ast.Tuple) and len(value.elts) == part[1]
            value = value.elts[part[0]] if fits and isinstance(value, ast.Tuple) else None
        if value is None or (part is None and isinstance(value, ast.Tuple)):
            self.certain = False
            return
        self._follow(value, frame, step, depth + 1)


def _inlined(step: Step, call: ast.Call) -> Frame | None:
    return step.inlined.get(call)


def _is_share(node: ast.expr) -> bool:
    """The rows of a micro-batch, or those divided by a count: `len(mask) / count`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        node = node.left
    return is_row_count(node)


def is_row_count(node: ast.expr) -> bool:
    """`len(x)`, `x.shape[0]` or `x.size(0)`."""
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[_]):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant(value=0)):
            return True
        case ast.Call(func=ast.Attribute(attr="size"), args=[ast.Constant(value=0)]):
            return True
    return False


def _is_total(left: ast.expr, right: ast.expr) -> bool:
    """`x.sum() / mask.sum()`: a mean written out, not a further divisor."""
    return _is_sum(left) and (any(map(_is_sum, _parts(right))))


def _is_sum(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) == "sum"


def _parts(node: ast.expr) -> Iterator[ast.AST]:
    yield from ast.walk(node)


def token_mean(node: ast.expr, product: ast.expr | None = None) -> ast.expr | None:
    """The mask of `(x * mask).sum() / mask.sum()`, summed over everything; None for other means.

    Args:
        node: the expression.
        product: what a name that is summed stands for, see `summed`.
    """
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
        return None
    left = _whole_sum(node.left)
    if left is None:
        return None
    right: ast.expr = node.right
    while True:
        match right:
            case ast.Call(
                func=ast.Attribute(value=inner, attr="clamp" | "clamp_min" | "float" | "to")
            ):
                right = inner
            case ast.Call(func=ast.Name(id="max"), args=[inner, ast.Constant()]):
                right = inner
            case ast.BinOp(op=ast.Add(), left=inner, right=ast.Constant()):
                right = inner
            case _:
                break
    mask = _whole_sum(right)
    if mask is None or not _is_mask(mask):
        return None
    return mask if any(_mentions(made, mask) for made in (left, product) if made) else None


def summed(node: ast.expr, passes: Passes, frame: Frame) -> ast.expr | None:
    """What `x` was last assigned, in `x.sum() / y`."""
    left = _whole_sum(node.left) if isinstance(node, ast.BinOp) else None
    key = frame.key(left) if isinstance(left, ast.Name) else None
    written = [value for _, value in passes.assigned.of(key)] if key else []
    return written[-1] if written else None


def _whole_sum(node: ast.expr) -> ast.expr | None:
    """What a sum without an axis is taken over."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="sum"), args=[inner]):
            return inner if not node.keywords else None
        case ast.Call(func=ast.Attribute(value=inner, attr="sum"), args=[], keywords=[]):
            return inner
    return None


def _is_mask(node: ast.expr) -> bool:
    return bool(set(words(said(node))) & {"mask", "masks"})


def _mentions(node: ast.expr, mask: ast.expr) -> bool:
    text = ast.unparse(mask)
    return any(isinstance(n, ast.expr) and ast.unparse(n) == text for n in ast.walk(node))
