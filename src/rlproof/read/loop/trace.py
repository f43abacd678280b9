"""A training script as one list of steps: local calls written out where they are made.

A *frame* is one call of a local function, or the module. A *key* names a variable: the number of
its frame and its dotted name; attributes of `self` belong to the class, whatever the frame. Each
step knows the loops, branches and `with` blocks around it, those of its callers included.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rlproof.read.targets import FunctionNode

Key = tuple[int, str]
Loop = ast.For | ast.AsyncFor | ast.While
_MODULE, CLASS = 0, -1
_MOST_STEPS = 20_000
_MOST_DEPTH = 6


@dataclass(frozen=True, slots=True)
class Branch:
    """One arm of a conditional statement, and how many loops are around that statement."""

    node: ast.stmt
    arm: int
    depth: int


@dataclass(eq=False, slots=True)
class Frame:
    """One call of a local function; the module's own is number 0."""

    number: int
    node: FunctionNode | ast.Module
    owner: ast.ClassDef | None = None
    caller: Frame | None = None
    outer: Frame | None = None
    """Where names that are not local are looked up."""
    arguments: dict[str, ast.expr] = field(default_factory=dict)
    local: frozenset[str] = frozenset()
    site: Step | None = None
    """The step that makes the call."""
    returns: list[Step] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The function's name."""
        return "<module>" if isinstance(self.node, ast.Module) else self.node.name

    @property
    def title(self) -> str:
        """The name as a report says it: of a method with its class."""
        return f"{self.owner.name}.{self.name}" if self.owner else self.name

    @property
    def me(self) -> str | None:
        """What a method calls its object."""
        if self.owner is None or isinstance(self.node, ast.Module):
            return None
        first = [*self.node.args.posonlyargs, *self.node.args.args][:1]
        return first[0].arg if first else None

    def key(self, node: ast.expr) -> Key | None:
        """The variable that a name or a chain of attributes stands for; None for anything else."""
        match node:
            case ast.Name(id=name):
                return self._home(name), name
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == self.me:
                return CLASS, f"{self.owner.name if self.owner else ''}.{attr}"
            case ast.Attribute(value=inner, attr=attr):
                base = self.key(inner)
                return (base[0], f"{base[1]}.{attr}") if base else None
        return None

    def _home(self, name: str) -> int:
        if name in self.local or isinstance(self.node, ast.Module):
            return self.number
        return self.outer._home(name) if self.outer else _MODULE


@dataclass(eq=False, slots=True)
class Step:
    """One statement as it is reached, or the head of a compound one."""

    number: int
    node: ast.stmt
    frame: Frame
    loops: tuple[Loop, ...]
    branches: tuple[Branch, ...]
    contexts: tuple[ast.expr, ...]
    inlined: dict[ast.Call, Frame] = field(default_factory=dict)

    def parts(self) -> Iterator[ast.expr]:
        """The expressions that belong to this step: of a compound statement only its head."""
        match self.node:
            case ast.For() | ast.AsyncFor():
                yield self.node.iter
            case ast.While() | ast.If():
                yield self.node.test
            case ast.With() | ast.AsyncWith():
                yield from (item.context_expr for item in self.node.items)
            case ast.Match():
                yield self.node.subject
            case ast.Try():
                return
            case _:
                yield from (n for n in ast.iter_child_nodes(self.node) if isinstance(n, ast.expr))

    def walk(self) -> Iterator[ast.AST]:
        """Every node of those expressions, the insides of lambdas too."""
        for part in self.parts():
            yield from ast.walk(part)

    def calls(self) -> list[ast.Call]:
        """The calls of this step."""
        return [node for node in self.walk() if isinstance(node, ast.Call)]

    def inside(self, loop: Loop) -> bool:
        """Whether this step is in the body of a loop."""
        return loop in self.loops

    def branches_in(self, loop: Loop | None) -> tuple[Branch, ...]:
        """The branches that lie inside of a loop: what they choose may differ in each round."""
        if loop is None or loop not in self.loops:
            return self.branches
        return tuple(b for b in self.branches if b.depth > self.loops.index(loop))


@dataclass(eq=False, slots=True)
class Trace:
    """All steps from one root."""

    root: Frame
    steps: list[Step]
    frames: list[Frame]
    complete: bool = True
    """False where the list was cut short."""


