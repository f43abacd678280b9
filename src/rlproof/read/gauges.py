"""Small functions around the objective that can be asked by themselves, and their landmarks.

Returns of tokens, the placing of a score, the whitening of token advantages, a supervised loss, a
mean length, a filter of groups: what each is told by its name and by what it takes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from rlproof.faults.seen import Place
from rlproof.read.landmarks import called, definition, place
from rlproof.read.names import Slot, advantage_slot, says_advantages, words
from rlproof.read.targets import FunctionNode, Role, Target
from rlproof.read.tokens import cut_mask

_RETURNS = {"returns", "togo", "discounted", "rtg"}
_WHITENS = {"whiten", "whitened", "whitening", "normalize", "normalise", "standardize",
            "standardise"}  # fmt: skip
_FILTERS = {"keep", "filter", "select", "drop", "kept", "filtered"}
_VALUES = {"values", "x", "xs", "tensor", "advs"}
_TABLES = {"data", "batch", "inputs", "experience"}
_CUT = {"truncated", "overlong", "truncation", "clipped"}
_RESPONSE = {"response", "completion", "assistant", "answer"}
_SAID = re.compile(
    r"\b(1|one|true) (?:on|for|at|where|in)\b[^.]*\b(response|completion|assistant|answer)",
    re.IGNORECASE,
)
_TOOLS = re.compile(
    r"\btools?\b|multi.?turn|\bturns\b|observation|retriev|environment", re.IGNORECASE
)


def speaks_of_tools(text: str) -> bool:
    """Whether rows may have masked slots in their middle, by what a file says."""
    return _TOOLS.search(text) is not None


def return_slot(name: str) -> Slot | None:
    """The slot of a parameter of a function that adds rewards up from the end."""
    if set(words(name)) & {"mask", "masks"}:
        return Slot.MASK
    if name in {"gamma", "discount"}:
        return Slot.DISCOUNT
    return Slot.REWARDS if advantage_slot(name) is Slot.REWARDS else None


def placement_slot(name: str) -> Slot | None:
    """The slot of a parameter of a function that puts a score on a token."""
    parts = set(words(name))
    if parts & {"mask", "masks"}:
        return Slot.MASK
    if parts & {"kl", "kld", "kls"} and not parts & {"ctl", "coef", "coeff", "beta", "penalty"}:
        return Slot.DIVERGENCES
    if parts & {"clip", "max", "min"}:
        return None
    return Slot.REWARDS if advantage_slot(name) is Slot.REWARDS else None


def whitening_slot(name: str) -> Slot | None:
    """The slot of a parameter of a function that whitens token advantages."""
    if set(words(name)) & {"mask", "masks"}:
        return Slot.MASK
    if says_advantages(name) or name in _VALUES:
        return Slot.ADVANTAGES
    return Slot.TENSORS if name in _TABLES else None


def supervised_slot(name: str) -> Slot | None:
    """The slot of a parameter of a supervised loss."""
    if set(words(name)) & {"mask", "masks"}:
        return None if "attention" in words(name) else Slot.MASK
    if name == "logits":
        return Slot.LOGITS
    return Slot.TOKENS if name in {"input_ids", "ids", "tokens", "token_ids"} else None


def length_slot(name: str) -> Slot | None:
    """The slot of a parameter of a mean length."""
    if set(words(name)) & _CUT:
        return Slot.TRUNCATED
    return Slot.MASK if set(words(name)) & {"mask", "masks"} else None


def filter_slot(name: str) -> Slot | None:
    """The slot of a parameter of a filter of groups."""
    slot = advantage_slot(name)
    return slot if slot in (Slot.REWARDS, Slot.RESPONSES, Slot.GROUP_SIZE) else None


def is_returns(target: Target, parts: set[str]) -> bool:
    """Rewards of tokens and a mask, added up from the end."""
    named = parts & _RETURNS or {"to", "go"} <= parts
    return bool(named) and target.has(Slot.REWARDS, Slot.MASK) and _complete(target)


def is_placement(target: Target, parts: set[str]) -> bool:
    """A divergence of tokens, one score a row, a mask."""
    takes = target.has(Slot.DIVERGENCES, Slot.REWARDS, Slot.MASK)
    return bool(parts & {"reward", "rewards"}) and takes and _complete(target)


def is_whitening(target: Target, parts: set[str]) -> bool:
    """Advantages and a mask, each a parameter or an entry of one table."""
    if not parts & _WHITENS or not _complete(target):
        return False
    if target.has(Slot.ADVANTAGES, Slot.MASK):
        return True
    held = {whitening_slot(key) for p in target.parameters if p.slot is Slot.TENSORS
            for key in entries(target.node, p.name)}  # fmt: skip
    return {Slot.ADVANTAGES, Slot.MASK} <= held


def is_supervised(target: Target, parts: set[str]) -> bool:
    """Logits, tokens, and a mask that is said to be that of the response's tokens."""
    mask = target.parameter(Slot.MASK)
    if mask is None or not target.has(Slot.LOGITS, Slot.TOKENS) or not _complete(target):
        return False
    said = bool(set(words(mask.name)) & _RESPONSE) or bool(_SAID.search(target.doc))
    return said and bool(parts & {"loss", "nll", "ce"})


