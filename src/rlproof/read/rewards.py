"""Reward functions of texts: `accuracy_reward(completions, solution, **kwargs)` and their kin."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.faults.seen import Place
from rlproof.read.landmarks import called, definition, place
from rlproof.read.names import Slot, words
from rlproof.read.parameters import number, parameters
from rlproof.read.targets import FunctionNode, Role, Target

_RESPONSES = {
    "completion", "completions", "response", "responses", "output", "outputs", "generation",
    "generations", "generated", "text", "texts", "prediction", "predictions", "reply", "replies",
}  # fmt: skip
_TRUTHS = {
    "solution", "solutions", "answer", "answers", "gold", "golds", "truth", "truths", "target",
    "targets", "label", "labels", "expected",
}  # fmt: skip
_PROMPTS = {"prompt", "prompts", "question", "questions", "query", "queries"}
_IDS = {"id", "ids", "mask", "masks", "token", "tokens", "length", "lengths", "logps"}
_SCORES = {"score", "grade", "verify"}
_LOOKS = {"search", "match", "fullmatch", "findall", "split", "partition", "index", "find"}


def reward_slot(name: str) -> Slot | None:
    """The slot of a parameter of a reward function, or of a key of its `**kwargs`."""
    parts = set(words(name))
    if parts & _IDS:
        return None
    if name == "solution_str" or parts & _RESPONSES:
        return Slot.RESPONSES
    if parts & _TRUTHS:
        return Slot.TRUTHS
    return Slot.PROMPTS if parts & _PROMPTS else None


def reward_target(node: FunctionNode) -> Target | None:
    """The target, if a function gives texts a reward and needs nothing that can't be given."""
    if isinstance(node, ast.AsyncFunctionDef) or not _says_reward(node):
        return None
    target = Target(Role.REWARD, node, parameters(node, reward_slot))
    known = all(p.slot is not None for p in target.parameters if p.required)
    return target if target.has(Slot.RESPONSES) and known and _returns(node) else None


def _says_reward(node: FunctionNode) -> bool:
    parts = set(words(node.name))
    if parts & {"reward", "rewards"}:
        return not parts & {"model", "shape", "log", "plot", "load", "get", "build", "make", "test"}
    names = {reward_slot(a.arg) for a in node.args.args}
    return bool(parts & _SCORES) and {Slot.RESPONSES, Slot.TRUTHS} <= names


def _returns(node: FunctionNode) -> bool:
    """Whether it returns a value, and makes no function itself."""
    inner = [n for n in ast.walk(node) if isinstance(n, FunctionNode | ast.Lambda) and n != node]
    given = [n for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
    makes = any(isinstance(r.value, ast.Name) and r.value.id == getattr(f, "name", "")
                for r in given for f in inner)  # fmt: skip
    return bool(given) and not makes


def keys_of_rest(node: FunctionNode) -> dict[str, Slot]:
    """The keys that a function reads from its `**kwargs`, with their slots."""
    rest = node.args.kwarg.arg if node.args.kwarg else None
    found: dict[str, Slot] = {}
    for key in _keys(node, rest) if rest else ():
        if slot := reward_slot(key):
            found[key] = slot
    return found


def _keys(node: FunctionNode, rest: str) -> Iterator[str]:
    for inner in ast.walk(node):
        match inner:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)):
                if name == rest:
                    yield key
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get" | "pop"),
                args=[ast.Constant(value=str() as key), *_],
            ):
                if name == rest:
                    yield key


def takes_chats(target: Target, tree: ast.Module) -> bool:
    """Whether completions are read as messages: `completion[0]["content"]`."""
    helpers = {called(n) for n in ast.walk(target.node) if isinstance(n, ast.Call)}
    nodes = [target.node, *(n for n in tree.body if isinstance(n, FunctionNode)
                            and n.name in helpers)]  # fmt: skip
    return any(isinstance(n, ast.Constant) and n.value == "content"
               for node in nodes for n in ast.walk(node))  # fmt: skip


def constant_spot(target: Target, value: float) -> Place:
    """Where a reward of this value is written: in a handler, else in a branch, else anywhere.

    Where none is, the last statement that hands a reward on.
    """
    handlers = [n for n in ast.walk(target.node) if isinstance(n, ast.ExceptHandler)]
    branches = [n for n in ast.walk(target.node) if isinstance(n, ast.If)]
    for around in (*handlers, *branches[::-1], target.node):
        for node in ast.walk(around):
            if isinstance(node, ast.stmt) and value in _written(node):
                return place(target.name, node)
    handing = [n for n in ast.walk(target.node) if isinstance(n, ast.Expr | ast.Return)
               and isinstance(n.value, ast.Call) and called(n.value) == "append"]  # fmt: skip
    return place(target.name, handing[-1]) if handing else definition(target)


def _written(node: ast.stmt) -> list[float]:
    """The numbers that a statement returns, assigns or appends as they are."""
    match node:
        case ast.Return(value=ast.expr() as value) | ast.Assign(value=value):
            values = [value]
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[value])):
            values = [value]
        case _:
            return []
    if isinstance(values[0], ast.IfExp):
        values = [values[0].body, values[0].orelse]
    return [x for x in map(number, values) if x is not None]


def takes_one_truth(target: Target) -> bool:
    """Whether it reads the first expected answer: right for the rows of one prompt.

    A trainer that takes `reward_funcs` gives it rows of several.
    """
    truths = {p.name for p in target.parameters if p.slot is Slot.TRUTHS}
    return any(
        isinstance(n, ast.Subscript)
        and isinstance(n.slice, ast.Constant)
        and isinstance(n.value, ast.Name)
        and n.value.id in truths
        for n in ast.walk(target.node)
    )


def row_spot(target: Target) -> Place:
    """What may tie a reward to another row: a `continue`, a filter, or the first of the truths."""
    truths = {p.name for p in target.parameters if p.slot in (Slot.TRUTHS, Slot.PROMPTS)}
    for node in ast.walk(target.node):
        match node:
            case ast.Continue():
                return place(target.name, node)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int())):
                if name in truths:
                    return place(target.name, node)
    return definition(target)


def search_spot(target: Target) -> Place:
    """Where an answer is looked for: the first search of a pattern, or a `split`."""
    for node in ast.walk(target.node):
        if isinstance(node, ast.Call) and called(node) in _LOOKS:
            return place(target.name, node)
    return definition(target)
