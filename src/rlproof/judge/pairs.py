"""Which advantage function a loss is used with, where a script has several of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from rlproof.read.landmarks import called
from rlproof.read.targets import FunctionNode, Script


def partners(script: Script, losses: Iterable[str], advantages: Iterable[str]) -> dict[str, str]:
    """The advantage function of each loss, as far as the calls tell.

    Loss and advantages belong together where one function reaches both, and no other
    advantages: the training loop of that variant. The only advantages are those of every loss.
    """
    known = list(advantages)
    if len(known) == 1:
        return dict.fromkeys(losses, known[0])
    reach = _reach(script.source.tree)
    found: dict[str, str] = {}
    for loss in losses:
        near = [frozenset(a for a in known if _last(a) in names)
                for names in reach if _last(loss) in names]  # fmt: skip
        fewest = min((len(some) for some in near if some), default=0)
        if fewest == 1 and len(ones := {some for some in near if len(some) == 1}) == 1:
            found[loss] = next(iter(*ones))
    return found


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _reach(tree: ast.Module) -> list[set[str]]:
    """For each function, and for the module's own statements: all it calls, through others too."""
    functions = [node for node in ast.walk(tree) if isinstance(node, FunctionNode)]
    top = [node for node in tree.body if not isinstance(node, FunctionNode | ast.ClassDef)]
    direct: dict[str, set[str]] = {}
    for node in functions:
        direct.setdefault(node.name, set()).update(_calls(node))
    scopes = [_calls(node) for node in functions]
    scopes.append(set().union(*map(_calls, top)))
    return [_closed(scope, direct) for scope in scopes]


def _calls(node: ast.AST) -> set[str]:
    return {called(inner) for inner in ast.walk(node) if isinstance(inner, ast.Call)}


def _closed(names: set[str], direct: dict[str, set[str]]) -> set[str]:
    found, fresh = set(names), set(names)
    while fresh:
        fresh = set().union(*(direct.get(name, set()) for name in fresh)) - found
        found |= fresh
    return found
