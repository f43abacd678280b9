"""Repairs of masks that compare with the padding id, where that is the end of a completion."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.repair.edits.model import Edit
from rlproof.repair.edits.site import Site, bracketed

_NAMES = ("ended", "is_end", "at_end", "end_marks")
_LABEL = "mask what follows the first end token"


def up_to_the_end(site: Site) -> Iterator[Edit]:
    """`ids != pad_id` to 1 up to and with the first end token.

    With `ended` 1 at every end token, `ended.cumsum − ended` counts those before a slot.
    """
    used = {n.id for n in site.everywhere(ast.Name)}
    name = next(n for n in (*_NAMES, "rlproof_ended") if n not in used)
    word, _ = site.axis
    kind = ".int()" if site.is_torch else ".astype(int)"
    inside = f"{name}.cumsum({word}=-1) - {name} == 0"
    for node, ids, pad in _tests(site):
        statement = site.statement_at(node.lineno)
        if statement is None or not site.arrays:
            continue
        end = pad.replace("pad_token", "eos_token").replace("pad_id", "eos_id")
        if end == pad or (end.isidentifier() and end not in used):
            end = pad
        line = site.before(statement, f"{name} = ({ids} == {end}){kind}")
        text = inside if isinstance(node, ast.Compare) else f"({inside})"
        yield Edit(_LABEL, (line, site.put(node, text)))


def _tests(site: Site) -> Iterator[tuple[ast.expr, str, str]]:
    """Each comparison of ids with a padding id, with both as text."""
    for node in site.nodes(ast.expr):
        match node:
            case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]):
                one, other = (right, left) if "pad" in site.source(left) else (left, right)
                yield node, bracketed(site, one), site.source(other)
            case ast.Call(func=ast.Attribute(value=ids), args=[pad]) if called(node) == "ne":
                yield node, bracketed(site, ids), site.source(pad)
