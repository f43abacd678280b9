"""Data flow inside one function: which parameters each expression is made of.

A *taint* is a set of labels, one per parameter that reaches an expression. It is a sound
over-approximation for straight code, loops and comprehensions; a call's taint is that of its
arguments. Lengths and shapes carry no taint: they are about layout, not values.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from rlproof.read.targets import FunctionNode

Taint = frozenset[str]
NONE: Taint = frozenset()
_LAYOUT_CALLS = {"len", "range", "isinstance", "zeros_like", "ones_like", "empty_like"}
_LAYOUT_ATTRIBUTES = {"shape", "size", "numel", "ndim", "dim", "device", "dtype"}
_FILLING = {"append", "extend", "insert", "add", "update"}
_MOST_CALLS = 3  # functions inside that call each other
_MOST_ROUNDS = 8  # a chain of that many variables through one loop is not code that people write


class Flow:
    """The taint, the statement and the enclosing loops of every expression of a function."""

    def __init__(
        self,
        function: FunctionNode,
        labels: Mapping[str, str],
        marks: Mapping[ast.expr, str] | None = None,
    ) -> None:
        self.taints: dict[ast.AST, Taint] = {}
        self.statement: dict[ast.AST, ast.stmt] = {}
        self.loops: dict[ast.AST, tuple[ast.stmt, ...]] = {}
        self.order: list[ast.expr] = []
        self._marks = dict(marks or {})
        self._inner: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self._entered: list[str] = []
        self._env: dict[str, Taint] = {name: frozenset({tag}) for name, tag in labels.items()}
        self._block(function.body, ())
        self.order = list(dict.fromkeys(self.order))

    def _block(self, body: Sequence[ast.stmt], loops: tuple[ast.stmt, ...]) -> None:
        for statement in body:
            self._statement(statement, loops)

    def _statement(self, node: ast.stmt, loops: tuple[ast.stmt, ...]) -> None:
        match node:
            case ast.For() | ast.AsyncFor():
                self._bind(node.target, node.iter, node, loops)
                self._repeat(node.body, (*loops, node))
                self._either([[], node.orelse], loops)
            case ast.While():
                self._see(node.test, node, loops)
                self._repeat(node.body, (*loops, node))
                self._either([[], node.orelse], loops)
            case ast.If():
                self._see(node.test, node, loops)
                self._either([node.body, node.orelse], loops)
            case ast.Match():
                self._see(node.subject, node, loops)
                self._either([[], *(case.body for case in node.cases)], loops)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    taint = self._see(item.context_expr, node, loops)
                    if item.optional_vars:
                        self._store(item.optional_vars, taint)
                self._block(node.body, loops)
            case ast.Try():
                handlers = [handler.body for handler in node.handlers]
                self._either([[*node.body, *node.orelse], *handlers], loops)
                self._block(node.finalbody, loops)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._nested(node, loops)
            case _:
                self._simple(node, loops)

    def _either(self, bodies: Sequence[Sequence[ast.stmt]], loops: tuple[ast.stmt, ...]) -> None:
        """One of several blocks runs: a variable may come from any of them."""
        before, after = dict(self._env), dict(self._env)
        merged: dict[str, Taint] = {}
        for body in bodies:
            self._env = dict(before)
            self._block(body, loops)
            for name, taint in self._env.items():
                merged[name] = merged.get(name, NONE) | taint
        self._env = after | merged

    def _repeat(self, body: Sequence[ast.stmt], loops: tuple[ast.stmt, ...]) -> None:
        """A loop: what one round leaves, the next may read, until nothing new comes in."""
        for _ in range(_MOST_ROUNDS):
            before = dict(self._env)
            self._block(body, loops)
            for name, taint in before.items():
                self._env[name] = self._env[name] | taint
            if self._env == before:
                return

    def _nested(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, loops: tuple[ast.stmt, ...]
    ) -> None:
        """A function inside: its name carries the taint of what it returns."""
        outer = dict(self._env)
        self._block(node.body, loops)
        returned = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value]
        self._env = outer
        self._env[node.name] = NONE.union(*(self.taints.get(value, NONE) for value in returned))
        self._inner[node.name] = node

    def _enter(self, call: ast.Call, loops: tuple[ast.stmt, ...]) -> Taint:
        """A call of a function inside: its parameters carry the taint of what they are given."""
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        node = self._inner.get(name)
        if node is None or name in self._entered or len(self._entered) >= _MOST_CALLS:
            return NONE
        given = {
            **dict(zip((a.arg for a in node.args.args), call.args, strict=False)),
            **{k.arg: k.value for k in call.keywords if k.arg},
        }
        outer = dict(self._env)
        self._env.update((arg, self.taints.get(value, NONE)) for arg, value in given.items())
        self._entered.append(name)
        self._block(node.body, loops)
        self._entered.pop()
        self._env = outer
        returned = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value]
        return NONE.union(*(self.taints.get(value, NONE) for value in returned))

    def _simple(self, node: ast.stmt, loops: tuple[ast.stmt, ...]) -> None:
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr=attr)) as call):
                taint = self._see(call, node, loops)
                while isinstance(receiver, ast.Subscript):
                    receiver = receiver.value  # `members[key].append(x)` fills `members`
                if attr in _FILLING and isinstance(receiver, ast.Name):
                    self._env[receiver.id] = self._env.get(receiver.id, NONE) | taint
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value, node, loops)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value, node, loops)
            case ast.AugAssign(target=target, value=value):
                taint = self._see(value, node, loops)
                self._store(target, taint | self._see(target, node, loops))
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._see(child, node, loops)

    def _assign(
        self, target: ast.expr, value: ast.expr, node: ast.stmt, loops: tuple[ast.stmt, ...]
    ) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            if len(target.elts) == len(value.elts):
                for left, right in zip(target.elts, value.elts, strict=True):
                    self._assign(left, right, node, loops)
                return
        if isinstance(target, ast.Tuple) and self._unpack(target, value, node, loops):
            return
        self._store(target, self._see(value, node, loops))

    def _unpack(
        self, target: ast.Tuple, value: ast.expr, node: ast.stmt, loops: tuple[ast.stmt, ...]
    ) -> bool:
        """`a, b = (f(x) for x in (p, q))` and `a, b = map(f, (p, q))`, element by element."""
        loop: tuple[ast.expr, ast.expr] | None
        match value:
            case (
                ast.GeneratorExp(elt=elt, generators=[one])
                | ast.ListComp(elt=elt, generators=[one])
            ) if isinstance(one.iter, ast.Tuple | ast.List):
                sources, loop = one.iter.elts, (one.target, elt)
            case ast.Call(func=ast.Name(id="map"), args=[_, ast.Tuple(elts=sources)]):
                loop = None
            case _:
                return False
        if len(sources) != len(target.elts):
            return False
        for part, source in zip(target.elts, sources, strict=True):
            taint = self._see(source, node, loops)
            if loop is not None:
                self._store(loop[0], taint)
                taint = self._see(loop[1], node, loops)
            self._store(part, taint)
        return True

    def _store(self, target: ast.expr, taint: Taint) -> None:
        match target:
            case ast.Name(id=name):
                self._env[name] = taint
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._store(part, taint)
            case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.Attribute(value=inner):
                if isinstance(inner, ast.Name):
                    self._env[inner.id] = self._env.get(inner.id, NONE) | taint

    def _bind(
        self, target: ast.expr, source: ast.expr, node: ast.stmt, loops: tuple[ast.stmt, ...]
    ) -> None:
        """Give loop variables the taint of what they walk over, through zip and enumerate."""
        self._see(source, node, loops)
        self._spread(target, source)

    def _spread(self, target: ast.expr, source: ast.expr) -> None:
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name):
            name, args = source.func.id, source.args
            if name in {"list", "tqdm", "reversed"} and args:
                return self._spread(target, args[0])
            if isinstance(target, ast.Tuple):
                if name == "enumerate" and len(target.elts) == 2 and args:
                    self._store(target.elts[0], NONE)
                    return self._spread(target.elts[1], args[0])
                if name == "zip" and len(target.elts) == len(args):
                    for part, argument in zip(target.elts, args, strict=True):
                        self._spread(part, argument)
                    return None
        return self._store(target, self.taints.get(source, NONE))

    def _see(self, node: ast.expr, statement: ast.stmt, loops: tuple[ast.stmt, ...]) -> Taint:
        taint = self._expression(node, statement, loops)
        if node in self._marks:
            taint |= {self._marks[node]}
        self.taints[node] = self.taints.get(node, NONE) | taint
        self.statement[node] = statement
        self.loops[node] = self.loops[statement] = loops
        self.order.append(node)
        return taint

    def _expression(
        self, node: ast.expr, statement: ast.stmt, loops: tuple[ast.stmt, ...]
    ) -> Taint:
        def see(child: ast.expr) -> Taint:
            return self._see(child, statement, loops)

        match node:
            case ast.Name(id=name):
                return self._env.get(name, NONE)
            case ast.Subscript(value=value, slice=index):
                see(index)
                return see(value)
            case ast.Attribute(value=value, attr=attr):
                taint = see(value)
                return NONE if attr in _LAYOUT_ATTRIBUTES else taint
            case ast.Compare():
                return NONE.union(*(see(child) for child in [node.left, *node.comparators]))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                see(test)
                return see(body) | see(orelse)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                outer = dict(self._env)
                self._generators(node.generators, statement, loops)
                parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                taint = NONE.union(*(see(part) for part in parts))
                self._env = outer
                return taint
            case ast.NamedExpr(target=target, value=value):
                self._store(target, see(value))
                return self._env.get(target.id, NONE)
            case ast.Lambda(body=body):
                return see(body)
            case ast.Call(func=func, args=args, keywords=keywords):
                taint = see(func)
                taint = taint.union(*(see(arg) for arg in args), *(see(k.value) for k in keywords))
                name = func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")
                if name in _LAYOUT_CALLS | {"size", "numel", "dim"}:
                    return NONE
                return taint | self._enter(node, loops)
            case _:
                children = (c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr))
                return NONE.union(*(see(child) for child in children))

    def _generators(
        self,
        generators: Sequence[ast.comprehension],
        statement: ast.stmt,
        loops: tuple[ast.stmt, ...],
    ) -> None:
        for generator in generators:
            self._bind(generator.target, generator.iter, statement, loops)
            for test in generator.ifs:
                self._see(test, statement, loops)
