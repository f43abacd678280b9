"""Masks that are made by comparing token ids with the padding id, and whether that is EOS."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from rlproof.read.landmarks import called
from rlproof.read.loop.passes import Passes, said
from rlproof.read.loop.trace import Frame, Key, Step
from rlproof.read.names import Slot, objective_slot, words

_LOSS_MASKS = {
    "completion", "completions", "response", "responses", "action", "actions", "loss", "answer",
    "generated", "gen", "output", "label", "labels", "token", "policy",
}  # fmt: skip
_GENERATED = {
    "completion",
    "completions",
    "response",
    "responses",
    "generated",
    "action",
    "actions",
}
_OTHER_MASKS = {"attention", "prompt", "prompts", "causal", "input", "query", "position", "attn"}


@dataclass(frozen=True, slots=True)
class PadIsEos:
    """Where the padding token is made the end-of-sequence token."""

    node: ast.AST
    always: bool
    """False where a condition decides, such as a tokenizer that has no padding token."""


@dataclass(frozen=True, slots=True)
class ValueMask:
    """One mask that is 0 wherever a token equals an id."""

    step: Step
    node: ast.AST
    name: str
    against: str
    """`eos` or `pad`."""


def pad_is_eos(tree: ast.Module) -> PadIsEos | None:
    """The assignment that makes the two the same; None without one."""
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If | ast.Try | ast.IfExp)
        for inner in ast.walk(node)
        if inner is not node and not _is_main(node)
    }
    found = [
        PadIsEos(node, id(node) not in guarded)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(_says(t, "pad_token", "pad_token_id") for t in node.targets)
        and _says(node.value, "eos_token", "eos_token_id")
    ]
    others = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and any(
            _says(t, "pad_token", "pad_token_id") and isinstance(t, ast.Attribute)
            for t in node.targets
        )
        and not _says(node.value, "eos_token", "eos_token_id", "pad_token_id", "pad_token")
    ]
    if not found or others:
        return None
    return next((one for one in found if one.always), found[0])


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).startswith("__name__")


def _says(node: ast.expr, *names: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in names


def value_masks(passes: Passes) -> list[ValueMask]:
    """The masks of completions that are nothing but such a comparison."""
    found = []
    for step in passes.trace.steps:
        seen = _mask(step, passes)
        if seen is not None and not _amended(passes, seen) and not _only_counted(passes, seen):
            found.append(seen)
    return found


def _mask(step: Step, passes: Passes) -> ValueMask | None:
    match step.node:
        case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)], value=value):
            plain = name in ("mask", "masks")
            named = _is_loss_mask(name) or (plain and _is_of_completions(value))
            named = named or (plain and _masks_a_loss(step, name, passes))
            if named and (against := _unequal(value, step.frame, passes)):
                return ValueMask(step, step.node, name, against)
        case ast.Assign(
            targets=[ast.Subscript(value=base, slice=test)],
            value=ast.Constant(value=False | 0 | 0.0),
        ):
            against = _compared(test, ast.Eq, step.frame, passes)
            if against and _is_loss_mask(said(base)):
                return ValueMask(step, step.node, said(base), against)
    return None


def _is_loss_mask(name: str) -> bool:
    parts = set(words(name))
    return bool(parts & {"mask", "masks"} and parts & _LOSS_MASKS) and not parts & _OTHER_MASKS


def _masks_a_loss(made: Step, name: str, passes: Passes) -> bool:
    """Whether what it is multiplied with holds advantages, further down in the same function."""
    for step in passes.trace.steps:
        if step.frame is not made.frame or step.number <= made.number:
            continue
        for node in step.walk():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                sides = [{said(n) for n in ast.walk(s) if isinstance(n, ast.expr)}
                         for s in (node.left, node.right)]  # fmt: skip
                for one, other in (sides, sides[::-1]):
                    if name in one and any(objective_slot(n) is Slot.ADVANTAGES for n in other):
                        return True
    return False


def _is_of_completions(node: ast.expr) -> bool:
    """Whether what is compared has the name of what the policy generated."""
    return any(
        bool(set(words(said(inner))) & _GENERATED)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name | ast.Attribute)
    )


def _unequal(node: ast.expr, frame: Frame, passes: Passes) -> str | None:
    """`(ids != pad).float()` and its like; a product with another mask counts too."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if called(node) not in ("float", "long", "int", "bool", "to", "type", "cuda"):
            break
        node = node.func.value
    while isinstance(node, ast.Subscript):
        node = node.value
    match node:
        case ast.BinOp(op=ast.Mult() | ast.BitAnd(), left=left, right=right):
            return _unequal(left, frame, passes) or _unequal(right, frame, passes)
    return _compared(node, ast.NotEq, frame, passes)


def _compared(node: ast.expr, by: type[ast.cmpop], frame: Frame, passes: Passes) -> str | None:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, by):
            return _kind(right, frame, passes) if _are_ids(left) else None
        case ast.Call(func=ast.Attribute(value=left, attr="ne"), args=[right]) if by is ast.NotEq:
            return _kind(right, frame, passes) if _are_ids(left) else None
        case ast.Call(func=ast.Attribute(value=left, attr="eq"), args=[right]) if by is ast.Eq:
            return _kind(right, frame, passes) if _are_ids(left) else None
    return None


def _are_ids(node: ast.expr) -> bool:
    parts = set(words(said(node)))
    return bool(parts & {"ids", "tokens", "id", "completions", "sequences", "labels", "responses"})


def _kind(node: ast.expr, frame: Frame, passes: Passes) -> str | None:
    """Which id is compared with, behind names."""
    frame, node = passes.argument(frame, node)
    seen: set[Key] = set()
    while isinstance(node, ast.Name):
        key = frame.key(node)
        written = passes.assigned.of(key) if key else []
        if key is None or key in seen or len(written) != 1 or written[0][1] is None:
            break
        seen.add(key)
        frame, value = written[0][0].frame, written[0][1]
        if not isinstance(value, ast.Name | ast.Attribute):
            return None
        node = value
    if isinstance(node, ast.Attribute):
        if node.attr == "eos_token_id":
            return "eos"
        if node.attr in ("pad_token_id", "pad_id"):
            return "pad"
    return None


def _only_counted(passes: Passes, mask: ValueMask) -> bool:
    """Whether nothing is done with it but counting tokens."""
    loads = [
        (node, step)
        for step in passes.trace.steps
        if step.number > mask.step.number and step.frame is mask.step.frame
        for node in step.walk()
        if isinstance(node, ast.Name) and node.id == mask.name
    ]
    counted = {
        id(node.func.value)
        for _, step in loads
        for node in step.walk()
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("sum", "mean")
    }
    return bool(loads) and all(id(node) in counted for node, _ in loads)


def _amended(passes: Passes, mask: ValueMask) -> bool:
    """Whether the mask gets something back afterwards, such as the first EOS."""
    target = mask.step.node.targets[0] if isinstance(mask.step.node, ast.Assign) else None
    while isinstance(target, ast.Subscript):
        target = target.value
    key = mask.step.frame.key(target) if target is not None else None
    if key is None:
        return True
    for step, _ in passes.assigned.of(key):
        if step.number > mask.step.number and step.frame is mask.step.frame:
            value = step.node.value if isinstance(step.node, ast.Assign) else None
            narrows = isinstance(value, ast.Subscript) or (
                isinstance(value, ast.Constant) and not value.value
            )
            if not narrows:
                return True
    return False
