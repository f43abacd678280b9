"""Whether what a backward pass starts from rises or falls with the surrogate ρ·A.

+1: it rises with the surrogate, so that it has to be maximised; −1: it is a loss.
"""

from __future__ import annotations

import ast

from rlproof.read.landmarks import called
from rlproof.read.loop.passes import Passes, said
from rlproof.read.loop.trace import Frame, Step
from rlproof.read.names import words

_KEEPS = {"sum", "mean", "float", "to", "clamp", "masked_mean", "squeeze", "masked_sum", "item"}
_PICKS = {"min", "max", "minimum", "maximum"}
_ADVANTAGES = {"adv", "advs", "advantage", "advantages"}


class Signs:
    """Signs of expressions of one trace; None where it can't be told."""

    def __init__(self, passes: Passes) -> None:
        self.passes = passes

    def of(self, node: ast.expr, step: Step, depth: int = 0) -> int | None:
        """The sign of an expression as it stands at a step."""
        if depth > 24:
            return None

        def sign(inner: ast.expr) -> int | None:
            return self.of(inner, step, depth + 1)

        match node:
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return _flip(sign(inner))
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                if surrogate := self._surrogate(left, right, step):
                    return surrogate
                return self._product(sign(left), left, sign(right), right)
            case ast.BinOp(op=ast.Div(), left=left):
                return sign(left)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return _both(sign(left), sign(right))
            case ast.BinOp(op=ast.Sub(), left=left, right=right):
                return _both(sign(left), _flip(sign(right)))
            case ast.Call() if (called_here := step.inlined.get(node)) is not None:
                return self._returned(called_here, None, depth)
            case ast.Call(func=ast.Attribute(value=receiver), args=args):
                name = called(node)
                module = said(receiver) in ("torch", "np", "jnp", "F", "mx")
                if name in _PICKS and module and len(args) == 2:
                    one, two = sign(args[0]), sign(args[1])
                    return one if one == two else None
                if name in _KEEPS:
                    return sign(args[0]) if module and args else sign(receiver)
            case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in _KEEPS:
                return sign(first)
            case ast.Name():
                return self._name(node, step, depth)
        return None

    def _name(self, node: ast.Name, step: Step, depth: int) -> int | None:
        frame = step.frame
        key = frame.key(node)
        ahead = [
            (s, v) for s, v in self.passes.assigned.of(key)
            if s.number < step.number and s.frame is frame
        ] if key else []  # fmt: skip
        if not ahead:
            if frame.caller and frame.site and node.id in frame.arguments:
                return self.of(frame.arguments[node.id], frame.site, depth + 1)
            return None
        last, value = ahead[-1]
        if last.branches and last.branches != step.branches[: len(last.branches)]:
            return None
        match last.node:
            case ast.AugAssign(op=ast.Div() | ast.Mult()):
                return self._name(node, last, depth + 1)
            case ast.AugAssign(op=ast.Add() | ast.Sub(), value=added):
                own = self._name(node, last, depth + 1)
                return own if self.of(added, last, depth + 1) is None else None
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Call() as call):
                inner = last.inlined.get(call)
                names = [said(part) for part in parts]
                if inner is not None and node.id in names:
                    return self._returned(inner, names.index(node.id), depth)
                return None
        return self.of(value, last, depth + 1) if value is not None else None

    def _returned(self, frame: Frame, part: int | None, depth: int) -> int | None:
        signs = set()
        for step in frame.returns:
            value = step.node.value if isinstance(step.node, ast.Return) else None
            if isinstance(value, ast.Tuple):
                value = value.elts[part] if part is not None and part < len(value.elts) else None
            signs.add(self.of(value, step, depth + 1) if value is not None else None)
        return signs.pop() if len(signs) == 1 else None

    def _product(
        self, one: int | None, left: ast.expr, two: int | None, right: ast.expr
    ) -> int | None:
        if one is not None and two is not None:
            return None
        sign, factor = (one, right) if one is not None else (two, left)
        if sign is None:
            return None
        negative = isinstance(factor, ast.UnaryOp) and isinstance(factor.op, ast.USub)
        known = isinstance(factor, ast.Constant) or negative or _is_weight(factor)
        return (-sign if negative else sign) if known else None

    def _surrogate(self, one: ast.expr, other: ast.expr, step: Step) -> int | None:
        """The sign of a product of advantages with the ratio; None for any other product."""
        sign = 1
        bare = []
        for node in (one, other):
            while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
                sign, node = -sign, node.operand
            bare.append(node)
        for advantage, ratio in (bare, bare[::-1]):
            if _is_advantage(advantage) and _is_ratio(ratio):
                if any(not stopped for _, stopped in self.passes.trail(ratio, step)):
                    return sign
        return None


def _is_advantage(node: ast.expr) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if called(node) not in ("unsqueeze", "detach", "to", "view", "float"):
            return False
        node = node.func.value
    return bool(set(words(said(node))) & _ADVANTAGES) and "neg" not in said(node)


def _is_ratio(node: ast.expr) -> bool:
    """A name that says ratio, an exponential, or one of them clipped."""
    match node:
        case ast.Name(id=name):
            return bool(set(words(name)) & {"ratio", "ratios", "rho"})
        case ast.Call() if called(node) in ("exp", "exp_"):
            return True
        case ast.Call(func=ast.Attribute(value=receiver), args=args):
            if called(node) in ("clamp", "clip", "unsqueeze"):
                return _is_ratio(receiver) or (bool(args) and _is_ratio(args[0]))
    return False


def _is_weight(node: ast.expr) -> bool:
    """A mask or a weight is not negative."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return bool(set(words(said(node))) & {"mask", "masks", "weight", "weights"})


def _flip(sign: int | None) -> int | None:
    return None if sign is None else -sign


def _both(one: int | None, two: int | None) -> int | None:
    """A term without the surrogate, such as a penalty, does not count."""
    if one is None or two is None:
        return two if one is None else one
    return one if one == two else None
