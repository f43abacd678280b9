"""In what order completions come out of their prompts, and in what order rewards are grouped.

*Consecutive*: all completions of one prompt stand together (A, A, B, B). *Tiled*: the list of
prompts comes again and again (A, B, A, B).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from rlproof.read.landmarks import called
from rlproof.read.loop.passes import Passes, said
from rlproof.read.loop.trace import Frame, Step
from rlproof.read.names import words

CONSECUTIVE, TILED = "consecutive", "tiled"
_GROUP = {
    "group", "generations", "samples", "completions", "rollouts", "g", "n", "k", "num", "repeats",
    "return", "size", "per", "prompt",
}  # fmt: skip
_SIZES = {"group", "generations", "completions", "rollouts", "samples", "g", "G", "return"}
_PLURAL = {
    "prompts", "questions", "queries", "problems", "batch", "messages", "inputs", "examples",
    "tasks", "chats", "texts", "answers", "instructions", "contexts", "prompt_texts",
}  # fmt: skip
_REORDERS = {
    "sort", "sorted", "shuffle", "argsort", "permute", "transpose", "swapaxes", "T", "randperm",
    "rearrange", "permutation", "index_select", "sample", "groupby", "einsum", "zip_longest",
}  # fmt: skip
_REWARDS = {"reward", "rewards", "scores", "score", "returns", "r", "rew", "rews"}


@dataclass(frozen=True, slots=True)
class Ordering:
    """One statement that fixes an order, with the text of the group's size."""

    order: str
    size: str
    step: Step
    node: ast.AST


def repetitions(passes: Passes) -> list[Ordering]:
    """Where prompts are repeated, once for each completion."""
    found = []
    for step in passes.trace.steps:
        for node in step.walk():
            seen = _repetition(node, step.frame, passes)
            if seen is not None:
                found.append(Ordering(seen[0], seen[1], step, node))
    return found


def _repetition(node: ast.AST, frame: Frame, passes: Passes) -> tuple[str, str] | None:
    match node:
        case ast.BinOp(op=ast.Mult(), left=what, right=times) if _is_list(what, frame, passes):
            return (TILED, _size(times, frame, passes)) if _plural(what) else None
        case ast.Call(func=ast.Attribute(value=what, attr="repeat"), args=[times, *rest]):
            ones = all(isinstance(r, ast.Constant) and r.value == 1 for r in rest)
            if said(what) in ("np", "numpy", "jnp"):
                return (
                    (CONSECUTIVE, _size(rest[0], frame, passes))
                    if rest and _plural(times)
                    else None
                )
            plural = _plural(what) or (bool(rest) and _of_batch(what, frame, passes))
            return (TILED, _size(times, frame, passes)) if ones and plural else None
        case ast.Call(func=ast.Attribute(value=what, attr="repeat_interleave"), args=args):
            first = (
                args[0]
                if args
                else next((k.value for k in node.keywords if k.arg == "repeats"), None)
            )
            if said(what) in ("torch", "mx") and len(args) > 1:
                what, first = args[0], args[1]
            if first is not None and (_plural(what) or _of_batch(what, frame, passes)):
                return CONSECUTIVE, _size(first, frame, passes)
        case ast.Call(func=ast.Attribute(attr="tile"), args=[what, times]) if _plural(what):
            return TILED, _size(times, frame, passes)
        case ast.ListComp(elt=ast.Name(id=name), generators=[first, second]):
            for order, outer, inner in ((CONSECUTIVE, first, second), (TILED, second, first)):
                walks = isinstance(outer.target, ast.Name) and outer.target.id == name
                size = _range(inner.iter)
                if walks and _plural(outer.iter) and size is not None:
                    return order, _size(size, frame, passes)
    return None


def groupings(passes: Passes) -> list[Ordering]:
    """Where rewards are cut into groups, and statistics of each group taken."""
    found = []
    for step in passes.trace.steps:
        for node in step.walk():
            match node:
                case ast.Call(func=ast.Attribute(value=what, attr="view" | "reshape"), args=args):
                    if _is_rewards(what, step.frame, passes):
                        seen = _grouping(args, step, node, passes)
                        if seen is not None:
                            found.append(seen)
    return found


def _grouping(args: list[ast.expr], step: Step, node: ast.Call, passes: Passes) -> Ordering | None:
    if len(args) == 1 and isinstance(args[0], ast.Tuple):
        args = args[0].elts
    if len(args) != 2:
        return None
    axis = _axis(node, step, passes)
    if axis is None:
        return None
    inner = args[axis]
    other = args[1 - axis]
    if _is_minus_one(inner) or not (_is_minus_one(other) or _is_size(inner)):
        return None
    order = CONSECUTIVE if axis == 1 else TILED
    return Ordering(order, _size(inner, step.frame, passes), step, node)


