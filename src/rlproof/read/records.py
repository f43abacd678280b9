"""Rewards that stand in records: `[episode.reward for episode in episodes]`.

A parameter of which a function walks the entries, and reads a reward of each, holds records: one
for each completion, in a list, in a list for each group, or in an attribute of what is given.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from rlproof.read.names import Slot, advantage_slot, words
from rlproof.read.targets import FunctionNode

_DEEPEST = 6
_NO_REWARD = {
    "mean",
    "std",
    "sum",
    "avg",
    "max",
    "min",
    "total",
    "fn",
    "func",
    "model",
    "r",
    "info",
}
_VIEWS = {"values", "items"}


@dataclass(frozen=True, slots=True)
class Records:
    """What a function reads of the records that one of its parameters holds."""

    reward: str
    """The attribute or key of the reward."""
    fields: tuple[str, ...]
    """What else it reads of a record."""
    keyed: bool
    """Whether a record is a dictionary."""
    holder: str | None
    """The attribute of the parameter that holds them; None where it is them."""
    nested: bool
    """Whether they are in one list for each group."""


def record_slots(node: FunctionNode) -> dict[str, Slot]:
    """The parameters of a function that hold records."""
    if not any(_is_reward(key) for _, key, _ in _reads(node)):
        return {}
    args = node.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    names = [arg.arg for arg in every if arg.arg not in ("self", "cls")]
    return {name: Slot.RECORDS for name in names if records(node, name)}


def records(node: ast.AST, parameter: str) -> Records | None:
    """What a function reads of the records in a parameter; None if it holds none."""
    walked = _Walked(node, parameter)
    reads = [(name, key, keyed) for name, key, keyed in _reads(node) if name in walked.iterated]
    rewards = [read for read in reads if _is_reward(read[1])]
    depths = {depth for name, *_ in rewards if (depth := walked.depth(name))}
    depths = depths or {d for name in walked.collected if (d := walked.depth(name))}
    if not rewards or len(depths) != 1:
        return None
    reward = rewards[0][1]
    others = dict.fromkeys(key for _, key, _ in reads if key != reward)
    keyed = all(keyed for *_, keyed in reads)
    return Records(reward, tuple(others), keyed, walked.holder, depths == {2})


def _is_reward(key: str) -> bool:
    return advantage_slot(key) is Slot.REWARDS and not set(words(key)) & _NO_REWARD


@lru_cache(maxsize=64)
def _reads(node: ast.AST) -> tuple[tuple[str, str, bool], ...]:
    """Attributes and keys that are read of variables, methods left out; once for each function."""
    return tuple(_each_read(node))


def _each_read(node: ast.AST) -> Iterator[tuple[str, str, bool]]:
    called = {n.func for n in ast.walk(node) if isinstance(n, ast.Call)}
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Name(id=name), attr=key, ctx=ast.Load()):
                if inner not in called:
                    yield name, key, False
            case ast.Subscript(
                value=ast.Name(id=name), slice=ast.Constant(value=str(key)), ctx=ast.Load()
            ):
                yield name, key, True


class _Walked:
    """The variables of loops, and how deep in a parameter they stand."""

    def __init__(self, node: ast.AST, parameter: str) -> None:
        self.parameter = parameter
        self.holder: str | None = None
        self.iterated: dict[str, list[ast.expr]] = {}
        self.collected: set[str] = set()
        """Variables that are put into a collection."""
        for inner in ast.walk(node):
            match inner:
                case (
                    ast.For(target=target, iter=source)
                    | ast.comprehension(target=target, iter=source)
                ):
                    self._bind(target, source)
                case ast.Call(func=ast.Attribute(attr="append"), args=[ast.Name(id=name)]):
                    self.collected.add(name)

    def _bind(self, target: ast.expr, source: ast.expr) -> None:
        match target, source:
            case (
                ast.Tuple(elts=[_, inner]),
                ast.Call(func=ast.Name(id="enumerate"), args=[walked, *_]),
            ):
                self._bind(inner, walked)
            case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=args):
                for part, walked in zip(parts, args, strict=False):
                    self._bind(part, walked)
            case ast.Tuple(elts=[_, inner]), ast.Call(func=ast.Attribute(attr="items")):
                self._bind(inner, source)
            case ast.Name(id=name), _:
                self.iterated.setdefault(name, []).append(source)

    def depth(self, name: str, left: int = _DEEPEST) -> int | None:
        """How many loops lead from the parameter to a variable; None if none do."""
        if name == self.parameter:
            return 0
        if not left:
            return None
        found = [self._of(source, left - 1) for source in self.iterated.get(name, [])]
        known = [depth for depth in found if depth is not None]
        return min(known) + 1 if known else None

    def _of(self, source: ast.expr, left: int) -> int | None:
        match source:
            case ast.Name(id=name):
                return self.depth(name, left)
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _VIEWS:
                return self._of(inner, left)
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name == self.parameter:
                self.holder = attr
                return 0
        return None
