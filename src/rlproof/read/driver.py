"""Which function of a script a rehearsal has to call for a fault to act."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.targets import FunctionNode

_ENDS = {"backward", "step"}
_ENTRIES = {"main", "run", "cli", "launch"}


def functions(tree: ast.Module) -> dict[str, FunctionNode]:
    """Functions of the module, and methods as `Class.method`."""
    found: dict[str, FunctionNode] = {}
    for node in tree.body:
        if isinstance(node, FunctionNode):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            methods = (m for m in node.body if isinstance(m, FunctionNode))
            found |= {f"{node.name}.{m.name}": m for m in methods}
    return found


def driver(tree: ast.Module, name: str) -> str | None:
    """The function itself, or the nearest of those that call it which makes a step.

    Without such a one, the outermost caller. None where the name is no function that can be
    called from outside, such as one inside another.
    """
    known = functions(tree)
    if name not in known:
        return None
    chain = list(_upwards(known, name))
    makes_steps = (n for n in chain if _ENDS & set(_calls(known[n])))
    return next(makes_steps, chain[-1])


def _upwards(known: dict[str, FunctionNode], name: str) -> Iterator[str]:
    """A function, what calls it, and so on."""
    seen, waiting = {name}, [name]
    while waiting:
        current = waiting.pop(0)
        yield current
        short = current.rpartition(".")[2]
        for other, node in known.items():
            if other not in seen and short in _calls(node) and other not in _ENTRIES:
                seen.add(other)
                waiting.append(other)


def _calls(node: ast.AST) -> list[str]:
    return [called(inner) for inner in ast.walk(node) if isinstance(inner, ast.Call)]


def sampler_beside(tree: ast.Module, name: str) -> str | None:
    """Another method of the same class that samples and hands back what it sampled."""
    owner, _, own = name.rpartition(".")
    for other, node in functions(tree).items():
        inside = other.rpartition(".")[0] == owner and not other.endswith(f".{own}")
        if owner and inside and "generate" in _calls(node) and own not in _calls(node):
            if any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node)):
                return other
    return None
