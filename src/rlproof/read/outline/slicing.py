"""Backward slices: of lowered statements, those that a value depends on."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from rlproof.read.outline.state import State, Stop
from rlproof.read.outline.syntax import at, free, replaced, root_of, stored

_FILLING = {"append", "extend", "insert", "update", "sort", "setdefault", "appendleft"}


class Slicer:
    """Keeps what is needed; collects what the kept statements lack, the nearest first."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.problems: list[str] = []
        self.given: set[str] = set()
        """Variables that are parameters from some statement on."""
        self._with_jumps = False

    def block(self, body: Sequence[ast.stmt], needed: set[str]) -> list[ast.stmt]:
        """The statements kept, in order; `needed` is updated to what comes before them."""
        kept: list[ast.stmt] = []
        for node in reversed(body):
            made = self._statement(node, needed)
            if made is not None:
                kept.append(made)
        kept.reverse()
        return kept

    def _need(self, node: ast.AST, needed: set[str]) -> None:
        for name in free(node):
            if name in self.given and name not in needed:
                self.problems.append(f"`{name}` has two values, and which one is meant is unclear")
            needed.add(name)

    def _keep(self, node: ast.stmt) -> ast.stmt:
        if node in self.state.lacking:
            self.problems.append(self.state.lacking[node])
        return node

    def _statement(self, node: ast.stmt, needed: set[str]) -> ast.stmt | None:
        match node:
            case Stop():
                self.given |= node.names & needed
                needed -= node.names
                return None
            case ast.Return():
                needed.clear()
                self._need(node, needed)
                return self._keep(node)
            case ast.Raise() | ast.Continue() | ast.Break() | ast.Pass():
                return None
            case ast.If():
                return self._if(node, needed)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, needed)
            case ast.With() | ast.AsyncWith():
                body = self.block(node.body, needed)
                if not body:
                    return None
                for item in node.items:
                    self._need(item, needed)
                return replaced(node, body=body)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name not in needed:
                    return None
                needed.discard(node.name)
                self._need(node, needed)
                return self._keep(node)
        return self._simple(node, needed)

    def _simple(self, node: ast.stmt, needed: set[str]) -> ast.stmt | None:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr=attr))):
                root = root_of(base)
                changes = attr in _FILLING or (attr.endswith("_") and not attr.startswith("_"))
                if root not in needed or not changes:
                    return None
            case ast.AugAssign(target=target):
                if root_of(target) not in needed:
                    return None
                needed.add(root_of(target) or "")
            case ast.Assign(targets=targets):
                roots = {root_of(spot) for t in targets for spot in _flat(t)} | set(stored(node))
                if not roots & needed:
                    return None
                needed -= {s.id for t in targets for s in _flat(t) if isinstance(s, ast.Name)}
            case _:
                bound = set(stored(node))
                if not bound & needed:
                    return None
                needed -= bound
        self._need(node, needed)
        return self._keep(node)

    def _if(self, node: ast.If, needed: set[str]) -> ast.stmt | None:
        one, other = set(needed), set(needed)
        given = set(self.given)
        body = self.block(node.body, one)
        first, self.given = self.given, given
        orelse = self.block(node.orelse, other)
        self.given |= first
        jumps = self._with_jumps and (_jumps(node.body) or _jumps(node.orelse))
        if not body and not orelse and not jumps:
            return None
        needed.clear()
        needed |= _before(node.body, one, body) | _before(node.orelse, other, orelse)
        self._need(node.test, needed)
        body = body + _end(node.body) or [at(ast.Pass(), node)]
        return self._keep_as(node, replaced(node, body=body, orelse=orelse + _end(node.orelse)))

    def _keep_as(self, node: ast.stmt, made: ast.stmt) -> ast.stmt:
        self._keep(node)
        return made

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, needed: set[str]) -> ast.stmt | None:
        problems, jumps = list(self.problems), self._with_jumps
        self._with_jumps = False
        wanted = self.block(node.body, set(needed))
        self.problems, self._with_jumps = list(problems), jumps
        if not wanted:
            return None
        self._with_jumps = True
        head: set[str] = set()
        for _ in range(8):  # what one turn needs, the turn before it may have made
            before = needed | head
            self.problems = list(problems)
            body = self.block(node.body, current := set(before))
            head |= current
            if head | needed == before:
                break
        self._with_jumps = jumps
        needed |= head
        if not isinstance(node, ast.While):
            needed -= set(stored(node.target))
            self._need(node.iter, needed)
        else:
            self._need(node.test, needed)
        return self._keep_as(node, replaced(node, body=body))


def _before(body: Sequence[ast.stmt], needed: set[str], kept: list[ast.stmt]) -> set[str]:
    """What a branch needs; one that raises needs nothing of what comes after it."""
    raises = bool(body) and isinstance(body[-1], ast.Raise)
    return set() if raises and not kept else needed


def _end(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The jump that ends a branch, which a slice keeps."""
    last = body[-1] if body else None
    return [last] if isinstance(last, ast.Raise | ast.Continue | ast.Break) else []


def _jumps(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Continue | ast.Break) for s in body for n in ast.walk(s))


def _flat(target: ast.expr) -> list[ast.expr]:
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [spot for part in parts for spot in _flat(part)]
        case ast.Starred(value=inner):
            return _flat(inner)
    return [target]
