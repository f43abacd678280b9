"""Loops that go over the same data again, and how often."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from rlproof.read.landmarks import called
from rlproof.read.loop.events import Event, Kind
from rlproof.read.loop.passes import Forward, Passes
from rlproof.read.loop.trace import CLASS, Frame, Key, Loop, Step
from rlproof.read.loop.values import Values

_PLAIN = {
    "range", "len", "zip", "enumerate", "list", "tuple", "min", "max", "slice", "int", "float",
    "to", "cuda", "cpu", "long", "bool", "view", "reshape", "squeeze", "unsqueeze", "contiguous",
    "split", "chunk", "DataLoader", "randperm", "permutation", "arange", "tqdm", "items", "values",
    "keys", "get", "detach", "clone", "cat", "stack", "pad", "tensor", "as_tensor", "index_select",
    "expand", "dict", "flatten", "size", "str", "ceil", "flip", "trange", "TensorDataset", "sum",
    "transpose", "permute", "repeat", "type", "half", "ones_like", "zeros_like", "ne", "eq",
}  # fmt: skip
_READING = {
    "mean", "item", "std", "max", "min", "exp", "log", "log_softmax", "gather", "any", "all",
    "numel", "dim", "clamp", "abs", "log_prob", "entropy", "mul", "forward", "eval", "train",
    "tolist", "numpy", "unbind", "new_zeros", "new_ones", "argmax", "cumsum", "softmax",
    "masked_fill",
}  # fmt: skip
UPDATES = (Kind.STEP, Kind.ENGINE)


def epoch_loop(passes: Passes, found: Sequence[Event], forward: Forward) -> Loop | None:
    """The outermost loop that updates the policy, and gives this forward pass the same data again.

    None where the data may be others in each round, or a rollout is made inside.
    """
    for loop in forward.step.loops:
        inside = {e.kind for e in found if e.step.inside(loop)}
        if inside & set(UPDATES) and Kind.ROLLOUT not in inside:
            frame = forward.step.frame
            if all(same_every_round(passes, node, frame, loop) for node in forward.given):
                return loop
    return None


def same_every_round(passes: Passes, node: ast.expr, frame: Frame, loop: Loop) -> bool:
    """Whether an expression is made of nothing that changes in a loop."""
    return _Same(passes, loop).holds(node, frame)


class _Same:
    def __init__(self, passes: Passes, loop: Loop) -> None:
        self.passes = passes
        self.loop = loop
        self.steps = [s for s in passes.trace.steps if s.inside(loop) or s.node is loop]
        self.inlined = {
            (call, s.frame.number): f for s in self.steps for call, f in s.inlined.items()
        }
        self.seen: set[tuple[int, str]] = set()
        self.mutated: set[Key | None] = set()
        self.unknown_selves: set[str] = set()
        for step in self.steps:
            for call in step.calls():
                if call not in step.inlined:
                    self._changes(step, call)

    def _changes(self, step: Step, call: ast.Call) -> None:
        """A method may change its object, a call whose result is dropped what it is given."""
        frame, func = step.frame, call.func
        if isinstance(func, ast.Attribute) and func.attr not in _PLAIN | _READING:
            if isinstance(func.value, ast.Name) and func.value.id == frame.me and frame.owner:
                self.unknown_selves.add(frame.owner.name)  # an inherited method
            else:
                self.mutated.add(self.passes.root(frame.key(func.value)))
        dropped = isinstance(step.node, ast.Expr) and step.node.value is call
        if dropped and not isinstance(func, ast.Attribute) and called(call) != "print":
            self.mutated |= {self.passes.root(frame.key(given)) for given in call.args}

    def holds(self, node: ast.expr, frame: Frame) -> bool:
        match node:
            case ast.Name():
                return self._name(node, frame)
            case ast.Attribute(value=value):
                key = frame.key(node)
                if key is None:
                    return self.holds(value, frame)
                if not self._key(key):
                    return False
                is_me = isinstance(value, ast.Name) and value.id == frame.me
                return is_me or self.holds(value, frame)
            case ast.Call(func=func, args=args, keywords=keywords):
                inner = self.inlined.get((node, frame.number))
                if inner is not None:
                    return self._returned(inner)
                if called(node) not in _PLAIN:
                    return False
                parts = [*args, *(k.value for k in keywords if k.arg != "collate_fn")]
                if isinstance(func, ast.Attribute):
                    parts.append(func.value)
                return all(self.holds(part, frame) for part in parts)
            case ast.Lambda() | ast.Constant():
                return True
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                pass
        children = [n for n in ast.walk(node) if n is not node]
        direct = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        direct += [n.iter for n in children if isinstance(n, ast.comprehension)]
        return all(self.holds(n, frame) for n in direct)

    def _name(self, node: ast.Name, frame: Frame) -> bool:
        key = frame.key(node)
        given = frame.arguments.get(node.id) if key and key[0] == frame.number else None
        if given is not None and frame.caller is not None:
            if not self.holds(given, frame.caller):
                return False
        return key is None or self._key(key)

    def _key(self, key: tuple[int, str]) -> bool:
        if key in self.seen:
            return True
        self.seen.add(key)
        if self.passes.root(key) in self.mutated or key in self.mutated:
            return False
        if key[0] == CLASS and key[1].split(".")[0] in self.unknown_selves:
            return False
        inside = set(map(id, self.steps))
        for step, value in self.passes.assigned.of(key):
            if id(step) in inside:
                if value is None or step.node is self.loop or not self.holds(value, step.frame):
                    return False
        return True

    def _returned(self, frame: Frame) -> bool:
        values = [s.node.value for s in frame.returns if isinstance(s.node, ast.Return)]
        return bool(values) and all(v is None or self.holds(v, frame) for v in values)


def rounds(values: Values, loop: Loop) -> int | None:
    """How often a loop over a `range` goes round, where the source fixes it."""
    if isinstance(loop, ast.While):
        return None
    source = loop.iter
    if isinstance(source, ast.Call) and called(source) in ("tqdm", "enumerate") and source.args:
        source = source.args[0]
    if isinstance(source, ast.Call) and called(source) in ("range", "trange") and source.args:
        stop = source.args[0] if len(source.args) == 1 else source.args[1]
        fixed = values.number(stop)
        if fixed is not None and isinstance(fixed.value, int):
            start = values.number(source.args[0]) if len(source.args) > 1 else None
            first = start.value if start is not None and isinstance(start.value, int) else 0
            return fixed.value - first
    return None


def statement_in(step: Step, other: Step) -> Step:
    """The statement that a step belongs to in the innermost frame that it shares with another."""
    frames = set()
    frame: Frame | None = other.frame
    while frame is not None:
        frames.add(frame.number)
        frame = frame.caller
    while step.frame.number not in frames and step.frame.site is not None:
        step = step.frame.site
    return step
