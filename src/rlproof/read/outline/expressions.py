"""Values of expressions: which roles reach them, what folds to a constant, what is replaced."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from rlproof.read.names import Slot, words
from rlproof.read.outline.neutral import GATHERS, OUTSIDE
from rlproof.read.outline.options import given as given_to
from rlproof.read.outline.options import options_of, strings_of
from rlproof.read.outline.state import State
from rlproof.read.outline.syntax import (
    arguments,
    constant_at,
    key_of,
    name_at,
    path_of,
    rebuilt,
    targets_of,
)
from rlproof.read.outline.values import PLAIN, ROLES, UNKNOWN, Value, joined, merged

_LAYOUT = {"shape", "ndim", "dtype", "device", "size", "numel", "dim", "T", "mT", "is_cuda"}
_MOVES = {"cuda", "cpu", "npu", "xpu", "pin_memory"}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_WORLD = {"get_world_size": 1, "get_rank": 0, "is_initialized": False, "is_available": False}


def _same(const: Any) -> Any:
    return const


class Expressions:
    """Evaluates the expressions of one region; replacements go to the state."""

    def __init__(self, state: State) -> None:
        self.state = state

    def method(self, name: str, call: ast.Call) -> Value:
        """A call of a method of the own class; `Lowering` knows how."""
        raise NotImplementedError

    def value(self, node: ast.expr) -> Value:
        """What an expression is made of."""
        state = self.state
        match node:
            case ast.Constant(value=const):
                return Value(const=const)
            case ast.Name(id=name):
                return self._name(name, node)
            case ast.Attribute() | ast.Subscript():
                return self._access(node)
            case ast.Call():
                return self._call(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = self.test(test)
                if known.known:
                    chosen = body if known.const else orelse
                    found = self.value(chosen)
                    state.swaps[node] = self.swapped(chosen)
                    return found
                both = merged(self.value(body), self.value(orelse))
                slots = both.slots | (known.slots & ROLES)
                return replace(both, slots=slots, problem=both.problem or known.problem)
            case ast.BoolOp() | ast.Compare():
                return self.test(node)
            case ast.UnaryOp(op=ast.Not()):
                return self.test(node)
            case ast.Lambda(args=args, body=body):
                with state.branch() as env:
                    env.update(dict.fromkeys(arguments(args), PLAIN))
                    return joined(self.value(body))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self._comprehension(node)
            case ast.NamedExpr(target=target, value=value):
                found = self.value(value)
                state.env[target.id] = found
                return found
            case ast.Dict(keys=keys, values=values):
                return joined(*(self.value(v) for v in [*filter(None, keys), *values]))
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                parts = [self.value(item) for item in items]
                whole = joined(*parts)
                if items and all(item.known for item in parts):
                    return replace(whole, const=tuple(item.const for item in parts))
                return whole
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                sides = (self._part(left), self._part(right))
                written = any(isinstance(side, ast.Constant) for side in (left, right))
                off = not written or joined(*sides).problem  # `zeros * 0.0` is about a shape
                if off and any(v.known and v.const == 0 and v.const is not False for v in sides):
                    return self._folded(node, lambda: 0.0)
                return joined(*sides)
            case ast.BinOp(left=left, right=right):
                return joined(self._part(left), self._part(right))
            case ast.UnaryOp(operand=operand):
                return joined(self.value(operand))
        return joined(*self._children(node))

    def _part(self, node: ast.expr) -> Value:
        """One side of a sum or product; an entropy that can't be had is a bonus that is off."""
        found = self.value(node)
        if found.problem and not found.leaf:
            whole = node
            while isinstance(whole, ast.Call) and isinstance(whole.func, ast.Attribute):
                whole = whole.func.value  # `.mean()` of it
            if set(words((path_of(whole) or "").rpartition(".")[2])) & {"entropy", "entropies"}:
                return self._folded(node, lambda: 0.0)
        return found

    def _children(self, node: ast.AST) -> list[Value]:
        found: list[Value] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                found.append(self.value(child))
            elif isinstance(child, ast.keyword):
                found.append(self.value(child.value))
        return found

    def swapped(self, node: ast.expr) -> ast.expr:
        """What stands for a node in the outlined function."""
        made = rebuilt(node, self.state.swaps)
        assert isinstance(made, ast.expr)
        return made

    def _name(self, name: str, node: ast.Name) -> Value:
        state = self.state
        if name in state.env:
            return state.env[name]
        if name in state.arguments:
            return state.leaf(name, node, state.defaults.get(name))
        if name in state.scope.computed:
            line = state.scope.computed[name]
            found = state.leaf(name, node)
            why = f"line {line} defines {name} by running code, which is never executed"
            return replace(found, problem=why) if found.problem else found
        if name in state.scope.constants:
            if state.sizes and state.slot_of(name) in (Slot.GROUP_SIZE, Slot.GROUPS):
                return state.leaf(name, node, state.scope.constants[name])
            return self._module_constant(name)
        return PLAIN if state.scope.has(name) else state.leaf(name, node)

    def _module_constant(self, name: str) -> Value:
        """A constant of the module keeps its name; strings and switches are also chosen."""
        written = self.state.scope.constants[name]
        if isinstance(written, ast.Constant) and isinstance(written.value, str | bool | None):
            const = self.state.choices.get(name, written.value)
            return Value(const=const, leaf=name)
        return PLAIN

    def _access(self, node: ast.expr) -> Value:
        """`x.k`, `x["k"]` and every other subscript."""
        state = self.state
        if (member := state.scope.member(node)) is not None and path_of(node) not in state.env:
            return Value(const=member)
        path = path_of(node)
        if path is not None and path in state.env:
            state.swaps[node] = name_at(state.local(path), node)
            return state.env[path]
        found = key_of(node)
        if found is None:
            assert isinstance(node, ast.Subscript)
            base = self.value(node.value)
            index = self.value(node.slice)
            if base.known and index.known:
                return self._folded(node, lambda: base.const[index.const])
            if index.problem and base.leaf and base.slots & ROLES:
                state.swaps[node] = self.swapped(node.value)  # the parameter is what is picked
                return base
            problem = base.problem or index.problem
            return Value(base.slots, problem)
        base_node, key, default = found
        if isinstance(base_node, ast.Name) and base_node.id == "self" and "self" in state.arguments:
            return self._own(key, node)
        if path_of(base_node) is None:
            return self._of_computed(self.value(base_node), key)
        base = self.value(base_node)
        if base.problem and default is not None and not isinstance(default, ast.Constant):
            other = self.value(default)
            if not other.problem and state.slot_of(key) in other.slots:  # the same, if absent
                state.swaps[node] = self.swapped(default)
                return other
        container = base.problem is not None or base.const is None
        if container and path is not None:
            leaf = state.leaf(path, node, default)
            if leaf.problem and base.problem and not base.leaf:
                return replace(leaf, problem=base.problem)
            return leaf
        return self._of_computed(base, key)

    def _of_computed(self, base: Value, key: str) -> Value:
        return Value(frozenset() if key in _LAYOUT else base.slots, base.problem)

    def _own(self, key: str, node: ast.expr) -> Value:
        """`self.k`: a method, a constant of the class, or a setting."""
        state = self.state
        for info in state.scope.ancestors(state.owner or ""):
            if key in info.methods:
                return PLAIN
            if key in info.constants:
                return state.leaf(f"self.{key}", node, info.constants[key])
        return state.leaf(f"self.{key}", node)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> Value:
        with self.state.branch() as env:
            parts: list[Value] = []
            for generator in node.generators:
                source = joined(self.value(generator.iter))
                parts.append(source)
                for name in ast.walk(generator.target):
                    if isinstance(name, ast.Name):
                        env[name.id] = source
                parts += [self.value(test) for test in generator.ifs]
            del parts[:1]  # what an element is made of is what counts
            inner = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            found = joined(*(self.value(item) for item in inner), *parts)
            walked = joined(self.value(node.generators[0].iter))
        assert targets_of(node)
        return replace(found, problem=found.problem or walked.problem)

    # calls

    def _call(self, node: ast.Call) -> Value:
        func = node.func
        if key_of(node) is not None and not (
            isinstance(func, ast.Attribute) and path_of(func.value) is None
        ):
            found = self._access(node)
            if node in self.state.swaps or found.leaf:
                return found
        if isinstance(func, ast.Name):
            return self._call_name(func, node)
        if isinstance(func, ast.Attribute):
            return self._call_attribute(func, node)
        given = joined(*self._arguments(node))
        target = self.value(func)
        return joined(target, given)

    def _arguments(self, node: ast.Call) -> list[Value]:
        found: list[Value] = []
        for argument in node.args:
            inner = argument.value if isinstance(argument, ast.Starred) else argument
            found.append(self.value(inner))
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is None and value.leaf and value.problem:
                self.state.swaps[keyword.value] = constant_at({}, keyword.value)
                value = PLAIN
            found.append(value)
        return found

    def _call_name(self, func: ast.Name, node: ast.Call) -> Value:
        state, name = self.state, func.id
        given = self._arguments(node)
        if name in ("super", "locals", "globals", "vars", "eval", "exec"):
            return Value(problem=f"line {node.lineno} calls {name}()")
        if name in GATHERS and len(node.args) == 1 and name in state.scope.imported:
            state.swaps[node] = self.swapped(node.args[0])
            return given[0]
        if name in state.env:
            return joined(state.env[name], *given)
        if problem := self._outside(name, node):
            return Value(joined(*given).slots, problem)
        if state.scope.has(name) and name not in state.arguments:
            return joined(*self._with_options(node, given))
        problem = f"line {node.lineno} calls `{name}`, which can't be had here"
        return Value(joined(*given).slots, problem)

    def _with_options(self, call: ast.Call, found: list[Value]) -> list[Value]:
        """Settings handed on to a function of the module take one of the strings it knows."""
        state = self.state
        nodes = [*call.args, *(k.value for k in call.keywords)]
        for parameter, value in given_to(state.scope, call):
            index = next((i for i, node in enumerate(nodes) if node is value), None)
            if index is None or not found[index].leaf or found[index].slots:
                continue
            named = found[index].const if isinstance(found[index].const, str) else None
            own = state.defaults.get(str(found[index].leaf))
            if isinstance(own, ast.Constant) and own.value == named is not None:
                continue  # the function's own default settles it
            if not found[index].problem and named is None:
                continue
            assert isinstance(call.func, ast.Name)
            options = options_of(state.scope, call.func.id, parameter)
            if options:
                key, default = str(found[index].leaf), ast.Constant(named)
                found[index] = state.option(key, options, value, default)
        return found

    def _call_attribute(self, func: ast.Attribute, node: ast.Call) -> Value:
        state = self.state
        root = path_of(func.value)
        own = root == "self" and "self" in state.arguments
        if own:
            return self.method(func.attr, node)
        module = root is not None and self._is_module(root)
        if module and func.attr in _WORLD:
            return state._constant(_WORLD[func.attr], node, None)
        if module and (problem := self._outside(str(root).split(".")[0], node)):
            return Value(joined(*self._arguments(node)).slots, problem)
        base = PLAIN if module else self.value(func.value)
        if base.problem and func.attr in GATHERS and len(node.args) == 1 and base.leaf:
            found = self.value(node.args[0])
            state.swaps[node] = self.swapped(node.args[0])
            return found
        if not base.problem and not module and self._is_move(func, node):
            state.swaps[node] = self.swapped(func.value)
            return replace(base, const=UNKNOWN)
        given = self._arguments(node)
        if base.problem and base.leaf:
            problem = f"line {node.lineno} calls `{base.leaf}.{func.attr}`, which can't be had here"
            return Value(joined(*given).slots, problem)
        found = joined(base, *given)
        return replace(found, slots=frozenset()) if func.attr in _LAYOUT else found

    def _outside(self, name: str, node: ast.Call) -> str | None:
        """Why a call by an imported name, or of a class of settings, is not computed."""
        state = self.state
        if name in state.env or name in state.arguments:
            return None
        if state.scope.imported.get(name) in OUTSIDE and name not in state.scope.functions:
            return f"line {node.lineno} asks {state.scope.imported[name]}"
        info = state.scope.classes.get(name)
        if info is not None and info.constants and "forward" not in info.methods:
            return f"line {node.lineno} makes `{name}`"
        return None

    def _is_module(self, path: str) -> bool:
        root = path.split(".")[0]
        state = self.state
        local = root in state.env or root in state.arguments
        return not local and (root in state.scope.imported or root in state.scope.classes)

    def _is_move(self, func: ast.Attribute, node: ast.Call) -> bool:
        """`.cuda()`, `.to(device)`: where an array lies, and not of which kind it is."""
        if func.attr in _MOVES:
            return True
        if func.attr != "to":
            return False
        given = [*node.args, *(k.value for k in node.keywords)]
        for argument in given:
            path = path_of(argument)
            value = self.value(argument)
            if path is not None and path.rpartition(".")[2] in ("device", "dev"):
                continue
            if value.known and isinstance(value.const, str | bool | int):
                continue
            if value.problem:
                continue
            return False
        return True

    # tests

    def test(self, node: ast.expr) -> Value:
        """A condition: settings of unknown value are off, and noted as switches."""
        match node:
            case ast.BoolOp(op=op, values=values):
                return self._bool(node, isinstance(op, ast.And), values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.test(operand)
                return self._folded(node, lambda: not inner.const) if inner.known else inner
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compare(node, left, op, right)
            case ast.Compare():
                return joined(*self._children(node))
            case ast.Call(func=ast.Name(id="hasattr"), args=[base, ast.Constant(value=str(key))]):
                path = path_of(base)
                slot = self.state.slot_of(key)
                known = slot in ROLES if path else False
                return self._folded(node, lambda: known)
            case ast.Call(func=ast.Name(id="isinstance")):
                return Value(problem=joined(*self._children(node)).problem)
        found = self.value(node)
        if found.leaf and found.problem:
            self.state.switch(found.leaf, [False, True])
            return self._folded(node, lambda: False)
        if found.leaf and isinstance(found.const, bool):
            self.state.switch(found.leaf, [found.const, not found.const])
        return found

    def _bool(self, node: ast.BoolOp, every: bool, values: list[ast.expr]) -> Value:
        left: list[ast.expr] = []
        found: list[Value] = []
        for value in values:
            known = self.test(value)
            if known.known and bool(known.const) is not every:
                return self._folded(node, partial(_same, known.const))
            if not known.known:
                left.append(self.swapped(value))
                found.append(known)
        if not left:
            return self._folded(node, lambda: every)
        made = left[0] if len(left) == 1 else ast.copy_location(ast.BoolOp(node.op, left), node)
        self.state.swaps[node] = made
        return joined(*found)

    def _compare(self, node: ast.Compare, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Value:
        if isinstance(op, ast.In | ast.NotIn) and isinstance(left, ast.Constant):
            container = path_of(right)
            base = self.value(right) if container else PLAIN
            if container and base.problem:
                slot = self.state.slot_of(str(left.value))
                there = slot in ROLES - {Slot.MASK} and isinstance(op, ast.In)
                away = slot not in ROLES - {Slot.MASK} and isinstance(op, ast.NotIn)
                return self._folded(node, lambda: there or away)
        one, other = self.value(left), self.value(right)
        if isinstance(op, ast.Is | ast.IsNot) and other.const is None:
            return self._is_none(node, one, isinstance(op, ast.Is))
        if other.const == 0 and other.const is not False and one.leaf and one.problem:
            if isinstance(op, ast.Gt | ast.NotEq | ast.Eq):  # an optional term without weight
                return self._folded(node, lambda: isinstance(op, ast.Eq))
        one = self._switched(left, one, op, right, other)
        other = self._switched(right, other, op, left, one)
        if one.known and other.known:
            compare = _ORDER[type(op)]
            return self._folded(node, lambda: bool(compare(one.const, other.const)))
        return joined(one, other)

    def _is_none(self, node: ast.Compare, one: Value, wanted: bool) -> Value:
        if one.known:
            return self._folded(node, lambda: (one.const is None) is wanted)
        if one.leaf and one.problem:
            if one.leaf in self.state.containers:
                return self._folded(node, lambda: not wanted)
            return self._folded(node, lambda: wanted)
        if one.leaf and one.slots and Slot.CAP not in one.slots:
            return self._folded(node, lambda: not wanted)
        return joined(one)

    def _switched(
        self, node: ast.expr, value: Value, op: ast.cmpop, other_node: ast.expr, other: Value
    ) -> Value:
        """A setting that is compared with strings takes one of them."""
        if (
            not value.leaf
            or value.slots
            or not isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn)
        ):
            return value
        known = other.const if isinstance(other.const, tuple) else (other.const,)
        named = strings_of(other_node) or [c for c in known if isinstance(c, str)]
        if not named or not (value.problem or isinstance(value.const, str)):
            return value
        if value.known:
            self.state.named.add(value.leaf)
            self.state.switch(value.leaf, [value.const, *named])
            return value
        self.state.switch(value.leaf, named)
        const = self.state.choices.get(value.leaf, self.state.switches[value.leaf][0])
        self.state.swaps[node] = constant_at(const, node)
        return Value(const=const, leaf=value.leaf)

    def _folded(self, node: ast.expr, compute: Callable[[], Any]) -> Value:
        try:
            const = compute()
        except Exception:
            return PLAIN
        if isinstance(const, str | bool | int | float | None):
            self.state.swaps[node] = constant_at(const, node)
            return Value(const=const)
        return PLAIN
