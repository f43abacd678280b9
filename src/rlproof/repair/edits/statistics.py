"""Repairs of group statistics where the script has the groups already and does not use them.

Shapes: P groups of G rewards.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.names import Slot, advantage_slot
from rlproof.read.targets import FunctionNode
from rlproof.repair.edits.grouping import STATISTICS
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed, enclosing

_RESHAPES = {"view", "reshape"}
LABEL = "statistics of each group"


def size_name(site: Site) -> str | None:
    """How the group size is called here: a parameter, one around this code, or a constant."""
    if name := site.name_of(Slot.GROUP_SIZE):
        return name
    around = enclosing(site.script.source.tree, site.finding.place.line)
    names = [arg.arg for arg in [*around.args.args, *around.args.kwonlyargs]]
    names += [
        target.id
        for node in site.script.source.tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return next((name for name in names if advantage_slot(name) is Slot.GROUP_SIZE), None)


def along_rows(site: Site) -> Iterator[Edit]:
    """`grid.mean()` to `grid.mean(dim=1, keepdim=True)`, where the rewards are a grid already."""
    grids = [
        target.id
        for node in site.everywhere(ast.Assign)
        if isinstance(node.value, ast.Call) and called(node.value) in _RESHAPES
        and len(node.value.args) >= 2 and Slot.REWARDS in site.taint(node.value)
        for target in node.targets if isinstance(target, ast.Name)
    ]  # fmt: skip
    axis, keep = site.axis
    changes = []
    for call in site.everywhere(ast.Call):
        root = getattr(call.func, "value", None)
        whole = not any(k.arg in {"axis", "dim"} for k in call.keywords) and not call.args
        if called(call) not in STATISTICS or not whole or not isinstance(root, ast.expr):
            continue
        if Slot.REWARDS in site.taint(root):
            known = isinstance(root, ast.Name) and root.id in grids
            text = bracketed(site, root) if known or not grids else grids[0]
            rest = "".join(f", {k.arg}={site.source(k.value)}" for k in call.keywords)
            text = f"{text}.{called(call)}({axis}=1, {keep}=True{rest})"
            changes.append(site.put(call, text))
    if grids and changes:
        yield Edit(LABEL, tuple(changes))


def as_wide_as_groups(site: Site) -> Iterator[Edit]:
    """`rewards.view(-1, rewards.numel())` to `rewards.view(-1, group_size)`."""
    size = size_name(site)
    for call in site.everywhere(ast.Call):
        if called(call) in _RESHAPES and len(call.args) == 2 and size:
            if Slot.REWARDS in site.taint(call) and site.source(call.args[1]) != size:
                yield Edit("one row for each group", (site.put(call.args[1], size),))


def inside_loop(site: Site) -> Iterator[Edit]:
    """Statistics of the whole list before a loop over groups: of each group, inside it."""
    rewards = site.name_of(Slot.REWARDS)
    function = site.function
    if rewards is None or function is None:
        return
    for before, loop in zip(function.body, function.body[1:], strict=False):
        if not isinstance(before, ast.Assign) or not isinstance(loop, ast.For):
            continue
        computes = any(
            (isinstance(n, ast.Call) and "mean" in called(n)) or "std" in called(n)
            for n in ast.walk(before.value)
            if isinstance(n, ast.Call)
        )
        group = next((s for s in loop.body if _cuts(s, rewards)), None)
        if computes and isinstance(group, ast.Assign) and site.alone(before) and site.alone(group):
            yield Edit(LABEL, tuple(_moved(site, before, group, rewards)))


def _cuts(node: ast.stmt, rewards: str) -> bool:
    match node:
        case ast.Assign(
            targets=[ast.Name()],
            value=ast.Subscript(value=ast.Name(id=name), slice=ast.Slice()),
        ):
            return name == rewards
    return False


def _moved(site: Site, node: ast.Assign, group: ast.Assign, rewards: str) -> Iterator[Change]:
    target = group.targets[0]
    assert isinstance(target, ast.Name)
    first, _ = site.span(node)
    text, position = "", first
    names = [n for n in ast.walk(node.value) if isinstance(n, ast.Name) and n.id == rewards]
    for name in sorted(names, key=lambda n: (n.lineno, n.col_offset)):
        start, stop = site.span(name)
        text += site.text[position:start] + target.id
        position = stop
    text += site.text[position : site.span(node)[1]]
    yield site.drop(node)
    after = site.lines(group)[1]
    yield Change(after, after, f"{site.indent(group)}{text}\n")


def with_itself(site: Site) -> Iterator[Edit]:
    """`pstdev(group[:i] + group[i + 1:])`, or of a name for that, to `pstdev(group)`."""
    for call in site.near(ast.Call):
        argument = call.args[0] if call.args else None
        made = site.definition_of(argument.id) if isinstance(argument, ast.Name) else argument
        if made is None or argument is None or not any(w in called(call) for w in ("std", "var")):
            continue
        wholes = [n.value for n in ast.walk(made) if isinstance(n, ast.Subscript)]
        for name in dict.fromkeys(n.id for n in wholes if isinstance(n, ast.Name)):
            yield Edit("the std of the whole group", (site.put(argument, name),))
            yield from _all_of(site, argument, name)


def _all_of(site: Site, argument: ast.expr, name: str) -> Iterator[Edit]:
    """The same for every statistic of the rest."""
    if isinstance(argument, ast.Name):
        calls = [c for c in site.everywhere(ast.Call) if c.args]
        same = [c.args[0] for c in calls if site.source(c.args[0]) == argument.id]
        yield Edit("statistics of the whole group", tuple(site.put(a, name) for a in same))


def in_a_row(site: Site) -> Iterator[Edit]:
    """`[… for x in xs] * G` to `[… for x in xs for _ in range(G)]`: copies of a prompt together."""
    changes = []
    for node in _around(site, ast.BinOp):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        match node.left:
            case ast.ListComp(generators=[ast.comprehension() as walk]):
                stop = site.span(walk.ifs[-1] if walk.ifs else walk.iter)[1]
                count = site.source(node.right)
                changes.append(Change(stop, stop, f" for _ in range({count})"))
                changes.append(Change(site.span(node.left)[1], site.span(node)[1], ""))
    if changes:
        yield Edit("repeat each prompt in a row", tuple(changes))


def _around(site: Site, kind: type[ast.AST]) -> list[ast.AST]:
    function: FunctionNode = enclosing(site.script.source.tree, site.finding.place.line)
    return [node for node in ast.walk(function) if isinstance(node, kind)]


def several_members(site: Site) -> Iterator[Edit]:
    """A group size of 1, shown as a choice and never written."""
    for node in site.nodes(ast.Constant):
        if node.value == 1 and not isinstance(node.value, bool):
            why = "how many completions a prompt gets is the script's to say; 8 is common"
            yield Edit("sample a group for each prompt", (site.put(node, "8"),), choice=why)
