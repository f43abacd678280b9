"""Statements of a region rewritten for the outlined function.

Settings become constants or parameters, branches that a setting decides are resolved, and what
the script computes with a model, or reads from somewhere, becomes a parameter if its name has a
role. Statements keep their nodes and places.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from rlproof.read.names import Slot
from rlproof.read.outline.callables import called, held
from rlproof.read.outline.expressions import Expressions
from rlproof.read.outline.inputs import is_selection, stops
from rlproof.read.outline.neutral import COUNTS, DROPPED_CONTEXTS, NEUTRAL
from rlproof.read.outline.state import Input, State, Stop
from rlproof.read.outline.syntax import (
    Functions,
    arguments,
    at,
    constant_at,
    name_at,
    path_of,
    rebuilt,
    replaced,
    stored,
)
from rlproof.read.outline.values import PLAIN, POLICIES, ROLES, Value, joined, merged

_GRADIENT_CONTEXTS = {"no_grad", "inference_mode", "enable_grad", "set_grad_enabled"}
_MOST_METHODS = 6


class Lowering(Expressions):
    """Lowers statements one after the other; the state carries what is known."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.kept_loops = 0
        """How many loops that stay loops are around the statement."""
        self.returned: list[Value] | None = None
        self.helper = False
        """Whether this is the body of a helper, which is lowered without stops."""

    def block(self, body: Sequence[ast.stmt], outer: bool = False) -> list[ast.stmt]:
        """Lower statements; `outer` says that they stand outside the innermost loop."""
        return [new for node in body for new in self.statement(node, outer)]

    def statement(self, node: ast.stmt, outer: bool = False) -> list[ast.stmt]:
        """What stands for one statement."""
        match node:
            case ast.Assign(targets=targets, value=value):
                return self._assign(node, targets, value, outer)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                plain = ast.copy_location(ast.Assign([target], value), node)
                return self._assign(plain, [target], value, outer)
            case ast.AugAssign():
                return self._augmented(node)
            case ast.Expr(value=value):
                return self._expression(node, value)
            case ast.If():
                return self._if(node, outer)
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node)
            case ast.With() | ast.AsyncWith():
                return self._with(node, outer)
            case ast.Try():
                return self.block([*node.body, *node.orelse, *node.finalbody], outer)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return [self._function(node)]
            case ast.Match():
                return self._match(node, outer)
            case ast.Return(value=value):
                return self._return(node, value)
            case ast.Import() | ast.ImportFrom():
                self.state.env.update(dict.fromkeys(stored(node), PLAIN))
                return [node]
            case ast.Raise():
                return [node]
            case ast.Continue() | ast.Break():
                return [node] if self.kept_loops else []
            case ast.ClassDef():
                self.state.env[node.name] = PLAIN
                return [node]
        return []

    # assignments

    def _assign(
        self, node: ast.Assign, targets: list[ast.expr], value: ast.expr, outer: bool
    ) -> list[ast.stmt]:
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(targets[0].elts, value.elts, strict=False))
            if len(targets[0].elts) == len(value.elts) and _independent(pairs):
                return [
                    new
                    for part, inner in pairs
                    for new in self._assign(
                        replaced(node, targets=[part], value=inner), [part], inner, outer
                    )
                ]
        if all(isinstance(t, ast.Subscript) and _is_off(t.slice) for t in targets):
            return []
        found = self.value(value)
        if (name := _one(targets)) and not found.known and not self._reads_arrays(value):
            self.state.env[name] = Value(const=1)
            return [replaced(node, value=constant_at(1, value))]
        stopped: set[str] = set()
        every: set[str] = set()
        for target in targets:
            for spot in _spots(target):
                name = self._store(spot, found, value, outer, stopped)
                if name:
                    every.add(name)
        made = self._made(node, found.problem)
        if not stopped:
            return [made]
        if stopped >= every:
            return [self._stop(node, stopped)]
        if found.problem:
            return [made, self._stop(node, stopped)]
        for name in stopped:
            self.state.env[name] = joined(found)
            self.state.inputs.pop(name, None)
        return [made]

    def _reads_arrays(self, value: ast.expr) -> bool:
        """Whether any variable in it holds arrays that the outlined function is given."""
        env = self.state.env
        names = [n.id for n in ast.walk(value) if isinstance(n, ast.Name)]
        return any(env[name].slots & ROLES for name in names if name in env)

    def _made(self, node: ast.stmt, problem: str | None) -> ast.stmt:
        """The lowered statement, with what it lacks noted."""
        new = rebuilt(node, self.state.swaps)
        assert isinstance(new, ast.stmt)
        if problem:
            new = replaced(new)
            self.state.lacking[new] = problem
        return new

    def _stop(self, node: ast.stmt, names: set[str]) -> Stop:
        made = at(Stop(), node)
        made.names = frozenset(names)
        return made

    def _store(
        self, spot: ast.expr, found: Value, value: ast.expr, outer: bool, stopped: set[str]
    ) -> str | None:
        """Bind one target. Returns the variable's name."""
        state = self.state
        match spot:
            case ast.Name(id=name):
                key = name
            case ast.Attribute() | ast.Subscript() if self._is_stored_path(spot):
                key = path_of(spot) or ""
                name = state.local(key)
            case ast.Subscript(value=base) | ast.Attribute(value=base):
                path = path_of(base)
                if path in state.env:
                    state.env[path] = joined(state.env[path], found)
                self.value(spot)
                return None
            case _:
                return None
        last = key.rpartition(".")[2]
        if last in COUNTS and found.problem and not self.kept_loops:
            state.counts.add(name)
            stopped.add(name)
            state.env[key] = Value(frozenset({Slot.MASK}))
            return name
        slot = state.slot_of(key) if "." in key else None
        slot = slot or (None if last in NEUTRAL else state.slot_of(last))
        written = self.swapped(value)
        bare = slot in ROLES and self._is_given(value, slot)
        own = key.startswith("self.")
        given = bare or stops(slot, last, found, written, outer, own)
        if state.sizes and not found.problem:  # such as the rewards of one group in a loop
            parts = self.kept_loops and slot is Slot.REWARDS
            filters = slot is Slot.MASK and Slot.REWARDS in found.slots
            given = given and not parts and not filters
        if given and not self.helper and not any(value is v for v in state.computed):
            assert slot is not None
            if self.kept_loops:
                why = f"line {spot.lineno} computes `{last}` anew for each turn of a loop"
                state.env[key] = Value(problem=found.problem or why)
                return name
            if name != key:
                same = isinstance(written, ast.Name) and written.id == last
                same = same and last in state.inputs
                name = last if same else state.free_name(key, last)
                state.locals[key] = name
            stopped.add(name)
            state.note(Input(name, slot, key, spot.lineno, True, state.default_of(written)))
            state.env[key] = Value(frozenset({slot}), leaf=key)
            return name
        if name != key:
            state.swaps[spot] = at(ast.Name(name, ast.Store()), spot)
        state.env[key] = found
        return name

    def _is_given(self, value: ast.expr, slot: Slot | None) -> bool:
        """Whether a value is nothing but a parameter with this slot, read under a key."""
        swap = self.state.swaps.get(value)
        known = self.state.inputs.get(swap.id) if isinstance(swap, ast.Name) else None
        return known is not None and known.slot is slot and "." in known.key

    def _is_stored_path(self, spot: ast.expr) -> bool:
        path = path_of(spot)
        if path is None:
            return False
        root = path.split(".")[0]
        if root in self.state.env:
            return self.state.env[root].problem is not None
        return root in self.state.arguments or root == "self"

    def _augmented(self, node: ast.AugAssign) -> list[ast.stmt]:
        found = self.value(node.value)
        name = node.target.id if isinstance(node.target, ast.Name) else None
        path = name or path_of(node.target)
        if path is not None and path in self.state.env:
            before = self.state.env[path]
            self.state.env[path] = joined(before, found)
            if name is None:
                spot = at(ast.Name(self.state.local(path), ast.Store()), node.target)
                self.state.swaps[node.target] = spot
            return [self._made(node, found.problem)]
        if name is not None and name not in self.state.arguments:
            return [self._made(node, found.problem or f"line {node.lineno} adds to `{name}`")]
        if isinstance(node.target, ast.Subscript):
            self.value(node.target.value)
            self.value(node.target.slice)
            return [self._made(node, found.problem)]
        # a parameter of the region, changed in place
        read = replaced(node.target, ctx=ast.Load())
        before = self.value(read)
        swap = self.state.swaps.get(read)
        if name and isinstance(swap, ast.Name):
            self.state.env[name] = joined(before, found)
        return [self._made(node, before.problem or found.problem)]

    def _expression(self, node: ast.Expr, value: ast.expr) -> list[ast.stmt]:
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            return []
        found = self.value(value)
        path = path_of(value.func.value)
        if path in self.state.env:
            self.state.env[path] = joined(self.state.env[path], found)
        return [self._made(node, found.problem)]

    # compound statements

    def _if(self, node: ast.If, outer: bool) -> list[ast.stmt]:
        known = self.test(node.test)
        if known.known:
            self._see_others(node.orelse)
            return self.block(node.body if known.const else node.orelse, outer)
        test = self.swapped(node.test)
        before = set(self.state.inputs)
        with self.state.branch() as one:
            body = self.block(node.body, outer)
            if known.problem and self._is_guard(node):
                return []
        with self.state.branch() as other:
            orelse = self.block(node.orelse, outer)
        del before
        ends = [_ends(node.body), _ends(node.orelse)]
        branches = [env for env, end in zip((one, other), ends, strict=True) if not end]
        for env in branches:
            for name, value in env.items():
                known_elsewhere = [e[name] for e in branches if name in e]
                self.state.env[name] = (
                    merged(known_elsewhere[0], known_elsewhere[-1]) if known_elsewhere else value
                )
        made = replaced(node, test=test, body=body or [at(ast.Pass(), node)], orelse=orelse)
        if known.problem:
            self.state.lacking[made] = known.problem
        return [made]

    def _is_guard(self, node: ast.If) -> bool:
        """Whether a branch only leaves with nothing of the policy, as where there is no data."""
        last = node.body[-1]
        if node.orelse or not isinstance(last, ast.Return):
            return False
        simple = all(isinstance(s, ast.Assign | ast.Expr | ast.Return) for s in node.body)
        return simple and (last.value is None or not self.value(last.value).slots & POLICIES)

    def _see_others(self, orelse: Sequence[ast.stmt]) -> None:
        """Note what a setting is compared with further down a chain that is decided already."""
        while len(orelse) == 1 and isinstance(orelse[0], ast.If):
            self.test(orelse[0].test)
            orelse = orelse[0].orelse

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> list[ast.stmt]:
        head = self.value(node.iter) if not isinstance(node, ast.While) else self.test(node.test)
        head = joined(head)
        self.kept_loops += 1
        try:
            for _ in range(2 if self.kept_loops < 3 else 1):
                before = dict(self.state.env)
                if not isinstance(node, ast.While):
                    self._bind_loop(node.target, node.iter, head)
                body = self.block(node.body)
                for name, value in before.items():
                    self.state.env[name] = merged(value, self.state.env.get(name, value))
        finally:
            self.kept_loops -= 1
        new = rebuilt(node, self.state.swaps)
        made = replaced(new, body=body or [at(ast.Pass(), node)], orelse=[])
        assert isinstance(made, ast.stmt)
        if head.problem:
            self.state.lacking[made] = head.problem
        return [made]

    def _bind_loop(self, target: ast.expr, source: ast.expr, head: Value) -> None:
        """Loop variables get what they walk over, through `zip` and `enumerate`."""
        match target, source:
            case (
                ast.Tuple(elts=[index, rest]),
                ast.Call(func=ast.Name(id="enumerate"), args=[walked, *_]),
            ):
                self._bind_loop(index, index, PLAIN)
                self._bind_loop(rest, walked, joined(self.value(walked)))
            case ast.Tuple(elts=parts), ast.Call(func=ast.Name(id="zip"), args=args) if len(
                parts
            ) == len(args):
                for part, walked in zip(parts, args, strict=True):
                    self._bind_loop(part, walked, joined(self.value(walked)))
            case _:
                for name in stored(target):
                    self.state.env[name] = head

    def enter_loop(self, node: ast.For | ast.AsyncFor | ast.While, outer: bool) -> list[ast.stmt]:
        """The head of a loop whose one turn is outlined: its variables come from outside."""
        if isinstance(node, ast.While):
            return []
        self.value(node.iter)
        why = f"line {node.lineno} takes it out of a loop"
        stopped: set[str] = set()
        for spot in _spots(node.target):
            self._store(spot, Value(problem=why), node.iter, outer, stopped)
        return [self._stop(node, stopped)] if stopped else []

    def _with(self, node: ast.With | ast.AsyncWith, outer: bool) -> list[ast.stmt]:
        kept = []
        for item in node.items:
            call = item.context_expr
            func = call.func if isinstance(call, ast.Call) else call
            last = getattr(func, "attr", getattr(func, "id", ""))
            if last in _GRADIENT_CONTEXTS and last not in DROPPED_CONTEXTS:
                kept.append(item)
            elif item.optional_vars is not None:
                why = Value(problem=f"line {node.lineno} opens it as a context")
                self.state.env.update(dict.fromkeys(stored(item.optional_vars), why))
        body = self.block(node.body, outer)
        if not kept:
            return body
        return [replaced(node, items=kept, body=body or [at(ast.Pass(), node)])]

    def _match(self, node: ast.Match, outer: bool) -> list[ast.stmt]:
        """A choice by value is a chain of ifs; other patterns can't be lowered."""
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            match case.pattern:
                case ast.MatchValue(value=value):
                    test: ast.expr = ast.Compare(node.subject, [ast.Eq()], [value])
                case ast.MatchOr(patterns=patterns) if all(
                    isinstance(p, ast.MatchValue) for p in patterns
                ):
                    every = ast.List([p.value for p in patterns], ast.Load())  # type: ignore[attr-defined]
                    test = ast.Compare(node.subject, [ast.In()], [every])
                case ast.MatchAs(pattern=None, name=None):
                    chain = list(case.body)
                    continue
                case _:
                    return []
            at_case = ast.If(test, list(case.body), chain)
            chain = [_placed(at_case, case.pattern)]
        return self.block(chain, outer)

    def _return(self, node: ast.Return, value: ast.expr | None) -> list[ast.stmt]:
        if value is None:
            return [node] if self.returned is not None else []
        part = value if self.helper else loss_in(value)
        found = self.value(part)
        if self.returned is not None:
            self.returned.append(found)
        made = replaced(node, value=self.swapped(part))
        if found.problem:
            self.state.lacking[made] = found.problem
        return [made]

    # functions

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        body, value = self.body_of(node, ())
        self.state.env[node.name] = value
        return replaced(node, body=body, decorator_list=[])

    def body_of(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, without: Sequence[str]
    ) -> tuple[list[ast.stmt], Value]:
        """The lowered body of a helper, and what it returns apart from its arguments."""
        from rlproof.read.outline.slicing import Slicer

        inner = Lowering(self.state)
        inner.helper, inner.returned = True, []
        own = arguments(node.args) - set(without)
        shadowed = dict.fromkeys(own, PLAIN)
        with self.state.branch() as env:
            env.update(shadowed)
            body = inner.block(node.body)
        slicer = Slicer(self.state)
        kept = slicer.block(body, set())
        value = joined(*(replace(v, const=PLAIN.const) for v in inner.returned))
        problem = slicer.problems[0] if slicer.problems else None
        return kept or [at(ast.Pass(), node)], Value(value.slots, problem)

    def method(self, name: str, call: ast.Call) -> Value:
        """A call of a method of the own class: it becomes a function inside the outlined one."""
        state = self.state
        given = joined(*self._arguments(call))
        found = next(
            (
                i.methods[name]
                for i in state.scope.ancestors(state.owner or "")
                if name in i.methods
            ),
            None,
        )
        line = call.lineno
        if found is None:
            if (other := self._held(name, call)) is not None:
                result = self.value(other)
                state.swaps[call] = self.swapped(other)
                return result
            return Value(given.slots, f"line {line} calls `self.{name}`, which is of another file")
        if given.problem:
            return given
        if name not in state.helpers:
            if name in state.inside or len(state.inside) >= _MOST_METHODS:
                return Value(given.slots, f"line {line} calls `self.{name}` again inside itself")
            self._make_helper(name, found)
        own = state.local(f"self.{name}()").rstrip("_")
        state.swaps[call] = replaced(
            call,
            func=name_at(own, call.func),
            args=[rebuilt(a, state.swaps) for a in call.args],
            keywords=[rebuilt(k, state.swaps) for k in call.keywords],
        )
        body, value = state.helpers[name]
        del body
        return joined(given, value)

    def _held(self, name: str, call: ast.Call) -> ast.Call | None:
        """The call of the function that an attribute holds."""
        scope = self.state.scope
        value = held(scope, self.state.owner or "", name)

        def decide(test: ast.expr) -> object:
            known = self.test(test)
            return known.const if known.known else None

        return called(value, call, scope, decide) if value is not None else None

    def _make_helper(self, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        state = self.state
        names = {getattr(d, "id", "") for d in node.decorator_list}
        args = node.args
        every = [] if "staticmethod" in names else [*args.posonlyargs, *args.args]
        first = every[0] if every else None
        state.inside.append(name)
        try:
            if first is not None and first.arg == "self":
                inner_args = replaced(args, args=args.args[1:]) if args.args else args
            else:
                inner_args = args
            saved = {n: state.env.pop(n) for n in list(state.env) if not n.startswith("self.")}
            try:
                body, value = self.body_of(node, ("self",))
            finally:
                state.env = {**saved, **{k: v for k, v in state.env.items() if k not in saved}}
        finally:
            state.inside.pop()
        own = state.local(f"self.{name}()").rstrip("_")
        made = replaced(node, name=own, args=inner_args, body=body, decorator_list=[], returns=None)
        state.helpers[name] = ([made], value)


def _one(targets: Sequence[ast.expr]) -> str | None:
    """The one variable that is set, where it counts steps of which the neutral number is 1."""
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return None
    name = targets[0].id
    return name if type(NEUTRAL.get(name)) is int and NEUTRAL[name] == 1 else None


def _is_off(index: ast.expr) -> bool:
    """Whether an index is a mask that is empty in every neutral setting."""
    return isinstance(index, ast.Name) and index.id in NEUTRAL and NEUTRAL[index.id] is None


def _placed(node: ast.If, place: ast.AST) -> ast.If:
    for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
        setattr(node, name, getattr(place, name))
        for inner in ast.walk(node.test):
            if "lineno" in inner._attributes and not hasattr(inner, name):
                setattr(inner, name, getattr(place, name))
    return node


def _independent(pairs: Sequence[tuple[ast.expr, ast.expr]]) -> bool:
    """Whether assigning one after the other is the same as assigning at once."""
    bound: set[str] = set()
    for target, value in pairs:
        read = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
        if read & bound:
            return False
        bound |= set(stored(target))
    return True


def _spots(target: ast.expr) -> list[ast.expr]:
    """The single targets inside one target."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [spot for part in parts for spot in _spots(part)]
        case ast.Starred(value=inner):
            return _spots(inner)
    return [target]


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether a branch never comes to the statement after it."""
    return bool(body) and isinstance(body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break)


def loss_in(value: ast.expr) -> ast.expr:
    """The loss in what is returned: the part that is called so, else the first one."""
    match value:
        case ast.Tuple(elts=[first, *_]) as whole:
            names = [e for e in whole.elts if isinstance(e, ast.Name) and "loss" in e.id.lower()]
            return names[0] if names else first
        case ast.Dict(keys=keys, values=values):
            found = [
                inner
                for key, inner in zip(keys, values, strict=True)
                if isinstance(key, ast.Constant) and "loss" in str(key.value).lower()
            ]
            if found:
                return next((inner for inner in found if not _is_number(inner)), found[0])
        case ast.Call(keywords=keywords):
            named = [k.value for k in keywords if k.arg == "loss"]
            return named[0] if named else value
    return value


def _is_number(node: ast.expr) -> bool:
    """Whether it is `x.item()`: a copy to look at, from which no gradient comes back."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("item", "tolist", "detach")
    )


__all__ = ["Functions", "Lowering", "Slot", "is_selection", "loss_in"]
