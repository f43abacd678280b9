"""Repairs of rows that stand in another order than their partners: repeats, picks, shuffles."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot, objective_slot, words
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed, is_simple

_PROMPTS = {
    "prompt", "prompts", "question", "questions", "query", "queries", "problem", "problems",
    "input", "inputs", "ids", "mask", "messages", "texts", "tasks", "task",
}  # fmt: skip
_IN_A_ROW = "repeat each prompt in a row"
_TOGETHER = "pick the rows of all with one index"


def in_a_row(site: Site) -> Iterator[Edit]:
    """`prompts * n` to each prompt n times in a row; `x.repeat(n, 1)` to `repeat_interleave`.

    Several of one function change together, so that they stay aligned.
    """
    tree = site.script.source.tree
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        changes = [c for node in ast.walk(function) if (c := _turned(site, node))]
        if changes:
            yield Edit(_IN_A_ROW, tuple(changes))


def _turned(site: Site, node: ast.AST) -> Change | None:
    match node:
        case ast.BinOp(op=ast.Mult(), left=ast.Name(id=name) as left, right=right):
            if _asks(name) and _is_count(site, right):
                item = name.removesuffix("s") if name.endswith("s") else f"one_{name}"
                text = f"[{item} for {item} in {site.source(left)} for _ in range"
                return site.put(node, f"{text}({site.source(right)})]")
        case ast.ListComp(generators=[ast.comprehension() as first, ast.comprehension() as last]):
            if _is_range(first.iter) and not _is_range(last.iter) and not [*first.ifs, *last.ifs]:
                start, stop = _span(site, first), _span(site, last)
                one, other = site.text[slice(*start)], site.text[slice(*stop)]
                return Change(start[0], stop[1], f"{other} {one}")
        case ast.Call(func=ast.Attribute(value=value, attr="repeat"), args=[count, *ones]):
            plain = ones and all(isinstance(o, ast.Constant) and o.value == 1 for o in ones)
            if plain and _is_count(site, count) and _asks(site.source(value)):
                text = f"{bracketed(site, value)}.repeat_interleave({site.source(count)}, dim=0)"
                return site.put(node, text)
    return None


def _span(site: Site, node: ast.comprehension) -> tuple[int, int]:
    start = site.text.rindex("for", 0, site.span(node.target)[0])
    return start, site.span(node.iter)[1]


def _asks(name: str) -> bool:
    return bool(set(words(name.rpartition(".")[2])) & _PROMPTS)


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called(node) == "range"


def _is_count(site: Site, node: ast.expr) -> bool:
    """Whether it says how many completions a prompt gets."""
    name = site.source(node).rpartition(".")[2]
    return objective_slot(name.lower()) is Slot.GROUP_SIZE


def with_one_index(site: Site) -> Iterator[Edit]:
    """`x[k::n]`, `x[: len(y)]` and `shuffled(x)` to `x[rows]`, with an index of the function.

    Indices that the function uses on other tensors are tried, the most frequent first.
    """
    statement = site.statement_at(site.finding.place.line)
    if statement is None:
        return
    own = {id(n) for n in ast.walk(statement)}
    indices: dict[str, int] = {}
    for node in site.everywhere(ast.Subscript):
        if id(node) not in own and isinstance(node.ctx, ast.Load) and _picks(node):
            text = _index(site, node)
            indices[text] = indices.get(text, 0) + 1
    for text in sorted(indices, key=lambda t: -indices[t]):
        for whole, inner in _picked(site, statement):
            made = f"{inner}[{text}]"
            if site.source(whole) != made:
                yield Edit(_TOGETHER, (site.put(whole, made),))


def _picks(node: ast.Subscript) -> bool:
    """Whether an index may pick rows: no key, no number, no window of columns."""
    return isinstance(node.slice, ast.Name | ast.Slice)


def _index(site: Site, node: ast.Subscript) -> str:
    inner = node.slice
    start = site.offset(inner.lineno, inner.col_offset)
    return site.text[start : site.offset(inner.end_lineno or 0, inner.end_col_offset or 0)]


def _picked(site: Site, statement: ast.stmt) -> Iterator[tuple[ast.expr, str]]:
    """What picks rows in a statement, and what it picks them of."""
    for node in ast.walk(statement):
        match node:
            case ast.Subscript(ctx=ast.Load(), value=value, slice=ast.Slice() | ast.Name()):
                yield node, site.source(value)
            case ast.Subscript(ctx=ast.Load(), value=value, slice=ast.Call()):
                yield node, site.source(value)
            case ast.Call(func=ast.Name(id=name), args=[ast.expr() as value], keywords=[]):
                if name in site.functions and is_simple(value):
                    yield node, site.source(value)
