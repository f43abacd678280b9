"""What a call does to the training: a backward pass, an update, a rollout, a forward pass.

Only spellings that leave no doubt are known. Everything else is a call like any other.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import StrEnum

from rlproof.read.landmarks import called
from rlproof.read.loop.trace import Key, Step, Trace
from rlproof.read.names import words

_OPTIMIZERS = {"optimizer", "optim", "opt", "optimiser"}
_ENGINES = {"engine", "deepspeed", "ds"}
_SCHEDULERS = {"scheduler", "sched", "schedule"}
_MODELS = {"model", "policy", "actor", "llm", "net", "network", "student", "lm", "engine"}
_CONSTRUCTORS = {
    "AdamW", "Adam", "SGD", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax", "AdamW8bit",
    "Adam8bit", "PagedAdamW8bit", "PagedAdamW", "PagedAdamW32bit", "Adafactor", "Lion",
}  # fmt: skip
_SAMPLERS = {"generate", "generate_completions", "sample_completions"}
_EVALUATION = {
    "eval", "evaluate", "evaluation", "val", "valid", "validate", "validation", "test", "demo",
    "infer", "inference", "predict", "benchmark", "chat", "preview", "warmup", "sanity", "baseline",
}  # fmt: skip


class Kind(StrEnum):
    """The kinds of events."""

    BACKWARD = "backward pass"
    STEP = "optimizer step"
    CLEAR = "gradients cleared"
    SCHEDULE = "scheduler step"
    ROLLOUT = "rollout"
    ENGINE = "engine step"


@dataclass(frozen=True, slots=True)
class Event:
    """One such call, and the step that it is a part of."""

    kind: Kind
    step: Step
    node: ast.AST
    key: Key | None
    """The optimizer, engine or model that it is called on."""


def events(trace: Trace) -> list[Event]:
    """All events of a trace, in order."""
    found: list[Event] = []
    for step in trace.steps:
        for call in step.calls():
            kind = None if call in step.inlined else _kind(call)
            if kind is not None:
                on = call.func.value if isinstance(call.func, ast.Attribute) else None
                found.append(Event(kind, step, call, step.frame.key(on) if on else None))
        if _clears_by_hand(step.node):
            found.append(Event(Kind.CLEAR, step, step.node, None))
    return found


def _kind(call: ast.Call) -> Kind | None:
    name = called(call)
    receiver = _last(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    parts = set(words(receiver))
    match name:
        case "backward" | "manual_backward":
            return Kind.BACKWARD if isinstance(call.func, ast.Attribute) else None
        case "zero_grad":
            return Kind.CLEAR
        case "step" if parts & _SCHEDULERS:
            return Kind.SCHEDULE
        case "step" if parts & _OPTIMIZERS or parts & {"scaler"}:
            return Kind.STEP
        case "step" if parts & (_ENGINES | _MODELS):
            return Kind.ENGINE
        case "optimizer_step":
            return Kind.ENGINE
    return Kind.ROLLOUT if name in _SAMPLERS else None


def _last(node: ast.expr) -> str:
    """The last part of a dotted name, an index left out."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _clears_by_hand(node: ast.stmt) -> bool:
    """`p.grad = None`, or a gradient zeroed in place."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr="grad")]):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Attribute(attr="grad"), attr=a))):
            return a in ("zero_", "detach_")
    return False


def constructed(tree: ast.Module) -> list[tuple[ast.expr, ast.Call]]:
    """(target, call) of every optimizer that the file makes."""
    return [
        (target, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if called(node.value) in _CONSTRUCTORS
    ]


def is_constructor(name: str) -> bool:
    """Whether a name is that of an optimizer's class."""
    return name in _CONSTRUCTORS


def is_model(name: str) -> bool:
    """Whether a name says that it holds a policy or another network."""
    return bool(set(words(name)) & _MODELS)


def is_evaluation(*names: str) -> bool:
    """Whether a name says that this is not a part of training."""
    return any(set(words(name)) & _EVALUATION for name in names)


def switches_gradient_off(contexts: tuple[ast.expr, ...]) -> bool:
    """Whether a `with` block or a decorator around it is `no_grad` or `inference_mode`."""
    names = {getattr(n, "attr", getattr(n, "id", "")) for c in contexts for n in ast.walk(c)}
    return bool(names & {"no_grad", "inference_mode"})


def switches_adapter(contexts: tuple[ast.expr, ...]) -> bool:
    """Whether a `with` block may make the model another one."""
    for context in contexts:
        for node in ast.walk(context):
            name = getattr(node, "attr", getattr(node, "id", ""))
            if set(words(str(name))) & {"adapter", "adapters", "lora", "reference", "ref", "ema"}:
                return True
    return False
