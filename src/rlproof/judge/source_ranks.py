"""Divisors that each rank counts on its own, where the wrapper averages the gradients of ranks."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.judge.source_said import Said, tell
from rlproof.read.landmarks import called
from rlproof.read.loop.events import Event, Kind
from rlproof.read.loop.passes import said
from rlproof.read.loop.reading import FileRead, LoopRead
from rlproof.read.loop.trace import Frame, Step
from rlproof.read.loop.updates import Loss
from rlproof.read.names import words
from rlproof.read.targets import Script

_WRAPS = {"DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP", "fully_shard"}
_SCALED = (
    "reduce", "gather", "world_size", "num_processes", "num_items_in_batch", "divide_factor",
    "comm_hook",
)  # fmt: skip
_COUNTS = {
    "mask", "masks", "token", "tokens", "count", "counts", "num", "n", "scale", "denom",
    "denominator", "normalizer", "normaliser", "items", "length", "lengths", "total",
}  # fmt: skip
_UNWRAPS = {"clamp", "clamp_min", "item", "float", "to"}


def ranks(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """AGG003: a token count of this rank alone divides the loss of a model that averages ranks.

    Only where the model is wrapped in this file, and no statement carries a count to other ranks.
    A rank with one row would have the mean over rows: several micro-batches must be counted.
    """
    del read
    tree = script.source.tree
    wraps = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and called(n) in _WRAPS]
    if not wraps or any(map(_shares, ast.walk(tree))):
        return
    for event in loop.events:
        if event.kind is Kind.BACKWARD and (count := _own_count(loop, event)):
            yield tell(
                "AGG003",
                count[0],
                f"`{count[1]}` counts the tokens of this rank only, and the gradients of the "
                "ranks are averaged: tokens of a rank with fewer of them weigh more",
                "a mean of each rank's mean",
                "the tokens of all ranks in the divisor (all_reduce), times the number of ranks",
                wraps[0],
                event.step.node,
                severity=Severity.WARNING,
            )


def _shares(node: ast.AST) -> bool:
    """Whether a count, or what may be one, goes to other ranks here or is scaled by them."""
    match node:
        case ast.Call() if _collects(node):
            given = [*node.args, *(k.value for k in node.keywords)]
            return bool({w for g in given for n in ast.walk(g) for w in _named(n)} & _COUNTS)
        case ast.BinOp(op=ast.Mult() | ast.Div()) | ast.AugAssign(op=ast.Mult() | ast.Div()):
            return any(word in ast.unparse(node) for word in _SCALED)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return any(word in name for word in _SCALED[4:])
    return False


def _collects(call: ast.Call) -> bool:
    """`all_reduce`, `reduce_scatter`, `all_gather`, `dist.gather`; not `x.gather(…)`."""
    name = called(call)
    ours = name == "gather" and "dist" not in ast.unparse(call.func)
    return ("reduce" in name or "gather" in name) and not ours


def _own_count(loop: LoopRead, event: Event) -> tuple[Step, str] | None:
    """The statement that counts what the loss of a backward pass is divided by, and its name."""
    loss = Loss(loop.passes, event)
    if not loss.certain or loss.core is None:
        return None
    node, frame, _ = loss.core
    divisors = [(d.divisor, d.frame) for d in loss.divisions]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        divisors.append((node.right, frame))
    return next(filter(None, (_counted(loop, one, home) for one, home in divisors)), None)


def _counted(loop: LoopRead, divisor: ast.expr, frame: Frame) -> tuple[Step, str] | None:
    """The statement that adds the masks of several micro-batches up, if the divisor is that."""
    frame, divisor = loop.passes.argument(frame, _bare(divisor))
    divisor = _bare(divisor)
    key = frame.key(divisor) if isinstance(divisor, ast.Name) else None
    if key is None or not isinstance(divisor, ast.Name):
        return None
    written = loop.passes.assigned.of(key)
    sums = [step for step, value in written if value is not None and _adds_masks(value)]
    rest = [value for _, value in written if value is None or not _adds_masks(value)]
    clamps = all(value is not None and said(_bare(value)) == divisor.id for value in rest)
    return (sums[0], divisor.id) if len(sums) == 1 and clamps else None


def _bare(node: ast.expr) -> ast.expr:
    """A divisor without what keeps it from 0 or makes a float of it."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _UNWRAPS:
                node = inner
            case ast.Call(func=ast.Name(id="max" | "float" | "int"), args=[inner, *_]):
                node = inner
            case _:
                return node


def _adds_masks(node: ast.expr) -> bool:
    """`sum(mb["loss_mask"].sum() for mb in micro_batches)`, clamped or not."""
    match _bare(node):
        case ast.Call(
            func=ast.Name(id="sum"), args=[ast.GeneratorExp(elt=elt) | ast.ListComp(elt=elt)]
        ):
            inside = {w for n in ast.walk(elt) for w in _named(n)}
            return "sum" in ast.unparse(elt) and bool(inside & {"mask", "masks"})
    return False


def _named(node: ast.AST) -> list[str]:
    """The words of a name, an attribute or a key."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str() as name):
            return words(name)
    return []