class Definitions:
    """The functions, methods and classes of a file by name."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.functions = {n.name: n for n in tree.body if isinstance(n, FunctionNode)}
        for node in tree.body:
            if isinstance(node, ast.If | ast.Try):
                for inner in ast.walk(node):
                    if isinstance(inner, FunctionNode):
                        self.functions.setdefault(inner.name, inner)
        self.classes = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}

    def method(self, owner: ast.ClassDef, name: str) -> tuple[ast.ClassDef, FunctionNode] | None:
        """A method of a class, or of its local bases."""
        for node in owner.body:
            if isinstance(node, FunctionNode) and node.name == name:
                return owner, node
        for base in owner.bases:
            parent = self.classes.get(base.id) if isinstance(base, ast.Name) else None
            if parent is not None and parent is not owner:
                if found := self.method(parent, name):
                    return found
        return None

    def everything(self) -> list[tuple[ast.ClassDef | None, FunctionNode]]:
        """All module-level functions and all methods."""
        methods = [
            (owner, node)
            for owner in self.classes.values()
            for node in owner.body
            if isinstance(node, FunctionNode)
        ]
        return [*((None, node) for node in self.functions.values()), *methods]


def traces(tree: ast.Module, word: str) -> list[Trace]:
    """The traces in which a method of this name may be called.

    The module's own comes first, then one for each function that nothing traced so far calls.
    """
    known = Definitions(tree)
    called = _called_names(known)
    leading = _leading_to(known, word)
    everything = [pair for pair in known.everything() if pair[1].name in leading]
    roots = sorted(everything, key=lambda pair: (pair[1].name in called, pair[1].lineno))
    found = [_Builder(known).trace(None, None)]
    seen = {id(frame.node) for frame in found[0].frames}
    for owner, node in roots:
        if id(node) not in seen:
            trace = _Builder(known).trace(owner, node)
            seen |= {id(frame.node) for frame in trace.frames}
            found.append(trace)
    return found


def _leading_to(known: Definitions, word: str) -> set[str]:
    """The names of functions that call such a method, or call a function that does, and so on."""
    uses = {
        id(node): {
            getattr(n.func, "attr", getattr(n.func, "id", ""))
            for n in ast.walk(node)
            if isinstance(n, ast.Call)
        }
        for _, node in known.everything()
    }
    found = {word}
    while True:
        more = {node.name for _, node in known.everything() if uses[id(node)] & found}
        if more <= found:
            return found
        found |= more


def _called_names(known: Definitions) -> set[str]:
    names: set[str] = set()
    for _, node in known.everything():
        for inner in ast.walk(node):
            match inner:
                case ast.Call(func=ast.Name(id=name)) if name != node.name:
                    names.add(name)
                case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                    names.add(name)
    return names


class _Builder:
    def __init__(self, known: Definitions) -> None:
        self.known = known
        self.steps: list[Step] = []
        self.frames: list[Frame] = []
        self.complete = True
        self.module = self._frame(known.tree)
        self.objects: dict[Key, ast.ClassDef] = {}
        self.nested: dict[FunctionNode, dict[str, FunctionNode]] = {}

    def trace(self, owner: ast.ClassDef | None, node: FunctionNode | None) -> Trace:
        root = self.module
        if node is not None:
            root = self._frame(node, owner=owner, outer=self.module)
        self._block(root.node.body, root, (), (), _decorators(root.node))
        return Trace(root, self.steps, self.frames[1:] if node else self.frames, self.complete)

    def _frame(
        self,
        node: FunctionNode | ast.Module,
        *,
        owner: ast.ClassDef | None = None,
        caller: Frame | None = None,
        outer: Frame | None = None,
        arguments: dict[str, ast.expr] | None = None,
    ) -> Frame:
        local = frozenset() if isinstance(node, ast.Module) else local_names(node)
        number = len(self.frames)
        frame = Frame(number, node, owner, caller, outer, arguments or {}, local)
        self.frames.append(frame)
        return frame

    def _block(
        self,
        body: Sequence[ast.stmt],
        frame: Frame,
        loops: tuple[Loop, ...],
        branches: tuple[Branch, ...],
        contexts: tuple[ast.expr, ...],
    ) -> None:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    continue
                case ast.For() | ast.AsyncFor() | ast.While():
                    self._emit(node, frame, loops, branches, contexts)
                    self._block(node.body, frame, (*loops, node), branches, contexts)
                    self._block(node.orelse, frame, loops, branches, contexts)
                case ast.If(test=test) if _is_main(test):
                    self._block(node.body, frame, loops, branches, contexts)
                case ast.If():
                    self._emit(node, frame, loops, branches, contexts)
                    for arm, inner in enumerate((node.body, node.orelse)):
                        self._block(
                            inner,
                            frame,
                            loops,
                            (*branches, Branch(node, arm, len(loops))),
                            contexts,
                        )
                case ast.With() | ast.AsyncWith():
                    self._emit(node, frame, loops, branches, contexts)
                    inside = (*contexts, *(item.context_expr for item in node.items))
                    self._block(node.body, frame, loops, branches, inside)
                case ast.Try():
                    self._block([*node.body, *node.orelse], frame, loops, branches, contexts)
                    for arm, handler in enumerate(node.handlers, 1):
                        inner_branches = (*branches, Branch(node, arm, len(loops)))
                        self._block(handler.body, frame, loops, inner_branches, contexts)
                    self._block(node.finalbody, frame, loops, branches, contexts)
                case ast.Match():
                    self._emit(node, frame, loops, branches, contexts)
                    for arm, case in enumerate(node.cases):
                        self._block(
                            case.body,
                            frame,
                            loops,
                            (*branches, Branch(node, arm, len(loops))),
                            contexts,
                        )
                case _:
                    self._emit(node, frame, loops, branches, contexts)

    def _emit(
        self,
        node: ast.stmt,
        frame: Frame,
        loops: tuple[Loop, ...],
        branches: tuple[Branch, ...],
        contexts: tuple[ast.expr, ...],
    ) -> None:
        if len(self.steps) >= _MOST_STEPS:
            self.complete = False
            return
        step = Step(0, node, frame, loops, branches, contexts)
        for call in reversed(step.calls()):  # arguments come before the call around them
            inner = self._callee(call, frame)
            if inner is not None:
                step.inlined[call] = inner
                inner.site = step
                around = (*contexts, *_decorators(inner.node))
                self._block(inner.node.body, inner, loops, branches, around)
        step.number = len(self.steps)
        self.steps.append(step)
        if isinstance(node, ast.Return):
            frame.returns.append(step)
        match node:
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Name(id=name))):
                key = frame.key(target)
                if key and name in self.known.classes:
                    self.objects[key] = self.known.classes[name]

    def _callee(self, call: ast.Call, frame: Frame) -> Frame | None:
        found = self._definition(call, frame)
        if found is None:
            return None
        owner, node, outer = found
        depth, above = 0, frame
        while above is not None:
            if above.node is node:
                return None
            depth, above = depth + 1, above.caller  # type: ignore[assignment]
        if depth > _MOST_DEPTH or not self.complete:
            return None
        static = any(getattr(d, "id", "") == "staticmethod" for d in node.decorator_list)
        arguments = bind(call, node, skip=owner is not None and not static)
        return self._frame(node, owner=owner, caller=frame, outer=outer, arguments=arguments)

    def _nested(self, node: FunctionNode) -> dict[str, FunctionNode]:
        """The functions inside of one, the outermost of each name; looked for once."""
        if node not in self.nested:
            found: dict[str, FunctionNode] = {}
            for inner in ast.walk(node):
                if isinstance(inner, FunctionNode) and inner is not node:
                    found.setdefault(inner.name, inner)
            self.nested[node] = found
        return self.nested[node]

    def _definition(
        self, call: ast.Call, frame: Frame
    ) -> tuple[ast.ClassDef | None, FunctionNode, Frame] | None:
        match call.func:
            case ast.Name(id=name):
                around: Frame | None = frame
                while around is not None and not isinstance(around.node, ast.Module):
                    if node := self._nested(around.node).get(name):
                        return None if _is_async(node) else (None, node, around)
                    around = around.outer
                function = self.known.functions.get(name)
                return (None, function, self.module) if function else None
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == frame.me and frame.owner:
                method = self.known.method(frame.owner, attr)
                return (frame.owner, method[1], self.module) if method else None
            case ast.Attribute(value=receiver, attr=attr):
                key = frame.key(receiver)
                owner = self.objects.get(key) if key else None
                method = self.known.method(owner, attr) if owner else None
                return (owner, method[1], self.module) if owner and method else None
        return None


def bind(call: ast.Call, node: FunctionNode, *, skip: bool) -> dict[str, ast.expr]:
    """The argument that each parameter of a local function is given; a star ends the list."""
    names = [a.arg for a in [*node.args.posonlyargs, *node.args.args]][skip:]
    found: dict[str, ast.expr] = {}
    for name, value in zip(names, call.args, strict=False):
        if isinstance(value, ast.Starred):
            break
        found[name] = value
    return found | {k.arg: k.value for k in call.keywords if k.arg}


def local_names(node: FunctionNode) -> frozenset[str]:
    """Parameters and names that a function assigns to."""
    args = node.args
    names = {a.arg for a in [*args.posonlyargs, *args.args, *args.kwonlyargs]}
    names |= {a.arg for a in (args.vararg, args.kwarg) if a}
    shared: set[str] = set()
    stack: list[ast.AST] = list(node.body)
    while stack:
        inner = stack.pop()
        match inner:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(inner.name)
                continue
            case ast.Global(names=given) | ast.Nonlocal(names=given):
                shared |= set(given)
            case ast.Name(ctx=ast.Store()):
                names.add(inner.id)
        stack += ast.iter_child_nodes(inner)
    return frozenset(names - shared)


def _decorators(node: FunctionNode | ast.Module) -> tuple[ast.expr, ...]:
    return () if isinstance(node, ast.Module) else tuple(node.decorator_list)


def _is_async(node: FunctionNode) -> bool:
    return isinstance(node, ast.AsyncFunctionDef)


def _is_main(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id="__name__")):
            return True
    return False