def _axis(node: ast.Call, step: Step, passes: Passes) -> int | None:
    """The axis over which the mean of the reshaped rewards is taken; None if not just one."""
    targets = step.node.targets if isinstance(step.node, ast.Assign) else []
    axes = {_dim(call) for call in step.calls() if _is_mean(call) and _receiver(call) is node}
    for target in targets:
        if step.node.value is node if isinstance(step.node, ast.Assign) else False:
            key = step.frame.key(target)
            for later in passes.trace.steps:
                if later.number <= step.number or later.frame is not step.frame:
                    continue
                for call in later.calls():
                    receiver = _receiver(call)
                    if _is_mean(call) and receiver is not None and later.frame.key(receiver) == key:
                        axes.add(_dim(call))
    return axes.pop() if len(axes) == 1 else None


def _is_mean(call: ast.Call) -> bool:
    return called(call) in ("mean", "std", "var")


def _receiver(call: ast.Call) -> ast.expr | None:
    if isinstance(call.func, ast.Attribute) and said(call.func.value) not in ("torch", "np", "jnp"):
        return call.func.value
    return call.args[0] if call.args else None


def _dim(call: ast.Call) -> int | None:
    method = isinstance(call.func, ast.Attribute) and said(call.func.value) not in (
        "torch", "np", "jnp",
    )  # fmt: skip
    rest = call.args if method else call.args[1:]
    given = [k.value for k in call.keywords if k.arg in ("dim", "axis")] + rest[:1]
    match given:
        case [ast.Constant(value=0), *_]:
            return 0
        case [ast.Constant(value=1), *_]:
            return 1
        case [ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)), *_]:
            return 1
    return None


def reorders(passes: Passes, first: Step, last: Step) -> bool:
    """Whether anything between two steps may change the order of the rows."""
    low, high = sorted((first.number, last.number))
    for step in passes.trace.steps[low : high + 1]:
        for node in step.walk():
            name = getattr(node, "attr", getattr(node, "id", ""))
            if name in _REORDERS:
                return True
    return False


def _is_list(node: ast.expr, frame: Frame, passes: Passes) -> bool:
    """Whether a name is known to hold a list of several things."""
    if isinstance(node, ast.ListComp):
        return True
    key = passes.root(frame.key(node)) if isinstance(node, ast.Name) else None
    written = passes.assigned.of(key) if key else []
    return bool(written) and all(
        isinstance(value, ast.ListComp)
        or (isinstance(value, ast.List) and len(value.elts) > 1)
        or (isinstance(value, ast.Call) and called(value) == "list")
        for _, value in written
    )


def _plural(node: ast.expr) -> bool:
    if isinstance(node, ast.ListComp):
        return True
    return bool(set(words(said(node))) & _PLURAL)


def _of_batch(node: ast.expr, frame: Frame, passes: Passes) -> bool:
    """Whether ids of prompts are an entry of a batch, which may hold several prompts."""
    key = frame.key(node) if isinstance(node, ast.Name) else None
    if key is None or not {"prompt", "ids"} <= set(words(key[1])):
        return False
    match passes.assigned.of(key)[:1]:
        case [(_, ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str())))]:
            return bool(set(words(name)) & {"inputs", "batch", "data"})
    return False


def _is_rewards(node: ast.expr, frame: Frame, passes: Passes) -> bool:
    while isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and called(node) in ("float", "to", "cpu", "cuda"):
            node = node.func.value
        elif called(node) in ("tensor", "array", "asarray", "FloatTensor") and node.args:
            node = node.args[0]
        else:
            return False
    return bool(set(words(said(passes.argument(frame, node)[1]))) & _REWARDS) or bool(
        set(words(said(node))) & _REWARDS
    )


def _range(node: ast.expr) -> ast.expr | None:
    match node:
        case ast.Call(func=ast.Name(id="range"), args=[times]):
            return times
    return None


def _is_minus_one(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and ast.unparse(node) == "-1"


def _is_size(node: ast.expr) -> bool:
    return bool((set(words(said(node))) | {said(node)}) & _SIZES)


def _size(node: ast.expr, frame: Frame, passes: Passes) -> str:
    """A text that is equal for equal sizes: the number, or the last name."""
    _, node = passes.argument(frame, node)
    return said(node) or ast.unparse(node)
