"""Forward passes of models, and the values that are made of them.

A *trail* is a set of (forward pass, detached?) pairs: the passes that a value depends on, and
whether the gradient still flows. Steps are followed in order, once; an assignment in a branch
adds to what was there. What a call of unknown code returns carries the trails of its arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rlproof.read.landmarks import called
from rlproof.read.loop.events import is_model, switches_adapter, switches_gradient_off
from rlproof.read.loop.trace import CLASS, Definitions, Frame, Key, Step, Trace, local_names
from rlproof.read.names import is_logp, words

Trail = frozenset[tuple[int, bool]]
NONE: Trail = frozenset()
EITHER: Trail = frozenset({(-1, True)})
"""A mark beside the passes of a value that an expression chooses."""
_CHOOSES = {"where", "get", "getattr", "pop", "setdefault", "next"}
_LAYOUT = {
    "shape", "size", "numel", "ndim", "dim", "device", "dtype", "len", "range", "zeros_like",
    "ones_like", "empty_like", "arange", "isinstance", "attention_mask",
}  # fmt: skip
_STOPS = {"detach", "item", "stop_gradient", "numpy", "tolist", "data", "no_grad", "detach_"}
_WRAPPERS = {"clamp", "clip", "clamp_", "float", "to", "sum", "mean", "masked_mean", "where"}
_FILLING = {"append", "extend", "insert", "add", "put"}
_NOT_FORWARD = {
    "generate", "train", "eval", "parameters", "state_dict", "load_state_dict", "to", "zero_grad",
    "save_pretrained", "named_parameters", "cuda", "step", "backward", "prepare",
}  # fmt: skip
_CALLED = {"model", "policy", "actor", "engine"}
_MAKES_A_MODEL = {"prepare", "compile", "from_pretrained", "deepcopy", "DDP", "unwrap_model"}


@dataclass(frozen=True, slots=True)
class Forward:
    """One forward pass: `model(…)`, or unknown code that is given the model for log-probs."""

    number: int
    call: ast.Call
    step: Step
    model: Key
    given: tuple[ast.expr, ...]
    """The other arguments."""
    gradient: bool
    adapter: bool
    """Whether a `with` block around it may make the model another one."""


@dataclass(frozen=True, slots=True)
class Difference:
    """left − right, each with its trail, and the expressions themselves."""

    step: Step
    left: ast.expr
    right: ast.expr
    trails: tuple[Trail, Trail]


@dataclass(frozen=True, slots=True)
class Ratio:
    """An exponential of a difference of log-probs, or a loss that is given new and old ones."""

    step: Step
    node: ast.expr
    difference: Difference


@dataclass(slots=True)
class Assignments:
    """Where every variable of a trace is given a value; None where it is only changed."""

    by_key: dict[Key, list[tuple[Step, ast.expr | None]]] = field(default_factory=dict)

    def of(self, key: Key) -> list[tuple[Step, ast.expr | None]]:
        """All of them, in order."""
        return self.by_key.get(key, [])

    def put(self, key: Key | None, step: Step, value: ast.expr | None) -> None:
        """Note one."""
        if key is not None:
            self.by_key.setdefault(key, []).append((step, value))


class Passes:
    """The forward passes, ratios and assignments of one trace."""

    def __init__(self, trace: Trace, attributes: Mapping[Key, Key] | None = None) -> None:
        self.trace = trace
        self._frames = {frame.number: frame for frame in trace.frames}
        self._attributes = dict(attributes or {})
        self.differences: list[Difference] = []
        self.forwards: list[Forward] = []
        self.ratios: list[Ratio] = []
        self.assigned = Assignments()
        self._env: dict[Key, Trail] = {}
        self._differences: dict[Key, Difference] = {}
        self._returned: dict[int, tuple[Trail, list[Trail] | None]] = {}
        self._fields: dict[int, dict[str, Trail]] = {}
        """What frames return under the keys of a literal dictionary, or the fields of a record."""
        self._entered: set[int] = set()
        self._seen: dict[tuple[int, int], int] = {}
        for step in trace.steps:
            _note(self.assigned, step)
        for step in trace.steps:
            self._step(step)

    def root(self, key: Key | None, depth: int = 0) -> Key | None:
        """The variable behind parameters and other names for the same thing."""
        if key is None or depth > 8:
            return key
        frame = self._frame(key[0])
        name, _, rest = key[1].partition(".")
        bare = (key[0], name)
        if frame is not None and name in frame.arguments and not self.assigned.of(bare):
            given = frame.caller.key(frame.arguments[name]) if frame.caller else None
            if given is None:
                return key
            return self.root((given[0], f"{given[1]}.{rest}" if rest else given[1]), depth + 1)
        if key[0] == CLASS and key in self._attributes:
            return self.root(self._attributes[key], depth + 1)
        written = self.assigned.of(key)
        value = _same_object(written[0][1]) if len(written) == 1 else None
        if isinstance(value, ast.Name | ast.Attribute):
            step = written[0][0]
            other = step.frame.key(value)
            later = (
                [s for s, _ in self.assigned.of(other) if s.number > step.number] if other else []
            )
            if other is not None and other != key and not later:
                return self.root(other, depth + 1)
        return key

    def argument(self, frame: Frame, node: ast.expr) -> tuple[Frame, ast.expr]:
        """What the caller gave for a parameter, as far up as it is only passed on."""
        while isinstance(node, ast.Name) and node.id in frame.arguments and frame.caller:
            if self.assigned.of((frame.number, node.id)):
                break
            frame, node = frame.caller, frame.arguments[node.id]
        return frame, node

    def trail(self, node: ast.expr, step: Step) -> Trail:
        """The trail of an expression as it stands after its step."""
        return self._see(node, step.frame, step)

    def _frame(self, number: int) -> Frame | None:
        return self._frames.get(number)

    def _enter(self, frame: Frame) -> None:
        if frame.number in self._entered:
            return
        self._entered.add(frame.number)
        if frame.caller is None or frame.site is None:
            return
        for name, value in frame.arguments.items():
            trail = self._see(value, frame.caller, frame.site)
            if trail:
                self._env[(frame.number, name)] = trail
            given = frame.caller.key(value)
            if given is not None:
                for (number, said_there), part in list(self._env.items()):
                    entry = said_there.removeprefix(given[1])
                    if number == given[0] and said_there != entry and entry[:1] in ("[", "."):
                        self._env[(frame.number, name + entry)] = part
            if given in self._differences:
                self._differences[(frame.number, name)] = self._differences[given]

    def _step(self, step: Step) -> None:
        self._enter(step.frame)
        self._ratios(step)
        match step.node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._assign(target, value, step)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value, step)
            case ast.AugAssign(target=target, value=value):
                self._store(target, self._see(target, step.frame, step)
                            | self._see(value, step.frame, step), step)  # fmt: skip
            case ast.For(target=target, iter=value):
                self._store(target, self._see(value, step.frame, step), step)
            case ast.Return(value=ast.expr() as value):
                self._return(value, step)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=receiver, attr=attr)) as call):
                trail = self._see(call, step.frame, step)
                key = step.frame.key(receiver)
                if attr in _FILLING and key:
                    self._env[key] = self._env.get(key, NONE) | trail
            case _:
                for part in step.parts():
                    self._see(part, step.frame, step)

    def _return(self, value: ast.expr, step: Step) -> None:
        trail, parts = self._see(value, step.frame, step), None
        if isinstance(value, ast.Tuple):
            parts = [self._see(part, step.frame, step) for part in value.elts]
        fields = self._entries(value, step)
        if step.frame.number in self._returned:
            fields = {}  # several returns need not agree
        self._fields[step.frame.number] = fields
        before = self._returned.get(step.frame.number)
        if before is not None:
            trail = before[0] | trail
            same = parts and before[1] and len(parts) == len(before[1])
            parts = [a | b for a, b in zip(before[1], parts, strict=True)] if same else None  # type: ignore[arg-type]
        self._returned[step.frame.number] = (trail, parts)

    def _assign(self, target: ast.expr, value: ast.expr, step: Step) -> None:
        if isinstance(target, ast.Tuple):
            parts: list[Trail] | None = None
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                for left, right in zip(target.elts, value.elts, strict=True):
                    self._assign(left, right, step)
                return
            whole = self._see(value, step.frame, step)
            if isinstance(value, ast.Call) and value in step.inlined:
                parts = self._returned.get(step.inlined[value].number, (NONE, None))[1]
            for place, part in enumerate(target.elts):
                fits = parts is not None and len(parts) == len(target.elts)
                self._store(part, parts[place] if fits and parts else whole, step)
            return
        self._store(target, self._see(value, step.frame, step), step)
        key = self._name(target, step.frame)
        for entry, trail in self._entries(value, step).items() if key else ():
            self._env[(key[0], key[1] + entry)] = trail  # type: ignore[index]
        found = self._difference(value, step)
        if key and found:
            self._differences[key] = found
        elif key:
            self._differences.pop(key, None)

    def _entries(self, value: ast.expr, step: Step) -> dict[str, Trail]:
        """The trails of a literal dictionary, of a record, or of a call that returns one."""

        def see(node: ast.expr) -> Trail:
            trail = self._see(node, step.frame, step)
            return _stopped(trail) if switches_gradient_off(step.contexts) else trail

        match value:
            case ast.Dict(keys=keys, values=values):
                return {
                    f"[{key.value!s}]": see(entry)
                    for key, entry in zip(keys, values, strict=True)
                    if isinstance(key, ast.Constant)
                }
            case ast.Call() if value in step.inlined:
                return self._fields.get(step.inlined[value].number, {})
            case ast.Call(func=func, keywords=keywords) if said(func)[:1].isupper():
                return {f".{k.arg}": see(k.value) for k in keywords if k.arg}
            case ast.Name() | ast.Attribute():
                key = step.frame.key(value)
                found = {}
                for (number, name), trail in list(self._env.items()) if key else ():
                    entry = name.removeprefix(key[1])  # type: ignore[index]
                    if number == key[0] and entry != name and entry[:1] in ("[", "."):  # type: ignore[index]
                        found[entry] = trail
                return found
        return {}

    def _store(self, target: ast.expr, trail: Trail, step: Step) -> None:
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._store(part, trail, step)
            case ast.Starred(value=inner):
                self._store(inner, trail, step)
            case _:
                if switches_gradient_off(step.contexts):
                    trail = frozenset((number, True) for number, _ in trail)
                key = self._name(target, step.frame)
                if key is None:
                    base = target.value if isinstance(target, ast.Subscript) else None
                    key = self._name(base, step.frame) if base else None
                    if key is not None:
                        self._env[key] = self._env.get(key, NONE) | trail
                elif step.branches and key in self._env:
                    self._env[key] |= trail
                else:
                    self._env[key] = trail

    def _name(self, node: ast.expr | None, frame: Frame) -> Key | None:
        """Like `Frame.key`, but `batch["old"]` counts as a name too."""
        match node:
            case ast.Subscript(value=inner, slice=ast.Constant(value=str() as name)):
                base = frame.key(inner)
                return (base[0], f"{base[1]}[{name}]") if base else None
            case ast.expr():
                return frame.key(node)
        return None

    def _see(self, node: ast.expr, frame: Frame, step: Step) -> Trail:
        match node:
            case ast.Name():
                key = frame.key(node)
                return self._env.get(key, NONE) if key else NONE
            case ast.Attribute(value=value, attr=attr):
                if attr in _LAYOUT:
                    return NONE
                key = frame.key(node)
                if key in self._env:
                    return self._env[key]
                trail = self._see(value, frame, step)
                return _stopped(trail) if attr in _STOPS else trail
            case ast.Subscript(value=value):
                key = self._name(node, frame)
                return self._env[key] if key in self._env else self._see(value, frame, step)
            case ast.Call():
                return self._call(node, frame, step)
            case ast.Compare():
                return NONE
            case ast.IfExp(body=body, orelse=orelse):
                trail = self._see(body, frame, step) | self._see(orelse, frame, step)
                return trail | EITHER if trail else NONE
            case ast.BoolOp(values=values):
                trail = NONE.union(*(self._see(value, frame, step) for value in values))
                return trail | EITHER if trail else NONE
            case ast.Lambda():
                return NONE
            case (
                ast.ListComp(elt=elt, generators=generators)
                | ast.GeneratorExp(elt=elt, generators=generators)
            ):
                for one in generators:
                    self._store(one.target, self._see(one.iter, frame, step), step)
                return self._see(elt, frame, step)
            case _:
                inner = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
                return NONE.union(*(self._see(n, frame, step) for n in inner))

    def _call(self, node: ast.Call, frame: Frame, step: Step) -> Trail:
        name = called(node)
        if node in step.inlined and step.frame is frame:
            return self._returned.get(step.inlined[node].number, (NONE, None))[0]
        model = self._forward_of(node, frame)
        if model is not None:
            return frozenset({(self._forward(node, frame, step, model), False)})
        if name in _LAYOUT:
            return NONE
        parts = [*node.args, *(k.value for k in node.keywords)]
        trail = NONE.union(*(self._see(part, frame, step) for part in parts))
        if isinstance(node.func, ast.Attribute):
            trail |= self._see(node.func.value, frame, step)
        if name in _CHOOSES and trail:
            trail |= EITHER
        return _stopped(trail) if name in _STOPS else trail

    def _forward_of(self, node: ast.Call, frame: Frame) -> ast.expr | None:
        """The model of a forward pass."""
        if not node.args and not node.keywords:
            return None
        func = node.func
        name = called(node)
        if name in _NOT_FORWARD | _MAKES_A_MODEL or name[:1].isupper():
            return None
        if isinstance(func, ast.Attribute) and name in {"forward", "__call__"}:
            return func.value if is_model(said(func.value)) else None
        if frame.key(func) is not None and set(words(said(func))) & _CALLED:
            return func if _is_noun(said(func)) else None
        if is_logp(name) and isinstance(func, ast.Attribute) and is_model(said(func.value)):
            return func.value  # `policy.log_probs(ids)`
        if is_logp(name):
            given = [*node.args[:1], *(k.value for k in node.keywords if is_model(k.arg or ""))]
            return next((g for g in given if is_model(said(g))), None)
        return None

    def _forward(self, node: ast.Call, frame: Frame, step: Step, model: ast.expr) -> int:
        seen = self._seen.get((id(node), frame.number))
        if seen is not None:
            return seen
        key = self.root(frame.key(model)) or (frame.number, ast.unparse(model))
        given = (*node.args, *(k.value for k in node.keywords))
        self.forwards.append(
            Forward(
                len(self.forwards),
                node,
                step,
                key,
                tuple(g for g in given if g is not model),
                not switches_gradient_off(step.contexts),
                switches_adapter(step.contexts),
            )
        )
        self._seen[(id(node), frame.number)] = len(self.forwards) - 1
        return len(self.forwards) - 1

    def _ratios(self, step: Step) -> None:
        for node in step.walk():
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
                if found := self._difference(node, step):
                    self.differences.append(found)
        for call in step.calls():
            if call in step.inlined:
                continue
            name = called(call)
            if name in ("exp", "exp_"):
                inner = call.args[0] if call.args else None
                if inner is None and isinstance(call.func, ast.Attribute):
                    inner = call.func.value
                found = self._difference(inner, step) if inner is not None else None
                if found:
                    self.ratios.append(Ratio(step, call, found))
            elif set(words(name)) & {"loss", "surrogate", "objective"}:
                self._loss(call, step)

    def _loss(self, call: ast.Call, step: Step) -> None:
        """A loss of unknown code, by the names of what it is given."""
        given = [*call.args, *(k.value for k in call.keywords)]
        named = [(set(words(said(g))), g) for g in given if is_logp(said(g))]
        old = [g for parts, g in named if parts & {"old", "behavior", "behaviour", "prev"}]
        ref = [g for parts, g in named if parts & {"ref", "reference", "base", "sft"}]
        new = [g for _, g in named if g not in old and g not in ref]
        if len(new) == 1 and len(old) == 1:
            trails = self._see(new[0], step.frame, step), self._see(old[0], step.frame, step)
            self.ratios.append(Ratio(step, call, Difference(step, new[0], old[0], trails)))

    def _difference(self, node: ast.expr, step: Step) -> Difference | None:
        match node:
            case ast.BinOp(op=ast.Sub(), left=left, right=right):
                trails = self._see(left, step.frame, step), self._see(right, step.frame, step)
                return Difference(step, left, right, trails) if all(trails) else None
            case ast.BinOp(op=ast.Mult(), left=left, right=right):
                return self._difference(left, step) or self._difference(right, step)
            case ast.Call(func=ast.Attribute(value=inner), args=args) if called(node) in _WRAPPERS:
                first = args[0] if args else None
                outer = self._difference(inner, step)
                return outer or (self._difference(first, step) if first else None)
            case ast.Name() | ast.Attribute() | ast.Subscript():
                key = self._name(node, step.frame)
                return self._differences.get(key) if key else None
        return None


def attributes(known: Definitions) -> dict[Key, Key]:
    """What an attribute that is set once, to a plain parameter or attribute, is another name for.

    Two attributes set to the same parameter of one method are the same object.
    """
    written: dict[Key, list[Key | None]] = {}
    for owner, node in known.everything():
        first = [*node.args.posonlyargs, *node.args.args][:1]
        if owner is None or not first:
            continue
        frame = Frame(-2, node, owner, local=local_names(node))
        stored = [n.id for n in ast.walk(node)
                  if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]  # fmt: skip
        for inner in ast.walk(node):
            if isinstance(inner, ast.Assign):
                for target in inner.targets:
                    for part, value in _pairs(target, inner.value):
                        key = frame.key(part)
                        if key is None or key[0] != CLASS:
                            continue
                        plain = _same_object(value)
                        other: Key | None = None
                        if isinstance(plain, ast.Name) and plain.id not in stored:
                            other = (CLASS, f"{owner.name}.{node.name}:{plain.id}")
                        elif isinstance(plain, ast.Attribute):
                            given = frame.key(plain)
                            other = given if given and given[0] == CLASS else None
                        written.setdefault(key, []).append(other)
    return {key: values[0] for key, values in written.items()
            if len(values) == 1 and values[0] is not None}  # fmt: skip


def _same_object(node: ast.expr | None) -> ast.expr | None:
    """`model.eval()` and its like return the module itself."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in ("eval", "train", "requires_grad_", "to", "cuda"):
            return None
        node = node.func.value
    return node


