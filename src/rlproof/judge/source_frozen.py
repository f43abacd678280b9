"""Whether the parameters that an optimizer is given can be trained at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlproof.judge.source_said import Said, brief, tell
from rlproof.read.landmarks import called
from rlproof.read.loop.events import is_constructor
from rlproof.read.loop.reading import FileRead, LoopRead
from rlproof.read.loop.trace import Key, Step
from rlproof.read.targets import Script

_THAWS = re.compile(r"requires_grad_\(\s*(True)?\s*\)|requires_grad\s*=\s*(True|[a-z])")
_ADDS = re.compile(r"peft|lora|adapter|unfreeze", re.IGNORECASE)


def frozen(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """LOP006: everything is frozen under another name of the model that the optimizer is given.

    Only an alias counts: a model that is frozen by its own name may be meant to be, with layers
    on top of it that nothing shows here.
    """
    del read
    if _THAWS.search(script.source.text) or _ADDS.search(script.source.text):
        return
    for step, key in _frozen_models(loop):
        model = loop.passes.root(key)
        alias = _alias(loop, key)
        made = [s for s, k in _optimized(loop) if loop.passes.root(k) == model]
        if model is None or alias is None or not made:
            continue
        if any(s.number > alias.number for s, _ in loop.passes.assigned.of(model)):
            continue
        yield tell(
            "LOP006",
            alias,
            f"{brief(alias.node)} copies nothing, so that freezing the one freezes the other: "
            "no parameter that the optimizer is given can be trained",
            "all parameters frozen",
            "a copy of the model to freeze",
            step.node,
            made[0].node,
        )


def _frozen_models(loop: LoopRead) -> Iterator[tuple[Step, Key]]:
    """`for p in x.parameters(): p.requires_grad = False`, or `x.requires_grad_(False)`."""
    for step in loop.trace.steps:
        if step.branches:
            continue
        match step.node:
            case ast.For(iter=ast.Call(func=ast.Attribute(value=on, attr="parameters")), body=body):
                if len(body) == 1 and _freezes(body[0]) and (key := step.frame.key(on)):
                    yield step, key
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=on, attr="requires_grad_"),
                    args=[ast.Constant(value=False)],
                )
            ):
                if key := step.frame.key(on):
                    yield step, key


def _freezes(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(
            targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=False)
        ):
            return True
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(attr="requires_grad_"), args=[ast.Constant(value=False)]
            )
        ):
            return True
    return False


def _optimized(loop: LoopRead) -> Iterator[tuple[Step, Key]]:
    """Every model whose parameters are given to an optimizer."""
    for step in loop.trace.steps:
        for call in step.calls():
            if not is_constructor(called(call)):
                continue
            for node in ast.walk(call):
                match node:
                    case ast.Call(func=ast.Attribute(value=on, attr="parameters")):
                        if key := step.frame.key(on):
                            yield step, key


def _alias(loop: LoopRead, key: Key) -> Step | None:
    """The statement that makes a name another one for a model."""
    written = loop.passes.assigned.of(key)
    return written[0][0] if len(written) == 1 and loop.passes.root(key) != key else None
