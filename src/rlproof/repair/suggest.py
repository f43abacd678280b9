"""A small edit for a finding, in the script's own names: suggested, not yet verified.

Every edit replaces one or two spans of the source and leaves the rest alone. An edit that does
not parse, or that can't be located with certainty, is not suggested.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterator
from dataclasses import replace

from rlproof.judge.findings import FileReport, Finding
from rlproof.read.anatomy import labels
from rlproof.read.flow import Flow
from rlproof.read.landmarks import called, surrogate_of
from rlproof.read.names import Slot
from rlproof.read.targets import Role, Script, Target

Edit = tuple[int, int, str]
"""Replace the text between two offsets."""


def suggest(script: Script, report: FileReport) -> FileReport:
    """The report with a diff on every finding that has a suggested edit."""
    editor = _Editor(script)
    return replace(report, findings=tuple(editor.annotate(f) for f in report.findings))


class _Editor:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.text = script.source.text
        self.starts = [0]
        for line in self.text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def annotate(self, finding: Finding) -> Finding:
        target = next((t for t in self.script.targets if t.name == finding.place.function), None)
        make = _EDITS.get(finding.code)
        if target is None or make is None:
            return finding
        edits = list(make(self, target, finding))
        return replace(finding, diff=self._diff(edits)) if edits else finding

    def offset(self, line: int, column: int) -> int:
        """Where a (line, UTF-8 column) of the tree is in the text."""
        start = self.starts[line - 1]
        text = self.text[start : self.starts[line] - 1]
        return start + len(text.encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno or node.lineno, node.end_col_offset or 0),
        )

    def source(self, node: ast.expr | ast.stmt) -> str:
        start, stop = self.span(node)
        return self.text[start:stop]

    def _diff(self, edits: list[Edit]) -> str | None:
        text = self.text
        for start, stop, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[stop:]
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return None
        name, before, after = self._of_cell(self.text, text, self._line(min(edits)[0]))
        lines = difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)

    def _line(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def _of_cell(self, before: str, after: str, line: int) -> tuple[str, str, str]:
        """Name and texts that a diff is about: the file, or the one cell that an edit is in."""
        path = self.script.source.path
        for cell in self.script.source.cells:
            if cell.first <= line < cell.first + cell.count:
                start, stop = self.starts[cell.first - 1], self.starts[cell.first - 1 + cell.count]
                grown = stop + len(after) - len(before)
                return f"{path} (cell {cell.number})", before[start:stop], after[start:grown]
        return path, before, after

    def nodes(self, finding: Finding, target: Target) -> Iterator[ast.expr]:
        """Expressions of the statement that the finding points at."""
        place = finding.place
        for node in ast.walk(target.node):
            if isinstance(node, ast.expr) and place.line <= node.lineno <= place.end_line:
                yield node


def _meeting(target: Target, nodes: Iterator[ast.expr], one: Slot, two: Slot) -> ast.BinOp | None:
    """The operator whose two sides are made of these two parameters."""
    taints = Flow(target.node, labels(target)).taints
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Div):
            left, right = taints.get(node.left, frozenset()), taints.get(node.right, frozenset())
            if (one in left and two in right) or (two in left and one in right):
                if not {one, two} <= left and not {one, two} <= right:
                    return node
    return None


def _exp(editor: _Editor, target: Target) -> str:
    """How this function, or else the script, spells exp."""
    for tree in (target.node, editor.script.source.tree):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and node.attr == "exp"
                and isinstance(node.value, ast.Name)
            ):
                return f"{node.value.id}.exp"
    for module in ("torch", "np", "numpy", "math"):
        names = (n.id for n in ast.walk(editor.script.source.tree) if isinstance(n, ast.Name))
        if module in names:
            return f"{module}.exp"
    return "math.exp"


def _ratio_by_exp(editor: _Editor, target: Target, finding: Finding) -> Iterator[Edit]:
    node = _meeting(target, editor.nodes(finding, target), Slot.NEW, Slot.OLD)
    if node is not None:
        left, right = editor.source(node.left), editor.source(node.right)
        yield (*editor.span(node), f"{_exp(editor, target)}({left} - {right})")


def _swap(one: Slot, two: Slot) -> Callable[[_Editor, Target, Finding], Iterator[Edit]]:
    def edit(editor: _Editor, target: Target, finding: Finding) -> Iterator[Edit]:
        node = _meeting(target, editor.nodes(finding, target), one, two)
        shared = two is Slot.REF and not target.has(Slot.OLD)  # the ratio may use it as well
        if node is not None and not shared:
            yield (*editor.span(node.left), editor.source(node.right))
            yield (*editor.span(node.right), editor.source(node.left))

    return edit


def _other_picker(old: str, new: str) -> Callable[[_Editor, Target, Finding], Iterator[Edit]]:
    def edit(editor: _Editor, target: Target, _finding: Finding) -> Iterator[Edit]:
        node = surrogate_of(Flow(target.node, labels(target)))
        if isinstance(node, ast.Call) and old in called(node):
            start, stop = editor.span(node.func)
            name = editor.text[start:stop]
            head, _, tail = name.rpartition(old)
            yield start, stop, f"{head}{new}{tail}"

    return edit


def _negate_surrogate(editor: _Editor, target: Target, finding: Finding) -> Iterator[Edit]:
    """Put a minus before the surrogate where it enters the sum."""
    node = surrogate_of(Flow(target.node, labels(target)))
    if node is None:
        return
    flow = Flow(target.node, labels(target), {node: "surrogate"})
    for entry in flow.order:
        statement = flow.statement[entry]
        if statement.lineno != finding.place.line:
            continue
        value = getattr(statement, "value", None)
        while isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
            value = value.left if "surrogate" in flow.taints[value.left] else None
        if isinstance(value, ast.expr) and "surrogate" in flow.taints[value]:
            start, stop = editor.span(value)
            text = editor.text[start:stop]
            simple = isinstance(value, ast.Name | ast.Call | ast.Subscript | ast.Attribute)
            yield start, stop, f"-{text}" if simple else f"-({text})"
        return


def _add_eps(editor: _Editor, target: Target, finding: Finding) -> Iterator[Edit]:
    taints = Flow(target.node, labels(target)).taints
    eps = target.parameter(Slot.EPS)
    for node in editor.nodes(finding, target):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if Slot.REWARDS in taints.get(node.right, ()) and Slot.EPS not in taints[node.right]:
                divisor = editor.source(node.right)
                yield (*editor.span(node.right), f"({divisor} + {eps.name if eps else '1e-6'})")
                return


def _add_penalty(editor: _Editor, target: Target, finding: Finding) -> Iterator[Edit]:
    """`… - beta * kl` to `… + beta * kl`."""
    taints = Flow(target.node, labels(target)).taints
    for node in editor.nodes(finding, target):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            right, left = taints.get(node.right, ()), taints.get(node.left, ())
            if Slot.REF in right and Slot.REF not in left:
                start, stop = editor.span(node.left)[1], editor.span(node.right)[0]
                between = editor.text[start:stop]
                if between.count("-") == 1:
                    yield start, stop, between.replace("-", "+")
                    return


def _forward_clip(editor: _Editor, target: Target, finding: Finding) -> Iterator[Edit]:
    """Give the metric the clip range that the loss is given."""
    metric = next(iter(editor.script.parts(Role.CLIP_FRACTION)), None)
    clip = metric.parameter(Slot.CLIP) if metric else None
    if metric is None or clip is None:
        return
    default = editor.source(clip.default) if clip.default is not None else "0.2"
    stars = target.node.args.kwarg
    own = {arg.arg for arg in [*target.node.args.args, *target.node.args.kwonlyargs]}
    value = f'{stars.arg}.get("{clip.name}", {default})' if stars else None
    value = clip.name if clip.name in own else value
    for node in editor.nodes(finding, target):
        if value and isinstance(node, ast.Call) and called(node) == metric.name:
            stop = editor.span(node)[1]
            yield stop - 1, stop - 1, f", {clip.name}={value}"
            return


def _hoist(editor: _Editor, target: Target, finding: Finding) -> Iterator[Edit]:
    """Move the statement before the innermost loop that holds it."""
    line = finding.place.line
    loops = [
        node
        for node in ast.walk(target.node)
        if isinstance(node, ast.For | ast.While) and node.lineno < line <= (node.end_lineno or 0)
    ]
    if not loops or finding.place.end_line != line:
        return
    loop = max(loops, key=lambda node: node.lineno)
    start, stop = editor.starts[line - 1], editor.starts[line]
    before = editor.starts[loop.lineno - 1]
    yield start, stop, ""
    yield before, before, " " * loop.col_offset + editor.text[start:stop].lstrip()


_EDITS: dict[str, Callable[[_Editor, Target, Finding], Iterator[Edit]]] = {
    "SUR001": _ratio_by_exp,
    "SUR002": _ratio_by_exp,
    "SUR003": _swap(Slot.NEW, Slot.OLD),
    "SUR004": _other_picker("max", "min"),
    "SUR005": _negate_surrogate,
    "SUR013": _other_picker("min", "max"),
    "KLD001": _add_penalty,
    "KLD002": _swap(Slot.NEW, Slot.REF),
    "ADV004": _add_eps,
    "LOP001": _hoist,
    "MET001": _forward_clip,
}
