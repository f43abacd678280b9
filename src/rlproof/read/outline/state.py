"""What one lowering knows so far: variables, parameters, replaced nodes, choices, lacks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rlproof.read.names import Slot, ratio_slot
from rlproof.read.outline.neutral import COUNTS, NEUTRAL, ROW_COUNTS
from rlproof.read.outline.options import listed
from rlproof.read.outline.scope import Scope, constant_of, is_literal
from rlproof.read.outline.syntax import constant_at, name_at
from rlproof.read.outline.values import ROLES, Value

SlotOf = Callable[[str], Slot | None]
Choices = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Input:
    """A parameter of the outlined function: its slot, where its value came from, its default."""

    name: str
    slot: Slot
    key: str
    line: int
    computed: bool
    """Whether the script computes it on the way, rather than being given it."""
    default: ast.expr | None = None


class Stop(ast.Pass):
    """Stands where the script computes something that the outlined function is given."""

    names: frozenset[str] = frozenset()


@dataclass(slots=True)
class State:
    """The state of lowering one region under one choice of settings."""

    scope: Scope
    slot_of: SlotOf
    choices: Choices
    stored: frozenset[str]
    """Names that the region assigns."""
    containers: frozenset[str]
    """Names whose attributes or keys the region reads."""
    owner: str | None = None
    sizes: bool = False
    """Whether the module's constant for the group size is a parameter: for advantages it is."""
    computed: tuple[ast.expr, ...] = ()
    """Values that the region computes, whatever they are assigned to."""
    env: dict[str, Value] = field(default_factory=dict)
    swaps: dict[ast.AST, ast.expr] = field(default_factory=dict)
    inputs: dict[str, Input] = field(default_factory=dict)
    arguments: dict[str, ast.arg] = field(default_factory=dict)
    defaults: dict[str, ast.expr | None] = field(default_factory=dict)
    switches: dict[str, list[Any]] = field(default_factory=dict)
    chooses: bool = False
    """Whether a setting that is a string was given a value."""
    named: set[str] = field(default_factory=set)
    """Settings of which the file gives a value."""
    lacking: dict[ast.stmt, str] = field(default_factory=dict)
    helpers: dict[str, tuple[list[ast.stmt], Value]] = field(default_factory=dict)
    counts: set[str] = field(default_factory=set)
    locals: dict[str, str] = field(default_factory=dict)
    """The local variable, or parameter, that stands for a path that was assigned to."""
    inside: list[str] = field(default_factory=list)
    """Methods being lowered, so that recursion ends."""

    def leaf(self, key: str, node: ast.expr, default: ast.expr | None = None) -> Value:
        """A value that comes from outside: a role, a choice, a default, a neutral setting."""
        name = key.rpartition(".")[2]
        if key in self.choices:
            return self._constant(self.choices[key], node, key)
        slot = self.slot_of(key) if "." in key else None
        slot = slot or (None if name in NEUTRAL else self.slot_of(name))
        if slot in ROLES and isinstance(default, ast.Constant) and default.value is not None:
            slot = None  # a switch, or a number
        if slot in (None, Slot.NEW) and key in self.arguments and not self.sizes:
            slot = ratio_slot(name) or slot
        if slot is Slot.OLD and self._is_another_sampler(key):
            return self._constant(None, node, None)
        if slot is not None:
            return self.given(key, name, slot, node, self._default(name, default))
        if name in (COUNTS | ROW_COUNTS) and default is None:
            self.counts.add(name)
            self.swaps[node] = name_at(name, node)
            return Value(frozenset({Slot.MASK}))
        if name in NEUTRAL:
            return self._constant(NEUTRAL[name], node, None)
        if options := listed(self.arguments.get(key)):
            return self.option(key, options, node, default)
        written = self._default(name, default)
        if written is not None and key not in self.containers:
            try:
                return self._constant(constant_of(written), node, key)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                pass
        line = getattr(node, "lineno", 0)
        reason = f"needs `{key}` (line {line}), whose meaning is not recognised"
        return Value(problem=reason, leaf=key)

    def _is_another_sampler(self, key: str) -> bool:
        """Log-probs of the engine that sampled, given beside the old ones for a correction."""
        default = self.defaults.get(key)
        if not isinstance(default, ast.Constant) or default.value is not None:
            return False
        olds = [n for n in self.arguments if n != key and self.slot_of(n) is Slot.OLD]
        return any(self.defaults.get(name) is None for name in olds)

    def option(
        self, key: str, options: list[str], node: ast.expr, default: ast.expr | None
    ) -> Value:
        """One of the strings that an annotation lists: the default, or the first."""
        named = default.value if isinstance(default, ast.Constant) else None
        if named in options:
            self.named.add(key)
            options = [named, *(o for o in options if o != named)]
        self.switch(key, options)
        chosen = self.choices.get(key, self.switches[key][0])
        return self._constant(chosen, node, key)

    def _default(self, name: str, default: ast.expr | None) -> ast.expr | None:
        """The default written beside it, unless it is None and the file has a better one."""
        nothing = default is None or (isinstance(default, ast.Constant) and default.value is None)
        return self.scope.settings.get(name, default) if nothing else default

    def _constant(self, value: Any, node: ast.expr, leaf: str | None) -> Value:
        self.chooses = self.chooses or (isinstance(value, str) and leaf is not None)
        self.swaps[node] = constant_at(value, node)
        return Value(const=value, leaf=leaf)

    def given(
        self, key: str, name: str, slot: Slot, node: ast.expr, default: ast.expr | None
    ) -> Value:
        """A parameter of the outlined function, read at a node."""
        own = self.free_name(key, name)
        self.swaps[node] = name_at(own, node)
        default = default if default is not None and is_literal(default) else None
        self.note(Input(own, slot, key, getattr(node, "lineno", 0), False, default))
        made_of = {Slot.NEW, Slot.OLD} if slot in (Slot.RATIO, Slot.LOG_RATIO) else {slot}
        return Value(frozenset(made_of), leaf=key)

    def note(self, found: Input) -> None:
        """Remember a parameter; the first note of a name stands."""
        self.inputs.setdefault(found.name, found)

    def free_name(self, key: str, name: str) -> str:
        """A name for the parameter that the region does not use for something else."""
        for known in self.inputs.values():
            if known.key == key and not known.computed:
                return known.name
        plain = "".join(c if c.isalnum() else "_" for c in name) or "_"
        plain = f"_{plain}" if plain[0].isdigit() else plain
        longer = "_".join(key.split(".")) if key.replace(".", "").isidentifier() else plain
        taken = set(self.inputs) | (self.stored if "." in key else set())
        for candidate in (plain, longer, *(f"{plain}_{i}" for i in range(2, 99))):
            if candidate not in taken:
                return candidate
        return f"{plain}_{len(taken)}"

    def local(self, path: str) -> str:
        """The local variable of a path that was assigned to."""
        return self.locals.setdefault(path, "".join(c if c.isalnum() else "_" for c in path))

    def default_of(self, node: ast.expr) -> ast.expr | None:
        """The default of what an expression stands for, if it is a constant or a parameter."""
        swap = self.swaps.get(node, node)
        if isinstance(swap, ast.Constant):
            return swap
        known = self.inputs.get(swap.id) if isinstance(swap, ast.Name) else None
        return known.default if known else None

    def switch(self, key: str, values: Sequence[Any]) -> None:
        """Note values that a setting is compared with."""
        known = self.switches.setdefault(key, [])
        for value in values:
            if value not in known:
                known.append(value)

    @contextmanager
    def branch(self) -> Iterator[dict[str, Value]]:
        """Work on a copy of the variables; what they then are is handed out."""
        outer = self.env
        self.env = dict(outer)
        inner = self.env
        try:
            yield inner
        finally:
            self.env = outer
