"""Repairs of old log-probs that follow the policy: scored once for all updates on their data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site

_LABEL = "score the old policy once, before the updates"
_LISTS = {"list", "chunk", "split", "tuple", "range", "zip", "enumerate"}
_DEPTH = 4

Loop = ast.For | ast.While


def scored_before(site: Site) -> Iterator[Edit]:
    """`old = new.detach()` in a loop to log-probs that are scored before that loop.

    Where they depend on what the loop walks over, there is one entry for each round. Each loop
    around it is tried, the innermost first.
    """
    for old, node in _detached(site):
        statement = site.statement_at(node.lineno)
        around = [loop for loop in _loops(site) if _holds(loop, node)]
        if not isinstance(statement, ast.Assign) or not site.alone(statement):
            continue
        for number, loop in enumerate(reversed(around)):
            inner = around[len(around) - number - 1 :]
            text = _inlined(site, loop, node)
            bound = [one for one in inner if _names(_target(one)) & _words(text)]
            if not bound:
                yield Edit(_LABEL, (_line(site, loop, f"{old} = {text}"), site.drop(statement)))
            elif len(bound) == 1 and isinstance(bound[0], ast.For):
                yield from _by_round(site, loop, bound[0], old, text, statement)


def _detached(site: Site) -> Iterator[tuple[str, ast.expr]]:
    """Names that are given log-probs without their gradient, `new.detach()`."""
    for node in site.everywhere(ast.Assign):
        target, value = node.targets[0], node.value
        cuts = isinstance(value, ast.Call) and called(value) == "detach"
        if cuts and isinstance(target, ast.Name):
            yield target.id, value


def _loops(site: Site) -> list[Loop]:
    return sorted(site.everywhere(ast.For), key=lambda n: n.lineno)


def _holds(loop: Loop, node: ast.AST) -> bool:
    return any(inner is node for inner in ast.walk(loop))


def _target(loop: Loop) -> ast.AST:
    return loop.target if isinstance(loop, ast.For) else ast.Pass()


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _words(text: str) -> set[str]:
    return _names(ast.parse(text, mode="eval"))


def _inlined(site: Site, loop: Loop, node: ast.expr) -> str:
    """An expression without the names that the body of the loop gives a value."""
    values = {
        s.targets[0].id: s.value
        for s in ast.walk(loop)
        if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Name)
    }
    tree: ast.expr = ast.parse(site.source(node), mode="eval").body
    for _ in range(_DEPTH):
        tree = _Filled({n: ast.parse(site.source(v), mode="eval").body for n, v in values.items()}
                       ).visit(tree)  # fmt: skip
    return ast.unparse(tree)


class _Filled(ast.NodeTransformer):
    """Puts values in the places of names."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The value of a name that has one."""
        return self.values.get(node.id, node)


def _line(site: Site, loop: Loop, text: str) -> Change:
    return site.before(loop, text)


def _by_round(
    site: Site, outer: Loop, loop: ast.For, old: str, text: str, statement: ast.Assign
) -> Iterator[Edit]:
    """A list with one entry for each round of a loop over something that can be walked twice."""
    if not _is_list(site, loop.iter):
        return
    used = _names(site.function) if site.function else set()
    name = next(n for n in (f"{old}_of_parts", f"all_{old}") if n not in used)
    over = f"for {site.source(_plain_target(loop))} in {site.source(_plain_iter(loop))}"
    made = site.before(outer, f"{name} = [{text} {over}]")
    count = _counter(loop)
    if count is not None:
        yield Edit(_LABEL, (made, site.put(statement.value, f"{name}[{count}]")))
        return
    target = site.source(loop.target)
    target = f"({target})" if isinstance(loop.target, ast.Tuple) else target
    head = (
        site.put(loop.target, f"{target}, {old}"),
        site.put(loop.iter, f"zip({site.source(loop.iter)}, {name})"),
    )
    yield Edit(_LABEL, (made, *head, site.drop(statement)))


def _counter(loop: ast.For) -> str | None:
    """`k` of `for k, x in enumerate(…)`."""
    match loop.target, loop.iter:
        case ast.Tuple(elts=[ast.Name(id=name), _]), ast.Call(args=[_]) if _enumerates(loop):
            return name
    return None


def _enumerates(loop: ast.For) -> bool:
    return isinstance(loop.iter, ast.Call) and called(loop.iter) == "enumerate"


def _plain_target(loop: ast.For) -> ast.expr:
    if _counter(loop) is not None and isinstance(loop.target, ast.Tuple):
        return loop.target.elts[1]
    return loop.target


def _plain_iter(loop: ast.For) -> ast.expr:
    if _counter(loop) is not None and isinstance(loop.iter, ast.Call):
        return loop.iter.args[0]
    return loop.iter


def _is_list(site: Site, node: ast.expr) -> bool:
    """Whether it can be walked twice with the same result: a list or a range, by its making."""
    while isinstance(node, ast.Call) and called(node) in {"enumerate", "zip"} and node.args:
        node = node.args[0]
    if isinstance(node, ast.Name):
        made = site.definition_of(node.id)
        return made is not None and not isinstance(made, ast.Name) and _is_made(made)
    return _is_made(node)


def _is_made(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.ListComp | ast.Tuple):
        return True
    return isinstance(node, ast.Call) and called(node) in _LISTS - {"zip", "enumerate"}
