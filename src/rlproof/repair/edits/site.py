"""The place of one finding: its function, where each node stands in the text, who is who."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import TypeVar

from rlproof.judge.findings import Finding
from rlproof.read.anatomy import labels
from rlproof.read.flow import Flow, Taint
from rlproof.read.landmarks import called, surrogate_of
from rlproof.read.names import Slot, bare_slot, objective_slot, token_slot
from rlproof.read.targets import (
    FunctionNode,
    Parameter,
    Role,
    Script,
    Target,
    module_functions,
)
from rlproof.repair.edits.model import Change

N = TypeVar("N", bound=ast.AST)
ARRAYS = ("torch", "jax.numpy", "numpy")
REDUCERS = {"sum", "mean"}
_METHODS = REDUCERS | {"clamp", "exp", "gather", "squeeze", "unsqueeze", "view", "reshape", "std"}


class Site:
    """What an edit needs to know of the function that a finding points into."""

    def __init__(self, script: Script, finding: Finding, codes: frozenset[str]) -> None:
        self.script = script
        self.finding = finding
        self.codes = codes
        """All faults of error or warning that were found in this function."""
        self.text = script.source.text
        name = finding.place.function
        functions = {node.name: node for node in module_functions(script.source.tree)}
        self.target: Target | None = next((t for t in script.targets if t.name == name), None)
        self.function: FunctionNode | None = self.target.node if self.target else None
        self.function = self.function or functions.get(name)
        self.function = self.function or enclosing(script.source.tree, finding.place.line)
        self.functions = functions
        self.elsewhere = False
        """Whether this is a helper: the finding's lines are not in it, so any line may be wrong."""

    def at(self, target: Target) -> Site:
        """The same finding, looked for in another function: a helper that this one calls."""
        made = copy(self)
        made.target, made.function, made.elsewhere = target, target.node, True
        for name in ("flow", "surrogate", "arrays", "exp"):
            made.__dict__.pop(name, None)
        return made

    def as_written(self) -> Site:
        """The same finding in the function of the script, not in what was outlined of it."""
        made = copy(self)
        made.function = enclosing(self.script.source.tree, self.finding.place.line)
        for name in ("flow", "surrogate", "arrays", "exp"):
            made.__dict__.pop(name, None)
        return made

    # --- offsets ------------------------------------------------------------------------------

    @cached_property
    def starts(self) -> list[int]:
        """The offset of every line."""
        found = [0]
        for line in self.text.split("\n"):
            found.append(found[-1] + len(line) + 1)
        return found

    def offset(self, line: int, column: int) -> int:
        """Where a (line, UTF-8 column) of the tree is in the text."""
        start = self.starts[line - 1]
        text = self.text[start : self.starts[line] - 1]
        return start + len(text.encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Offsets of a node, brackets around it left out."""
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        start, stop = self.span(node)
        return self.text[start:stop]

    def lines(self, node: ast.stmt) -> tuple[int, int]:
        """Offsets of the whole lines of a statement."""
        return self.starts[node.lineno - 1], self.starts[node.end_lineno or node.lineno]

    def alone(self, node: ast.stmt) -> bool:
        """Whether nothing but a comment shares the lines of a statement."""
        start, stop = self.span(node)
        first, last = self.lines(node)
        after = self.text[stop:last].strip()
        return not self.text[first:start].strip() and (not after or after.startswith("#"))

    def indent(self, node: ast.stmt) -> str:
        """The white space before a statement that begins its line."""
        start, _ = self.span(node)
        return self.text[self.starts[node.lineno - 1] : start]

    def step(self, body: list[ast.stmt], outer: ast.stmt) -> str:
        """One level of indentation, as the script has it."""
        inner, around = self.indent(body[0]), self.indent(outer)
        return inner[len(around) :] if inner.startswith(around) and inner != around else "    "

    # --- changes ------------------------------------------------------------------------------

    def put(self, node: ast.expr | ast.stmt, text: str) -> Change:
        """Replace a node."""
        return Change(*self.span(node), text)

    def put_simple(self, node: ast.expr, text: str) -> Change:
        """Replace a node by something that needs no brackets, and those around it, if any."""
        start, stop = self.span(node)
        before = self.text[: start - 1].rstrip(" ")[-1:] if start else ""
        held = self.text[start - 1 : start] + self.text[stop : stop + 1] == "()"
        if held and not (before.isalnum() or before in {"_", ")", "]"}):
            start, stop = start - 1, stop + 1
        return Change(start, stop, text)

    def wrap(self, node: ast.expr, before: str, after: str) -> tuple[Change, Change]:
        """Put something before and behind a node."""
        start, stop = self.span(node)
        reach = stop - start
        return Change(start, start, before, reach), Change(stop, stop, after, -reach)

    def before(self, node: ast.stmt, *lines: str) -> Change:
        """Put lines before a statement, indented as it is."""
        start, _ = self.lines(node)
        return Change(start, start, "".join(f"{self.indent(node)}{line}\n" for line in lines))

    def drop(self, node: ast.stmt) -> Change:
        """Take out the lines of a statement."""
        return Change(*self.lines(node), "")

    def operator(self, node: ast.BinOp, old: str, new: str) -> Change | None:
        """Replace the operator between two operands."""
        start, stop = self.span(node.left)[1], self.span(node.right)[0]
        position = start
        while position < stop:
            if self.text[position] == "#":
                position = self.text.index("\n", position)
            elif self.text.startswith(old, position):
                return Change(position, position + len(old), new)
            position += 1
        return None

    # --- meaning ------------------------------------------------------------------------------

    @cached_property
    def flow(self) -> Flow:
        """Which parameters each expression is made of."""
        assert self.function is not None
        return Flow(self.function, labels(self.target) if self.target else {})

    def taint(self, node: ast.AST | None) -> Taint:
        """The slots that reach a node."""
        return self.flow.taints.get(node, frozenset()) if node is not None else frozenset()

    @cached_property
    def surrogate(self) -> ast.expr | None:
        """The choice between the two terms, or the product with the advantage."""
        return surrogate_of(self.flow)

    def nodes(self, kind: type[N]) -> list[N]:
        """Nodes of one kind in the lines of the finding, outer ones first."""
        if self.elsewhere:
            return self.everywhere(kind)
        place = self.finding.place
        return [
            node
            for node in self.everywhere(kind)
            if place.line <= getattr(node, "lineno", 0) <= place.end_line
        ]

    def near(self, kind: type[N]) -> list[N]:
        """Those in the lines of the finding first, then all."""
        return [*self.nodes(kind), *self.everywhere(kind)]

    def everywhere(self, kind: type[N]) -> list[N]:
        """Nodes of one kind in the whole function, outer ones first."""
        if self.function is None:
            return []
        return [node for node in ast.walk(self.function) if isinstance(node, kind)]

    def statements(self) -> Iterator[ast.stmt]:
        """Statements of the function in source order."""
        found = [node for node in self.everywhere(ast.stmt) if node is not self.function]
        yield from sorted(found, key=lambda node: node.lineno)

    def statement_at(self, line: int) -> ast.stmt | None:
        """The smallest statement that covers a line."""
        holders = [s for s in self.statements() if s.lineno <= line <= (s.end_lineno or s.lineno)]
        return min(holders, key=lambda s: (s.end_lineno or 0) - s.lineno, default=None)

    def name_of(self, slot: Slot) -> str | None:
        """The parameter that plays a part, as the script writes it: `self.clip_eps`."""
        parameter = self.target.parameter(slot) if self.target else None
        if parameter is None or self.target is None or self.target.origin is None:
            return parameter.name if parameter else None
        spelt = (n for n in self.everywhere(ast.Name) if n.id == parameter.name)
        return next((self.source(node) for node in spelt if hasattr(node, "lineno")), None)

    def definition_of(self, name: str) -> ast.expr | None:
        """What a local variable is given, where that happens exactly once."""
        values = [
            node.value
            for node in self.everywhere(ast.Assign)
            if any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
        ]
        return values[0] if len(values) == 1 else None

    # --- spelling -----------------------------------------------------------------------------

    @cached_property
    def imports(self) -> dict[str, str]:
        """Every module of the script by the name it is known under."""
        found: dict[str, str] = {}
        for node in ast.walk(self.script.source.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.name if alias.asname else alias.name.split(".")[0]
                    found[alias.asname or name] = name
        return found

    @cached_property
    def arrays(self) -> str | None:
        """The name of the array library that this function uses; None for plain lists."""
        used = {n.id for n in self.everywhere(ast.Name)}
        known = {module: name for name, module in self.imports.items()}
        for module in ARRAYS:
            if module in known and known[module] in used:
                return known[module]
        methods = any(
            isinstance(n.func, ast.Attribute) and n.func.attr in _METHODS
            for n in self.everywhere(ast.Call)
        )
        return next((known[m] for m in ARRAYS if m in known), None) if methods else None

    @property
    def is_torch(self) -> bool:
        """Whether the arrays are tensors."""
        return self.arrays is not None and self.imports[self.arrays] == "torch"

    @property
    def axis(self) -> tuple[str, str]:
        """The keywords for an axis and for keeping it."""
        return ("dim", "keepdim") if self.is_torch else ("axis", "keepdims")

    @cached_property
    def exp(self) -> str:
        """How this function, or else the script, spells exp."""
        for tree in (self.function, self.script.source.tree):
            for node in ast.walk(tree) if tree else ():
                if isinstance(node, ast.Attribute) and node.attr == "exp":
                    if isinstance(node.value, ast.Name) and node.value.id in self.imports:
                        return f"{node.value.id}.exp"
        if self.arrays:
            return f"{self.arrays}.exp"
        return "exp" if self._imports_exp() else "math.exp"

    def _imports_exp(self) -> bool:
        return any(
            isinstance(node, ast.ImportFrom)
            and any(a.name == "exp" and not a.asname for a in node.names)
            for node in ast.walk(self.script.source.tree)
        )

    @property
    def needs_math(self) -> tuple[Change, ...]:
        """An import of math where the script has none, below its docstring and future imports."""
        if self.exp != "math.exp" or "math" in self.imports:
            return ()
        body = self.script.source.tree.body
        line = 1
        for node in body:
            doc = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if not doc and not future:
                line = node.lineno
                break
        start = self.starts[line - 1]
        blank = (
            "" if line <= len(body) and isinstance(body[0], ast.Import | ast.ImportFrom) else "\n"
        )
        return (Change(start, start, f"import math\n{blank}"),)


def imported(site: Site, module: str) -> tuple[Change, ...]:
    """An import of a module of Python's own, before the script's first one; none if it is there."""
    if module in site.imports.values():
        return ()
    body = site.script.source.tree.body
    kinds = ast.Import | ast.ImportFrom
    first = next(
        (n for n in body if isinstance(n, kinds) and getattr(n, "module", "") != "__future__"), None
    )
    if first is None:
        return ()
    start = site.starts[first.lineno - 1]
    return (Change(start, start, f"import {module}\n"),)


def enclosing(tree: ast.Module, line: int) -> FunctionNode:
    """The innermost function around a line; the module's own statements as one, if none is."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, FunctionNode) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    if around:
        return max(around, key=lambda node: node.lineno)
    nothing = ast.arguments([], [], None, [], [], None, [])
    return ast.FunctionDef("<module>", nothing, tree.body or [ast.Pass()], [], lineno=1)


def helpers(site: Site) -> Iterator[Target]:
    """Functions that a function calls, and those that these call: parameters by their names.

    Methods count, by their last name.
    """
    known: dict[str, FunctionNode] = {}
    for node in ast.walk(site.script.source.tree):
        if isinstance(node, FunctionNode):
            known[node.name] = node
    own = enclosing(site.script.source.tree, site.finding.place.line)
    seen, left = {own.name}, [own, *([site.function] if site.function else [])]
    while left:
        for call in ast.walk(left.pop(0)):
            name = called(call) if isinstance(call, ast.Call) else ""
            if name in known and name not in seen:
                seen.add(name)
                left.append(known[name])
                yield Target(Role.LOSS, known[name], _parameters(known[name]))


def _parameters(function: FunctionNode) -> tuple[Parameter, ...]:
    args = function.args
    names = [arg.arg for arg in [*args.posonlyargs, *args.args, *args.kwonlyargs]]
    slots = ((n, objective_slot(n) or bare_slot(n) or token_slot(n)) for n in names)
    return tuple(Parameter(name, slot, True) for name, slot in slots)


def is_simple(node: ast.expr) -> bool:
    """Whether a node may stand next to any operator without brackets."""
    return isinstance(
        node, ast.Name | ast.Call | ast.Subscript | ast.Attribute | ast.Constant | ast.List
    )


def bracketed(site: Site, node: ast.expr) -> str:
    """The text of a node, in brackets unless it is simple."""
    text = site.source(node)
    return text if is_simple(node) else f"({text})"


def unwrapped(site: Site, node: ast.expr, inner: ast.expr) -> Change:
    """Put a part of an expression in its place; brackets stay unless it is a whole statement."""
    text = site.source(inner)
    whole = getattr(site.flow.statement.get(node), "value", None) is node
    return site.put(node, text if is_simple(inner) or whole else f"({text})")


def reductions(site: Site) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls that sum or average over an array, each with what it reduces."""
    for node in site.everywhere(ast.Call):
        if called(node) in REDUCERS and isinstance(node.func, ast.Attribute):
            root = node.func.value
            if isinstance(root, ast.Name) and root.id in site.imports:
                if node.args:
                    yield node, node.args[0]
            else:
                yield node, root
