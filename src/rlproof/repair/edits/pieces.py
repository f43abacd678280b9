"""Repairs of small functions around the objective: masks in statistics, places of scores, groups.

Shapes: B rows, T slots.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot, objective_slot
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed

_SUMS = {"sum", "mean"}


def mean_over_mask(site: Site) -> Iterator[Edit]:
    """`x.mean(…)` in the finding's lines to `(x * mask).sum(…) / mask.sum(…)`."""
    mask = _mask(site)
    for call in site.nodes(ast.Call) if mask and site.arrays else []:
        if called(call) == "mean" and (root := _root(site, call)) is not None:
            given = _arguments(site, call)
            count = f"{mask}.sum({given})"
            if given and site.is_torch:
                count += ".clamp(min=1)"
            text = f"({bracketed(site, root)} * {mask}).sum({given}) / {count}"
            yield Edit("average over real tokens", (site.put(call, text),))


def sum_over_mask(site: Site) -> Iterator[Edit]:
    """`x.sum(…)` in the finding's lines to `(x * mask).sum(…)`."""
    mask = _mask(site)
    for call in site.nodes(ast.Call) if mask and site.arrays else []:
        if called(call) in _SUMS and (root := _root(site, call)) is not None:
            yield Edit("real tokens only", (site.put(root, f"({bracketed(site, root)} * {mask})"),))


def mask_shifted(site: Site) -> Iterator[Edit]:
    """`mask[:, :-1]` to `mask[:, 1:]`."""
    mask = _mask(site)
    for node in site.near(ast.Subscript):
        if isinstance(node.slice, ast.Tuple) and site.source(node.value) == mask:
            last = node.slice.elts[-1]
            if site.source(last).replace(" ", "") == ":-1":
                yield Edit("shift the mask like the tokens", (site.put(last, "1:"),))


def window_of_each_row(site: Site) -> Iterator[Edit]:
    """`logps[:, start : start + keep]` to the columns of each row, behind its own prompt."""
    starts, keep = site.name_of(Slot.START), site.name_of(Slot.KEEP)
    if starts is None or keep is None or not site.is_torch:
        return
    for node in site.nodes(ast.Subscript):
        match node.slice:
            case ast.Tuple(
                elts=[ast.Slice(lower=None), ast.Slice(lower=ast.expr(), upper=ast.expr())]
            ):
                rows = site.source(node.value)
                columns = f"{starts}[:, None] - 1 + {site.arrays}.arange({keep})"
                text = f"{rows}.gather(1, ({columns}).clamp(max={rows}.shape[1] - 1))"
                yield Edit("a window for each row", (site.put(node, text),))


def without_statement(site: Site) -> Iterator[Edit]:
    """The finding's statement taken out, where its function has others beside it."""
    statement = site.statement_at(site.finding.place.line)
    if isinstance(statement, ast.Assign | ast.AugAssign) and site.alone(statement):
        yield Edit(f"take out `{site.source(statement)}`", (site.drop(statement),))


def on_last_token(site: Site) -> Iterator[Edit]:
    """`mask.sum(1) + 1` to `mask.sum(1)`."""
    for node in site.nodes(ast.BinOp):
        one = isinstance(node.right, ast.Constant) and node.right.value == 1
        if one and isinstance(node.op, ast.Add):
            yield Edit("end at the last token", (site.put(node, site.source(node.left)),))


def cut_into_groups(site: Site) -> Iterator[Edit]:
    """`rewards` in the finding's lines to `rewards.view(-1, group_size)`."""
    rewards, size = site.name_of(Slot.REWARDS), site.name_of(Slot.GROUP_SIZE)
    for node in site.nodes(ast.Name):
        if node.id == rewards and size is not None:
            how = "view" if site.is_torch else "reshape"
            yield Edit(
                "a verdict for each group", (site.put(node, f"{rewards}.{how}(-1, {size})"),)
            )


def one_column(site: Site) -> Iterator[Edit]:
    """`advantages = advantages.unsqueeze(1)` before the statement that fails."""
    name = site.name_of(Slot.ADVANTAGES)
    statement = site.statement_at(site.finding.place.line)
    if name is None or statement is None or not site.alone(statement):
        return
    more = "unsqueeze(1)" if site.is_torch else "reshape(-1, 1)"
    yield Edit("one advantage for all tokens", (site.before(statement, f"{name} = {name}.{more}"),))


def kept_axis(site: Site) -> Iterator[Edit]:
    """`mean = masked_mean(x, …)` to `…[:, None]`, where it is subtracted from x."""
    subtracted = {
        node.right.id
        for node in site.everywhere(ast.BinOp)
        if isinstance(node.op, ast.Sub) and isinstance(node.right, ast.Name)
    }
    for node in site.everywhere(ast.Assign):
        target = node.targets[0]
        if isinstance(target, ast.Name) and target.id in subtracted:
            if isinstance(node.value, ast.Call):
                stop = site.span(node.value)[1]
                yield Edit("keep the axis of the groups", (Change(stop, stop, "[:, None]"),))


def without_missing(site: Site) -> Iterator[Edit]:
    """Mean and std of torch by `nanmean`, which leaves missing rewards out."""
    if not site.is_torch:
        return
    means: dict[str, str] = {}
    changes = []
    for node in sorted(site.everywhere(ast.Assign), key=lambda n: n.lineno):
        call, target = node.value, node.targets[0]
        if not isinstance(call, ast.Call) or not isinstance(target, ast.Name):
            continue
        root, given = _root(site, call), _arguments(site, call)
        if root is None or Slot.REWARDS not in site.taint(root):
            continue
        text = site.source(root)
        if called(call) in ("mean", "nanmean"):
            means[text] = target.id
            if called(call) == "mean":
                changes.append(site.put(call, f"{site.arrays}.nanmean({text}, {given})"))
        elif called(call) == "std" and text in means and "unbiased" not in given:
            spread = f"(({text} - {means[text]}) ** 2).nanmean({given}).sqrt()"
            changes.append(site.put(call, spread))
    if changes:
        yield Edit("statistics of the rewards that are there", tuple(changes))


def _mask(site: Site) -> str | None:
    """The mask, a parameter or a local variable."""
    if name := site.name_of(Slot.MASK) or site.name_of(Slot.COMPLETION_MASK):
        return name
    stored = [n.id for n in site.everywhere(ast.Name) if isinstance(n.ctx, ast.Store)]
    return next((n for n in stored if objective_slot(n) is Slot.MASK), None)


def _root(site: Site, call: ast.Call) -> ast.expr | None:
    """What a reduction is of: its receiver, or the first argument of a module's function."""
    root = getattr(call.func, "value", None)
    if isinstance(root, ast.Name) and root.id in site.imports:
        return call.args[0] if call.args else None
    return root if isinstance(root, ast.expr) else None


def _arguments(site: Site, call: ast.Call) -> str:
    """The other arguments, as they are written."""
    root = getattr(call.func, "value", None)
    module = isinstance(root, ast.Name) and root.id in site.imports
    parts = [site.source(a) for a in call.args[module:]]
    parts += [f"{k.arg}={site.source(k.value)}" for k in call.keywords if k.arg]
    return ", ".join(parts)