def _note(assigned: Assignments, step: Step) -> None:
    frame = step.frame
    match step.node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                for part, given in _pairs(target, value):
                    assigned.put(_changed(part, frame), step, _kept(part, given))
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            assigned.put(_changed(target, frame), step, _kept(target, value))
        case ast.AugAssign(target=target):
            assigned.put(_changed(target, frame), step, None)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            for part, _ in _pairs(target, value):
                # never an alias: wrapped, so that it reads as made of the iterable
                assigned.put(_changed(part, frame), step, ast.Starred(value, ast.Load()))
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    assigned.put(_changed(item.optional_vars, frame), step, None)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            same = isinstance(value, ast.Tuple) and len(value.elts) == len(parts)
            for place, part in enumerate(parts):
                given = value.elts[place] if same and isinstance(value, ast.Tuple) else None
                yield from _pairs(part, given or ast.Starred(value, ast.Load()))
        case ast.Starred(value=inner):
            yield from _pairs(inner, value)
        case _:
            yield target, value


def _changed(target: ast.expr, frame: Frame) -> Key | None:
    while isinstance(target, ast.Subscript):
        target = target.value
    return frame.key(target)


def _kept(target: ast.expr, value: ast.expr) -> ast.expr:
    """The value of a name; for an entry of something, wrapped: it is no other name for it."""
    return ast.Starred(value, ast.Load()) if isinstance(target, ast.Subscript) else value


def _stopped(trail: Trail) -> Trail:
    return frozenset((number, True) for number, _ in trail)


def said(node: ast.expr) -> str:
    """The last name of an expression: `batch["old"]` says old."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
        case ast.Subscript(value=inner) | ast.Starred(value=inner):
            return said(inner)
        case ast.Attribute(attr=attr):
            return attr
        case ast.Name(id=name):
            return name
    return ""


def _is_noun(name: str) -> bool:
    """`ref_model` and `policy_old` are things; `load_model` and `sync_policy` are deeds."""
    deeds = {
        "load", "get", "build", "make", "create", "save", "sync", "update", "prepare", "init",
        "setup", "wrap", "unwrap", "eval", "evaluate", "train", "compute", "run", "copy", "log",
        "print", "count", "freeze", "set", "find", "merge", "push", "compile", "move", "clean",
        "loss", "is", "from", "apply", "config", "name", "offload", "onload", "patch", "fit",
        "test", "check", "convert", "register", "input", "inputs", "output", "outputs", "call",
        "grad", "step", "dump", "delete", "free", "clear", "use", "with", "to", "switch", "reset",
    }  # fmt: skip
    return not set(words(name)) & deeds
