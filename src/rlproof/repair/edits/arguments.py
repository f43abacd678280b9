"""Repairs of calls that give an argument to another parameter, or leave a switch off."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.arguments import LossCall, calls_of, ignored_masks
from rlproof.read.names import objective_slot
from rlproof.read.targets import Role
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site


def each_to_its_own(site: Site) -> Iterator[Edit]:
    """Every argument that is another parameter's by its name is exchanged for what is meant.

    That is a variable of the caller with the parameter's name, or else the only one that plays
    its part; of a batch asked by key, the entry under the parameter's name, where the call takes
    others under theirs.
    """
    for call in _calls(site):
        changes = list(_exchanged(site, call))
        if changes and None not in changes:
            yield Edit("give each parameter its own", tuple(c for c in changes if c))


def switched_on(site: Site) -> Iterator[Edit]:
    """`loss(…, mask)` to `loss(…, mask, use_mask=True)`, where nothing else reads the mask."""
    for call in _calls(site):
        for _, switch in ignored_masks(site.script, call):
            start, stop = site.span(call.call)
            last = [*call.call.args, *(k.value for k in call.call.keywords)][-1]
            end = site.span(last)[1]
            lines = site.text[start:stop].count("\n")
            comma = site.text[end : stop - 1].strip().startswith(",")
            indent = site.text[site.starts[last.lineno - 1] :]
            space = indent[: len(indent) - len(indent.lstrip(" "))]
            alone = site.text[site.starts[last.lineno - 1] : site.span(last)[0]].strip() == ""
            glue = f"\n{space}" if lines and alone else " "
            at = site.text.index(",", end) + 1 if comma else end
            text = f"{glue}{switch}=True," if comma else f",{glue}{switch}=True"
            yield Edit(f"set {switch}", (Change(at, at, text),))


def _calls(site: Site) -> Iterator[LossCall]:
    """Calls of losses on the finding's lines."""
    place = site.finding.place
    for call in calls_of(site.script, Role.LOSS):
        last = call.call.end_lineno or call.call.lineno
        if call.call.lineno <= place.end_line and place.line <= last:
            yield call


def _exchanged(site: Site, call: LossCall) -> Iterator[Change | None]:
    """A change for each wrong argument; None for one that nothing is known for."""
    for parameter, node in call.arguments.items():
        name, slot = _name(node), objective_slot(parameter)
        if not name or slot is None or name == parameter or objective_slot(name) is slot:
            continue
        if objective_slot(name) is None:
            continue
        text = _meant(site, call, parameter, node)
        yield site.put(node, text) if text else None


def _meant(site: Site, call: LossCall, parameter: str, node: ast.expr) -> str | None:
    known = _locals(site)
    if parameter in known:
        return parameter
    same = [n for n in sorted(known) if objective_slot(n) is objective_slot(parameter)]
    if len(same) == 1:
        return same[0]
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        container = site.source(node.value)
        if _follows(site, call, container):
            return f'{container}["{parameter}"]'
    return None


def _follows(site: Site, call: LossCall, container: str) -> bool:
    """Whether the call takes another entry of the same batch under its parameter's name."""
    return any(
        isinstance(node, ast.Subscript)
        and site.source(node.value) == container
        and _name(node).removesuffix("s") == parameter.removesuffix("s")
        for parameter, node in call.arguments.items()
    )


def _locals(site: Site) -> set[str]:
    """Variables and parameters of the caller."""
    stored = {n.id for n in site.everywhere(ast.Name) if isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in site.everywhere(ast.arg)}


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return ""
