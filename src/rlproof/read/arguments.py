"""Calls of a loss or of advantages, and what the names of their arguments say they hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from rlproof.read.landmarks import called
from rlproof.read.loop.trace import bind
from rlproof.read.names import Slot, objective_slot, words
from rlproof.read.targets import FunctionNode, Role, Script, Target

_LOG_PROBS = {Slot.NEW, Slot.OLD, Slot.REF}
_NUMBERS = {Slot.BETA, Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH, Slot.CAP}
_FRESH = {"uuid4", "uuid1", "token_hex", "token_urlsafe", "urandom", "ObjectId", "cuid"}


@dataclass(frozen=True, slots=True)
class Given:
    """One argument of a call: the parameter, the expression, and the parts both play by name."""

    parameter: str
    node: ast.expr
    meant: Slot
    held: Slot

    @property
    def text(self) -> str:
        """`parameter=argument`, as it comes out."""
        return f"{self.parameter}={ast.unparse(self.node)}"


@dataclass(frozen=True, slots=True)
class LossCall:
    """A call of a loss of the script, inside a function of it or of the module."""

    target: Target
    node: FunctionNode
    """As it is written: a target's own node may be outlined from it."""
    call: ast.Call
    function: str
    arguments: dict[str, ast.expr]


def calls_of(script: Script, role: Role) -> Iterator[LossCall]:
    """The calls of every target with this role, with the function that they stand in."""
    inside: dict[int, str] = {}
    for node in ast.walk(script.source.tree):
        if isinstance(node, FunctionNode):
            inside |= {id(inner): node.name for inner in ast.walk(node)}
    targets = written(script, role)
    for node in ast.walk(script.source.tree):
        found = targets.get(called(node)) if isinstance(node, ast.Call) else None
        if found is None or not isinstance(node, ast.Call):
            continue
        target, function = found
        skip = isinstance(node.func, ast.Attribute) and _first(function) == "self"
        if not any(isinstance(a, ast.Starred) for a in node.args):
            given = bind(node, function, skip=skip)
            yield LossCall(target, function, node, inside.get(id(node), "<module>"), given)


def written(script: Script, role: Role) -> dict[str, tuple[Target, FunctionNode]]:
    """The targets with a role by the name of their function, with that function as written.

    A name that the file defines twice is left out.
    """
    functions: dict[str, list[FunctionNode]] = {}
    for node in ast.walk(script.source.tree):
        if isinstance(node, FunctionNode):
            functions.setdefault(node.name, []).append(node)
    found = {}
    for target in script.parts(role):
        whole = target.origin is None or target.origin.whole
        name = target.node.name if target.origin is None else target.origin.name.split(".")[-1]
        homes = functions.get(name, [target.node] if target in script.imported else [])
        if whole and len(homes) == 1:
            found[name] = target, homes[0]
    return found


def misplaced(call: LossCall) -> list[Given]:
    """Arguments that by name are another parameter's: of another kind, or exchanged.

    A reference given for old log-probs alone is a choice; a mask given for them is none.
    """
    found = list(_given(call))
    takes = {objective_slot(p.name) for p in call.target.parameters}
    kinds = {_kind(slot) for slot in takes if slot}
    wrong = [g for g in found if _kind(g.meant) != _kind(g.held) and _kind(g.held) in kinds]
    pairs = {(g.meant, g.held) for g in found if g.meant is not g.held}
    swapped = [g for g in found if g not in wrong and (g.held, g.meant) in pairs
               and g.meant is not g.held]  # fmt: skip
    return sorted([*wrong, *swapped], key=lambda g: (g.node.lineno, g.node.col_offset))


def _given(call: LossCall) -> Iterator[Given]:
    for parameter in call.target.parameters:
        node = call.arguments.get(parameter.name)
        name = _name(node) if node is not None else ""
        meant, held = objective_slot(parameter.name), _holds(name)
        if node is None or not name or name == parameter.name or meant is not parameter.slot:
            continue
        if meant is not None and held is not None and _kind(meant) and _kind(held):
            yield Given(parameter.name, node, meant, held)


def _holds(name: str) -> Slot | None:
    """What a name says, where it says one thing only."""
    slot, parts = objective_slot(name), set(words(name))
    mixed = parts & {"mask", "masks", "masked", "weights", "weight", "norm", "and", "or"}
    return None if mixed and slot is not Slot.MASK else slot


