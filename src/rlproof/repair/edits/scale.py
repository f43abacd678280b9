"""Repairs of the scale of advantages: eps, guards, which std, applied once, and its sign."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import WHITENING, called
from rlproof.read.names import Slot, words
from rlproof.read.parameters import number
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed, is_simple, unwrapped

_SPREADS = {"std", "pstdev", "stdev", "nanstd", "var", "pvariance", "variance"}
DEFAULT_EPS = "1e-6"
FLOAT32_EPS = "1e-4"


def _eps(site: Site) -> str:
    return site.name_of(Slot.EPS) or DEFAULT_EPS


def _divisions(site: Site) -> Iterator[ast.BinOp]:
    for node in site.near(ast.BinOp):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if Slot.REWARDS in site.taint(node.right):
                yield node


def with_eps(site: Site) -> Iterator[Edit]:
    """`/ std` to `/ (std + eps)`, or another eps where its own does nothing."""
    for node in _divisions(site):
        if Slot.EPS not in site.taint(node.right):
            yield Edit("add eps to the std", site.wrap(node.right, "(", f" + {_eps(site)})"))


def guard_by_eps(site: Site) -> Iterator[Edit]:
    """`std == 0` to `std <= eps`, `std > 0` to `std > eps`."""
    eps = _eps(site)
    for node in site.nodes(ast.Compare):
        if len(node.ops) != 1 or number(node.comparators[0]) != 0:
            continue
        zero = node.comparators[0]
        start, stop = site.span(node.left)[1], site.span(zero)[0]
        sign = site.text[start:stop]
        if isinstance(node.ops[0], ast.Gt):
            yield Edit("compare with eps", (site.put(zero, eps),))
        elif isinstance(node.ops[0], ast.Eq | ast.NotEq):
            new = sign.replace("==", "<=").replace("!=", ">")
            yield Edit("compare with eps", (Change(start, stop, new), site.put(zero, eps)))
    yield from with_eps(site)


def std_of_groups(site: Site) -> Iterator[Edit]:
    """What `std` is computed from, to the std of the reshaped rewards; `std > 0` to `std > eps`."""
    groups = [
        node.targets[0].id
        for node in site.everywhere(ast.Assign)
        if isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Call)
        and called(node.value) in {"view", "reshape"}
        and site.taint(node.value) >= {Slot.REWARDS}
    ]
    axis, keep = site.axis
    for node in site.everywhere(ast.Assign) if groups and site.arrays else []:
        target = node.targets[0]
        if isinstance(target, ast.Name) and set(words(target.id)) & {"std", "sigma", "sd"}:
            if isinstance(node.value, ast.Call):
                change = site.put(node.value, f"{groups[0]}.std({axis}=1, {keep}=True)")
                guards = [
                    site.put(other.comparators[0], _eps(site))
                    for other in site.everywhere(ast.Compare)
                    if site.source(other.left) == target.id and number(other.comparators[0]) == 0
                ]
                covers = frozenset({"ADV005", "ADV007"})
                yield Edit("the std of the whole group", (change, *guards), covers)


def unscaled(site: Site) -> Iterator[Edit]:
    """`centred / (std + eps)` to `centred`: leave-one-out without a scale, as in RLOO."""
    for node in _divisions(site):
        covers = frozenset({"ADV004", "ADV007"})
        yield Edit("leave out the scale", (site.put(node, site.source(node.left)),), covers)


def larger_eps(site: Site) -> Iterator[Edit]:
    """An eps above the rounding of float32."""
    for parameter in site.target.parameters if site.target else ():
        small = number(parameter.default)
        if parameter.slot is Slot.EPS and parameter.default is not None and small is not None:
            yield Edit("an eps above rounding", (site.put(parameter.default, FLOAT32_EPS),))
    for node in site.everywhere(ast.Constant):
        value = number(node)
        if value is not None and 0 < value < 1e-5:
            yield Edit("an eps above rounding", (site.put(node, FLOAT32_EPS),))


def of_whole_group(site: Site) -> Iterator[Edit]:
    """`pstdev(others)` to `pstdev(group)`, where `others` leaves one out of `group`."""
    for call in site.near(ast.Call):
        argument = call.args[0] if call.args else getattr(call.func, "value", None)
        if called(call) not in _SPREADS or not isinstance(argument, ast.Name):
            continue
        made = site.definition_of(argument.id)
        for part in ast.walk(made) if made is not None else ():
            if isinstance(part, ast.comprehension):
                for name in ast.walk(part.iter):
                    if isinstance(name, ast.Name) and Slot.REWARDS in site.taint(name):
                        yield Edit("the std of the whole group", (site.put(argument, name.id),))


def once(site: Site) -> Iterator[Edit]:
    """`(a - a.mean()) / (a.std() + eps)`, or `whiten(a, …)`, to `a`, normalised already."""
    for call in site.nodes(ast.Call):
        if set(words(called(call))) & WHITENING and call.args:
            if Slot.REWARDS in site.taint(call.args[0]) and is_simple(call.args[0]):
                yield Edit("normalise once", (site.put(call, site.source(call.args[0])),))
    for node in _divisions(site):
        left = node.left
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub) and is_simple(left.left):
            yield Edit("normalise once", (site.put(node, site.source(left.left)),))


def without_nan(site: Site) -> Iterator[Edit]:
    """NumPy: statistics that skip NaN, and 0 for a row that was not scored."""
    if site.arrays is None or site.imports[site.arrays] not in ("numpy", "jax.numpy"):
        return
    changes: list[Change] = []
    for call in site.everywhere(ast.Call):
        if called(call) not in {"mean", "std", "var"} or Slot.REWARDS not in site.taint(call):
            continue
        root = getattr(call.func, "value", None)
        if isinstance(root, ast.Name) and root.id == site.arrays:
            start = site.span(call.func)[1] - len(called(call))
            changes.append(Change(start, start, "nan"))
        elif isinstance(root, ast.expr):
            rest = ", " if call.args or call.keywords else ""
            start = site.span(call.func)[1] + 1
            changes.append(
                Change(
                    site.span(call)[0],
                    start,
                    f"{site.arrays}.nan{called(call)}({site.source(root)}{rest}",
                )
            )
    for node in site.everywhere(ast.Return):
        value = getattr(node, "value", None)
        if isinstance(value, ast.expr):
            changes += site.wrap(value, f"{site.arrays}.nan_to_num(", ", nan=0.0)")
    yield Edit("leave unscored rows out", tuple(changes))


def assigned_std(site: Site) -> Iterator[Edit]:
    """`if std := x.std() > 0` to `if (std := x.std()) > 0`."""
    for node in site.nodes(ast.NamedExpr):
        if isinstance(node.value, ast.Compare):
            start, stop = site.span(node)[0], site.span(node.value.left)[1]
            reach = stop - start
            changes = (Change(start, start, "(", reach), Change(stop, stop, ")", -reach))
            zero = node.value.comparators[0]
            if isinstance(node.value.ops[0], ast.Gt) and number(zero) == 0:
                both = (*changes, site.put(zero, _eps(site)))
                covers = frozenset({"ADV005", "ADV011"})
                yield Edit("keep the std, and compare it with eps", both, covers)
            yield Edit("keep the std, not the comparison", changes)
    yield from _applied(site)


def _applied(site: Site) -> Iterator[Edit]:
    """Divide what is returned by a std that was computed and left unused."""
    for node in site.nodes(ast.Assign):
        for name in node.targets:
            if not isinstance(name, ast.Name) or not set(words(name.id)) & {"std", "sigma", "sd"}:
                continue
            divisor = f"({name.id} + {_eps(site)})"
            if isinstance(node.value, ast.Compare):
                yield Edit("keep the std, not the comparison",
                           (site.put(node.value, site.source(node.value.left)),))  # fmt: skip
            for other in site.everywhere(ast.BinOp):
                if isinstance(other, ast.BinOp) and isinstance(other.op, ast.Sub):
                    if {Slot.REWARDS} <= site.taint(other.left) & site.taint(other.right):
                        yield Edit("divide by the std", (_over(site, other, divisor),))


def _over(site: Site, node: ast.expr, divisor: str) -> Change:
    start, stop = site.span(node)
    enclosed = site.text[:start].endswith("(") and site.text[stop:].startswith(")")
    if enclosed:
        return Change(stop + 1, stop + 1, f" / {divisor}")
    return site.put(node, f"{bracketed(site, node)} / {divisor}")


def reward_minus_baseline(site: Site) -> Iterator[Edit]:
    """`baseline - r` to `r - baseline`; a minus in front of it taken out."""
    for node in site.near(ast.BinOp):
        sides = site.taint(node.left) & site.taint(node.right)
        if isinstance(node.op, ast.Sub) and Slot.REWARDS in sides:
            left, right = site.source(node.left), site.source(node.right)
            changes = (site.put(node.left, right), site.put(node.right, left))
            yield Edit("reward minus baseline", changes)
    yield from _without_minus(site)
    for node in site.nodes(ast.BinOp):  # rewards in records carry no label
        if isinstance(node.op, ast.Sub):
            left, right = site.source(node.left), site.source(node.right)
            changes = (site.put(node.left, right), site.put(node.right, left))
            yield Edit("reward minus baseline", changes)


def _without_minus(site: Site) -> Iterator[Edit]:
    """`-(r - baseline)` to `r - baseline`."""
    for node in site.everywhere(ast.UnaryOp):
        if isinstance(node.op, ast.USub) and Slot.REWARDS in site.taint(node.operand):
            yield Edit("take out the minus", (unwrapped(site, node, node.operand),))


def centred_only(site: Site) -> Iterator[Edit]:
    """`(r - mean) / (std + eps)` to `r - mean`, where the declared objective does not scale."""
    if not str(site.script.objective or "").startswith("dr"):
        return
    for node in _divisions(site):
        yield Edit("only centre the rewards", (site.put(node, site.source(node.left)),))


def one_convention(site: Site) -> Iterator[Edit]:
    """The std of this function by the convention that the script's other one has."""
    twins = {"stdev": "pstdev", "pstdev": "stdev", "variance": "pvariance"}
    known = {
        alias.name
        for node in ast.walk(site.script.source.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "statistics"
        for alias in node.names
    }
    for call in site.near(ast.Call):
        other = twins.get(called(call))
        if other is not None and (isinstance(call.func, ast.Attribute) or other in known):
            start = site.span(call.func)[1] - len(called(call))
            changes = (Change(start, start + len(called(call)), other),)
            yield Edit("one kind of std in the whole script", changes)
        if called(call) in {"std", "var"}:
            yield from _degrees(site, call)


def _degrees(site: Site, call: ast.Call) -> Iterator[Edit]:
    label = "one kind of std in the whole script"
    for keyword in call.keywords:
        if keyword.arg in {"ddof", "correction"} and isinstance(keyword.value, ast.Constant):
            new = "0" if keyword.value.value else "1"
            yield Edit(label, (site.put(keyword.value, new),))
            return
        if keyword.arg == "unbiased" and isinstance(keyword.value, ast.Constant):
            yield Edit(label, (site.put(keyword.value, str(not keyword.value.value)),))
            return
    stop = site.span(call)[1] - 1
    comma = ", " if call.args or call.keywords else ""
    word = "unbiased=False" if site.is_torch else "ddof=1"
    yield Edit(label, (Change(stop, stop, f"{comma}{word}"),))
