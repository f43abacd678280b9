"""Repairs of group statistics: per chunk of a list, along the group's axis of an array.

Shapes: P groups of G rewards.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot
from rlproof.read.targets import body_without_doc
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site

STATISTICS = {"mean", "std", "var", "median", "nanmean", "nanstd"}
_FLAT = {"ravel", "flatten", "reshape", "view"}


def per_group(site: Site) -> Iterator[Edit]:
    """Statistics of each group instead of the batch."""
    size = site.name_of(Slot.GROUP_SIZE)
    if size is None or site.function is None:
        return
    yield from _along_axis(site, size)
    yield from _per_chunk(site, size)


def _per_chunk(site: Site, size: str) -> Iterator[Edit]:
    """A loop over chunks of the list around the statements that use the rewards."""
    assert site.function is not None
    rewards = site.name_of(Slot.REWARDS)
    body = body_without_doc(site.function)
    last = body[-1]
    if rewards is None or not isinstance(last, ast.Return) or last.value is None:
        return
    touched = [s for s in body if rewards in _loads(s)]
    if not touched or not all(map(site.alone, body)):
        return
    moved = body[body.index(touched[0]) :]
    if any(isinstance(n, ast.Return) for s in moved[:-1] for n in ast.walk(s)):
        return
    taken = {n.id for n in ast.walk(site.function) if isinstance(n, ast.Name)}
    taken |= {a.arg for a in site.function.args.args}
    result = _free(("result", "advantages", "out"), taken)
    start = _free(("start", "first", "begin"), taken)
    group = _free(("group", "chunk", "members"), taken)
    step = site.step(site.function.body, site.function)
    indent = site.indent(moved[0])
    head = (
        f"{indent}{result} = []\n"
        f"{indent}for {start} in range(0, len({rewards}), {size}):\n"
        f"{indent}{step}{group} = {rewards}[{start} : {start} + {size}]\n"
    )
    changes = [*_indented(site, moved, step, head)]
    names = [n for s in moved for n in ast.walk(s) if isinstance(n, ast.Name)]
    changes += [site.put(n, group) for n in names if _is_load(n, rewards)]
    begin, _ = site.span(last)
    changes.append(Change(begin, begin + len("return"), f"{result} +="))
    end = min(site.lines(last)[1], len(site.text))
    back = f"{indent}return {result}"
    changes.append(Change(end, end, f"{back}\n" if site.text[:end].endswith("\n") else f"\n{back}"))
    yield Edit("statistics of each chunk of the group size", tuple(changes))


def _loads(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _is_load(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _free(names: tuple[str, ...], taken: set[str]) -> str:
    return next((name for name in names if name not in taken), f"{names[0]}_")


def _indented(site: Site, body: list[ast.stmt], step: str, head: str) -> Iterator[Change]:
    """One level more for these lines; inside a string over several lines nothing moves."""
    inside = {
        line
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Constant | ast.JoinedStr) and isinstance(node, ast.expr)
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }
    first = body[0].lineno
    for line in range(first, (body[-1].end_lineno or first) + 1):
        start = site.starts[line - 1]
        empty = not site.text[start : site.starts[line] - 1].strip()
        if line == first:
            yield Change(start, start, head + step)
        elif line not in inside and not empty:
            yield Change(start, start, step)


def _along_axis(site: Site, size: str) -> Iterator[Edit]:
    """Rewards as (P, G), statistics along G, the result flat again."""
    rewards = site.name_of(Slot.REWARDS)
    if site.arrays is None or rewards is None or site.function is None:
        return
    shaped = f".view(-1, {size})" if site.is_torch else f".reshape(-1, {size})"
    axis, keep = site.axis
    arguments = f"{axis}=1, {keep}=True"
    changes = [*_statistics(site, arguments), *_shaped(site, rewards, shaped), *_flattened(site)]
    yield Edit("statistics along the group's axis", tuple(changes))


def _statistics(site: Site, arguments: str) -> Iterator[Change]:
    for call in site.everywhere(ast.Call):
        if called(call) in STATISTICS and Slot.REWARDS in site.taint(call):
            if not any(k.arg in {"axis", "dim"} for k in call.keywords):
                root = getattr(call.func, "value", None)
                module = isinstance(root, ast.Name) and root.id in site.imports
                stop = site.span(call)[1] - 1
                if call.keywords and len(call.args) <= module:  # before `unbiased=False`
                    stop = site.offset(call.keywords[0].lineno, call.keywords[0].col_offset)
                    yield Change(stop, stop, f"{arguments}, ")
                else:
                    yield Change(stop, stop, f"{', ' if call.args else ''}{arguments}")


def _shaped(site: Site, rewards: str, shaped: str) -> Iterator[Change]:
    """Where the rewards become an array, or before their first use."""
    assert site.function is not None
    for node in body_without_doc(site.function):
        if isinstance(node, ast.Assign) and site.taint(node.value) == {Slot.REWARDS}:
            converts = isinstance(node.value, ast.Call) and called(node.value) not in STATISTICS
            if converts:
                stop = site.span(node.value)[1]
                yield Change(stop, stop, shaped)
                return
    first = next((s for s in body_without_doc(site.function) if rewards in _loads(s)), None)
    if first is not None:
        yield site.before(first, f"{rewards} = {rewards}{shaped}")


def _flattened(site: Site) -> Iterator[Change]:
    for node in site.everywhere(ast.Return):
        value = getattr(node, "value", None)
        if isinstance(value, ast.Call) and called(value) in _FLAT:
            return
        flat = ".flatten()" if site.is_torch else ".ravel()"
        if isinstance(value, ast.Call) and called(value) == "tolist":
            if any(isinstance(n, ast.Call) and called(n) in _FLAT for n in ast.walk(value)):
                return
            stop = site.span(value.func)[1] - len(".tolist")
            yield Change(stop, stop, flat)
        elif isinstance(value, ast.Name | ast.Call):
            stop = site.span(value)[1]
            yield Change(stop, stop, flat)
        elif isinstance(value, ast.expr):
            before, after = site.wrap(value, "(", f"){flat}")
            yield from (before, after)


def along_members(site: Site) -> Iterator[Edit]:
    """`axis=0` to `axis=1, keepdims=True`."""
    axis, keep = site.axis
    for call in site.near(ast.Call):
        if called(call) not in STATISTICS:
            continue
        kept = any(k.arg == keep for k in call.keywords)
        tail = "" if kept else f", {keep}=True"
        for keyword in call.keywords:
            if keyword.arg == axis and isinstance(keyword.value, ast.Constant):
                new = "1" if keyword.value.value in (0, -2) else site.source(keyword.value)
                if new != site.source(keyword.value) or tail:
                    changes = (site.put(keyword.value, new + tail),)
                    yield Edit("along the members of each group", changes)
        for argument in call.args[-1:]:
            if isinstance(argument, ast.Constant) and argument.value in (0, -2, 1, -1):
                changes = (site.put(argument, f"1{tail}"),)
                yield Edit("along the members of each group", changes)