def _kind(slot: Slot) -> str:
    if slot in _LOG_PROBS:
        return "log-probs"
    if slot in _NUMBERS:
        return "number"
    return str(slot) if slot in (Slot.ADVANTAGES, Slot.MASK) else ""


def _name(node: ast.expr) -> str:
    """The last name of a variable, an attribute or an entry by key."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
    return ""


def _first(node: FunctionNode) -> str:
    args = [*node.args.posonlyargs, *node.args.args]
    return args[0].arg if args else ""


def ignored_masks(script: Script, call: LossCall) -> Iterator[tuple[str, str]]:
    """Masks that are given, and read only under a switch that no call of the script sets."""
    args = call.node.args
    positional = [a.arg for a in (*args.posonlyargs, *args.args)]
    defaults = dict(zip(positional[::-1], args.defaults[::-1], strict=False))
    defaults |= {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d}
    off = [n for n, d in defaults.items() if isinstance(d, ast.Constant) and d.value is False]
    for name in call.arguments:
        for switch in off if objective_slot(name) is Slot.MASK and name not in off else []:
            if _only_under(call.node, name, switch):
                if switch not in call.arguments and not _is_set(script, switch):
                    yield name, switch


def _is_set(script: Script, name: str) -> bool:
    """Whether any call gives something under this name, `partial(loss, name=True)` too."""
    return any(isinstance(n, ast.keyword) and n.arg in (name, None)
               for n in ast.walk(script.source.tree))  # fmt: skip


def _only_under(function: FunctionNode, name: str, switch: str) -> bool:
    """Whether every use of a name stands where a bare switch is true."""
    covered: set[int] = set()
    for node in ast.walk(function):
        match node:
            case ast.IfExp(test=ast.Name(id=test), body=body) if test == switch:
                covered |= {id(n) for n in ast.walk(body)}
            case ast.If(test=ast.Name(id=test), body=statements) if test == switch:
                covered |= {id(n) for s in statements for n in ast.walk(s)}
    uses = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name]
    return bool(uses) and all(id(n) in covered for n in uses)


def own_keys(script: Script, call: LossCall) -> ast.stmt | None:
    """Where the keys of groups are made, one that is new for every row; None if they may agree."""
    ids, rewards = call.target.parameter(Slot.GROUP_IDS), call.target.parameter(Slot.REWARDS)
    if ids is None or rewards is None:
        return None
    body = _function(script, call)
    keys, made = _resolved(body, call.arguments.get(ids.name))
    values, _ = _resolved(body, call.arguments.get(rewards.name))
    walked = _walked(keys, fresh=True)
    return made if walked and walked == _walked(values, fresh=False) else None


def _function(script: Script, call: LossCall) -> ast.AST:
    around: ast.AST = script.source.tree
    for node in ast.walk(script.source.tree):
        if isinstance(node, FunctionNode) and any(n is call.call for n in ast.walk(node)):
            around = node
    return around


def _resolved(body: ast.AST, node: ast.expr | None) -> tuple[ast.expr | None, ast.stmt | None]:
    """The expression behind a name that is assigned once, and the statement."""
    if not isinstance(node, ast.Name):
        home = (s for s in ast.walk(body) if isinstance(s, ast.stmt) and not hasattr(s, "body"))
        return node, next((s for s in home if any(n is node for n in ast.walk(s))), None)
    stores = [n for n in ast.walk(body) if isinstance(n, ast.Name) and n.id == node.id
              and isinstance(n.ctx, ast.Store)]  # fmt: skip
    if len(stores) == 1:
        for statement in ast.walk(body):
            if isinstance(statement, ast.Assign) and statement.targets == stores:
                return statement.value, statement
    return None, None


def _walked(node: ast.expr | None, *, fresh: bool) -> str:
    """What a comprehension walks over, row by row, if its entries are new each time, or any."""
    while isinstance(node, ast.Call) and node.args and not isinstance(node.args[0], ast.Starred):
        node = node.args[0]  # torch.tensor([…]), np.array([…])
    match node:
        case ast.ListComp(elt=elt, generators=[ast.comprehension(iter=over, ifs=[])]):
            names = {called(n) for n in ast.walk(elt) if isinstance(n, ast.Call)}
            if not fresh or names & _FRESH:
                return ast.unparse(over)
    return ""
