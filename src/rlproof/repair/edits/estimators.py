"""Estimators of a divergence as they are written: k3 as a sum of three terms, k2 as a product."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from rlproof.read.landmarks import called
from rlproof.read.parameters import number
from rlproof.repair.edits.model import Change, Edit
from rlproof.repair.edits.site import Site, bracketed, is_simple


@dataclass(frozen=True, slots=True)
class K3:
    """exp(x) − x − 1 in any order, or expm1(x) − x."""

    whole: ast.BinOp
    power: ast.Call
    """`exp(x)`, or `expm1(x)`."""
    named: ast.Name | None
    """What stands for it in the sum, where it has a name."""
    x: ast.expr
    minus: str
    """What is added to the power, as it is written: `- x`, or `+ y` where y is −x."""


def k3s(site: Site) -> Iterator[K3]:
    """Every k3 of a function."""
    for node in site.everywhere(ast.BinOp):
        if isinstance(node.op, ast.Add | ast.Sub) and (found := _k3(site, node)):
            yield found


def _k3(site: Site, node: ast.BinOp) -> K3 | None:
    """The sum as k3, if it is one."""
    terms = list(_terms(node, 1))
    ones = [t for t in terms if number(t[1]) == 1 and t[0] < 0]
    powers = [(t, p) for t in terms if t[0] > 0 and (p := _power(site, t[1]))]
    if len(powers) != 1:
        return None
    (term, power) = powers[0]
    rest = [t for t in terms if t is not term and t not in ones]
    if len(rest) != 1 or len(ones) != (called(power) == "exp"):
        return None
    x = _argument(power)
    sign, other = rest[0]
    if x is None or not (_same(x, other) if sign < 0 else _opposite(x, other)):
        return None
    named = term[1] if isinstance(term[1], ast.Name) else None
    return K3(node, power, named, x, f"{'-' if sign < 0 else '+'} {bracketed(site, other)}")


def _terms(node: ast.expr, sign: int) -> Iterator[tuple[int, ast.expr]]:
    """What a sum adds up, each with its sign."""
    match node:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            yield from _terms(left, sign)
            yield from _terms(right, sign if isinstance(op, ast.Add) else -sign)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            yield from _terms(inner, -sign)
        case _:
            yield sign, node


def _power(site: Site, node: ast.expr) -> ast.Call | None:
    """The call of `exp` or `expm1` that a term is, or that its name was given."""
    given = site.definition_of(node.id) if isinstance(node, ast.Name) else node
    return given if isinstance(given, ast.Call) and called(given) in {"exp", "expm1"} else None


def _argument(call: ast.Call) -> ast.expr | None:
    """x of `torch.exp(x)`, `exp(x)` and `x.exp()`."""
    if call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _same(one: ast.expr, other: ast.expr) -> bool:
    return ast.dump(one) == ast.dump(other)


def _opposite(one: ast.expr, other: ast.expr) -> bool:
    """`-y` and `y`, or `a - b` and `b - a`."""
    match one, other:
        case ast.UnaryOp(op=ast.USub(), operand=inner), _:
            return _same(inner, other)
        case ast.BinOp(op=ast.Sub()), ast.BinOp(op=ast.Sub()):
            return _same(one.left, other.right) and _same(one.right, other.left)
    return False


def with_expm1(site: Site) -> Iterator[Edit]:
    """`exp(x) - x - 1` to `expm1(x) - x`, whose digits are all there for a small x."""
    changes = []
    for found in k3s(site):
        if called(found.power) != "exp":
            continue
        if spelt := _spelt(site, found):
            changes.append(site.put(found.whole, f"{spelt} {found.minus}"))
    if changes:
        yield Edit("take expm1, which keeps the digits", tuple(changes))


def _spelt(site: Site, found: K3) -> str | None:
    """The call of expm1 in the place of that of exp: of the same library, or a method."""
    func, x = found.power.func, site.source(found.x)
    if not isinstance(func, ast.Attribute):
        return f"{site.arrays}.expm1({x})" if site.arrays else None
    if found.power.args:
        return f"{site.source(func.value)}.expm1({x})"
    return f"{bracketed(site, found.x)}.expm1()"


def k2s(site: Site) -> Iterator[tuple[ast.BinOp, ast.expr, list[str]]]:
    """Every product with half of a square: the product, what is squared, the text of the rest.

    The rest ends in a sign of multiplication where anything is left of it.
    """
    inner: set[ast.AST] = set()
    for node in site.everywhere(ast.BinOp):
        if node in inner or not isinstance(node.op, ast.Mult | ast.Div):
            continue
        inner |= {n for n in ast.walk(node) if isinstance(n, ast.BinOp)} - {node}
        factors = list(_factors(node, 1))
        halves = [f for f in factors if _is_half(f)]
        squares = [(f, d) for f in factors if f[0] > 0 and (d := _square_of(f[1])) is not None]
        if halves and squares:
            square, d = squares[-1]
            rest = [f for f in factors if f is not halves[0] and f is not square]
            if all(power > 0 for power, _ in rest):
                yield node, d, [bracketed(site, f) for _, f in rest]


def _factors(node: ast.expr, power: int) -> Iterator[tuple[int, ast.expr]]:
    match node:
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right) if (
            _square_of(node) is None
        ):
            yield from _factors(left, power)
            yield from _factors(right, power if isinstance(op, ast.Mult) else -power)
        case _:
            yield power, node


def _is_half(factor: tuple[int, ast.expr]) -> bool:
    power, node = factor
    return number(node) == (0.5 if power > 0 else 2)


def _square_of(node: ast.expr) -> ast.expr | None:
    """d of `d ** 2`, `d * d`, `d.pow(2)`, `d.square()`, `pow(d, 2)` and `square(d)`."""
    match node:
        case ast.BinOp(left=d, op=ast.Pow(), right=ast.Constant(value=2 | 2.0)):
            return d
        case ast.BinOp(left=d, op=ast.Mult(), right=other):
            return d if _same(d, other) else None
        case ast.Call(args=[d, ast.Constant(value=2)]) if called(node) in {"pow", "power"}:
            return d
        case ast.Call(args=[d]) if called(node) == "square":
            return d
        case ast.Call(func=ast.Attribute(value=d, attr="pow"), args=[ast.Constant(value=2)]):
            return d
        case ast.Call(func=ast.Attribute(value=d, attr="square"), args=[]):
            return d
    return None


def whole_value(site: Site, node: ast.expr) -> bool:
    """Whether a node may be replaced by a sum without brackets around it."""
    start, stop = site.span(node)
    held = site.text[:start].endswith("(") and site.text[stop:].startswith(")")
    return held or getattr(site.flow.statement.get(node), "value", None) is node


def as_k1(site: Site) -> Iterator[Edit]:
    """exp(x) − x − 1 or d²/2 in a reward to k1, −x or d, whose expected gradient is right there."""
    label = "use the k1 estimator in rewards"
    for found in k3s(site):
        text = f"-{bracketed(site, found.x)}"
        put = text if whole_value(site, found.whole) else f"({text})"
        yield Edit(label, (site.put(found.whole, put),))
    for node, gap, rest in k2s(site):
        if len(site.taint(gap)) > 1:
            for sign in ("", "-"):
                yield Edit(label, (_k1(site, node, gap, rest, sign),))


def _k1(site: Site, node: ast.BinOp, gap: ast.expr, rest: list[str], sign: str) -> Change:
    """The other factors, then d or −d in place of half of its square."""
    one = sign + (site.source(gap) if not sign and not rest else bracketed(site, gap))
    if rest:
        return site.put(node, " * ".join([*rest, f"({one})" if sign else one]))
    simple = whole_value(site, node) or (not sign and is_simple(gap))
    return site.put(node, one if simple else f"({one})")