def is_mean_length(target: Target, parts: set[str]) -> bool:
    """A mask and which rows were cut off, for a length."""
    named = bool(parts & {"length", "lengths", "len"})
    return named and target.has(Slot.MASK, Slot.TRUNCATED) and _complete(target)


def is_group_filter(target: Target, parts: set[str]) -> bool:
    """Rewards, rows and a group size, for the rows that stay."""
    takes = target.has(Slot.REWARDS, Slot.RESPONSES, Slot.GROUP_SIZE)
    return bool(parts & _FILTERS) and takes and _complete(target)


def _complete(target: Target) -> bool:
    """Whether nothing else must be given."""
    return all(p.slot is not None for p in target.parameters if p.required)


def entries(node: FunctionNode, table: str) -> list[str]:
    """The keys under which a function reads from a table that it is given."""
    found: dict[str, None] = {}
    for inner in ast.walk(node):
        match inner:
            case ast.Subscript(
                value=ast.Name(id=name), slice=ast.Constant(value=str() as key), ctx=ast.Load()
            ) if name == table:
                found[key] = None
    return list(found)


def gauge_spots(target: Target) -> dict[str, Place]:
    """Landmarks of these functions: statements by what they use; the result where there is none."""
    names = {slot: {p.name for p in target.parameters if p.slot is slot}
             for slot in (Slot.MASK, Slot.TRUNCATED, Slot.REWARDS)}  # fmt: skip
    simple = [s for s in ast.walk(target.node) if isinstance(s, ast.stmt) and not
              hasattr(s, "body")]  # fmt: skip
    simple.sort(key=lambda s: s.lineno)
    loops = [s for n in ast.walk(target.node) if isinstance(n, ast.For | ast.While)
             for s in n.body]  # fmt: skip
    found: dict[str, ast.stmt | None] = {
        "mask": cut_mask(target),
        "zeroed": _first(simple, lambda s: _uses(s, names[Slot.TRUNCATED])),
        "test": _first(simple, lambda s: _uses(s, names[Slot.REWARDS])),
        "masked": _first(loops[::-1], lambda s: _uses(s, names[Slot.MASK])),
        "placed": _first(simple, lambda s: _uses(s, names[Slot.MASK])),
        "mean": _first(simple, lambda s: _averages(s)),
    }
    spot = definition(target)
    return {key: place(target.name, node) if node else spot for key, node in found.items()}


def _first(body: list[ast.stmt], test: Callable[[ast.stmt], bool]) -> ast.stmt | None:
    return next((s for s in body if test(s)), None)


def _uses(statement: ast.stmt, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load)
               for n in ast.walk(statement))  # fmt: skip


def _averages(statement: ast.stmt) -> bool:
    return any(isinstance(n, ast.Call) and called(n) in {"mean", "std", "var"}
               for n in ast.walk(statement))  # fmt: skip


RULES = (
    (Role.RETURNS, return_slot, is_returns),
    (Role.PLACEMENT, placement_slot, is_placement),
    (Role.WHITENING, whitening_slot, is_whitening),
    (Role.SUPERVISED, supervised_slot, is_supervised),
    (Role.MEAN_LENGTH, length_slot, is_mean_length),
)
