"""Whether gradients are cleared, scaled and applied as the loop means it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.judge.source_said import Said, tell, undecided
from rlproof.read.landmarks import called
from rlproof.read.loop.events import Event, Kind, constructed
from rlproof.read.loop.passes import said
from rlproof.read.loop.reading import FileRead, LoopRead
from rlproof.read.loop.repeats import same_every_round
from rlproof.read.loop.rows import groups_of
from rlproof.read.loop.rows import rows as rows_of
from rlproof.read.loop.sign import Signs
from rlproof.read.loop.trace import Frame, Loop, Step
from rlproof.read.loop.updates import (
    Loss,
    accumulates,
    before,
    between,
    innermost,
    is_accumulation,
    is_every_so_often,
    is_row_count,
    loss_of,
    summed,
    token_mean,
)
from rlproof.read.targets import Script

_GRADIENT_BY_HAND = re.compile(r"\.grad\s*=\s*(?!None|=)")
_MANAGED = ("accelerat", "deepspeed", "fabric", "lightning", "colossalai", "megatron", "fsdp")


def _is_managed(script: Script) -> bool:
    """Whether a framework may clear, scale or skip by itself."""
    text = script.source.text.lower()
    return any(word in text for word in _MANAGED)


def clearing(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """LOP005: gradients of earlier updates are still there, or are gone too soon."""
    del read
    if _is_managed(script):
        return
    own = {ast.unparse(target) for target, _ in constructed(script.source.tree)}
    for event in loop.events:
        if event.kind is not Kind.STEP or not isinstance(event.node, ast.Call):
            continue
        on = event.node.func.value if isinstance(event.node.func, ast.Attribute) else None
        if on is None or ast.unparse(on) not in own or not event.step.loops:
            continue  # made elsewhere: what its step does is not known
        if any(_is_fresh(loop, event, around) for around in event.step.loops):
            continue
        if "zero_grad" not in script.source.text and ".grad = None" not in script.source.text:
            yield from _never(script, loop, event)
        else:
            if not _GRADIENT_BY_HAND.search(script.source.text):
                yield from _misplaced(loop, event)


def _is_fresh(loop: LoopRead, event: Event, around: Loop) -> bool:
    """Whether the optimizer is made anew in a loop: its model may be as well."""
    written = loop.passes.assigned.of(event.key) if event.key else []
    return any(step.inside(around) for step, _ in written)


def _never(script: Script, loop: LoopRead, step: Event) -> Iterator[Said]:
    passed = before(loop.events, Kind.BACKWARD, step)
    text = script.source.text
    if passed is None or ".grad.zero_" in text or "grad.data.zero" in text or "set_to_none" in text:
        return
    if name := _given_away(loop, step):
        reason = f"`{name}` is given the optimizer, and may clear the gradients"
        yield undecided("LOP005", step.step, reason)
        return
    yield tell(
        "LOP005",
        step.step,
        "no statement of this file clears the gradients: every backward pass adds to all the "
        "earlier ones, and every update applies their sum again",
        "gradients of all updates so far",
        "`optimizer.zero_grad()` once for every update",
        passed.step.node,
    )


def _given_away(loop: LoopRead, event: Event) -> str | None:
    """Unknown code that gets the optimizer inside of the loop."""
    for step in loop.trace.steps:
        for call in step.calls() if step.loops and event.key else ():
            given = [*call.args, *(k.value for k in call.keywords)]
            if call not in step.inlined and any(step.frame.key(g) == event.key for g in given):
                if called(call) not in ("step", "unscale_", "print", "save"):
                    return called(call)
    return None


def _misplaced(loop: LoopRead, step: Event) -> Iterator[Said]:
    """The order within one round: backward, clear, step; or a clearing of another rhythm."""
    clears = [e for e in loop.events if e.kind is Kind.CLEAR and e.key == step.key]
    updates = [e for e in loop.events if e.kind is Kind.STEP and e.key == step.key]
    if len(clears) != 1 or len(updates) != 1 or step.key is None:
        return
    (clear,) = clears
    backward = [e for e in loop.events if e.kind is Kind.BACKWARD]
    home = innermost(step.step)
    if home is None or len(backward) != 1 or not clear.step.loops:
        return
    (passed,) = backward
    if clear.step.frame is not step.step.frame or passed.step.frame is not clear.step.frame:
        return
    yield from _cleared_before_use(loop, passed, clear, step)
    yield from _other_rhythm(passed, clear, step)


def _cleared_before_use(loop: LoopRead, passed: Event, clear: Event, step: Event) -> Iterator[Said]:
    last = before(loop.events, Kind.CLEAR, step)
    if last is not clear or not between([passed], Kind.BACKWARD, _start(loop), clear):
        return
    here = clear.step.branches == step.step.branches and clear.step.loops == step.step.loops
    around = passed.step.loops[: len(clear.step.loops)] == clear.step.loops
    if here and around:
        yield tell(
            "LOP005",
            clear.step,
            "the gradients are cleared between the backward pass and the update, so the update "
            "applies none",
            "backward, clear, update",
            "clear, backward, update",
            passed.step.node,
            step.step.node,
        )


def _start(loop: LoopRead) -> Event:
    first = loop.trace.steps[0]
    return Event(Kind.ROLLOUT, first, ast.Pass(lineno=0, col_offset=0), None)


def _other_rhythm(passed: Event, clear: Event, step: Event) -> Iterator[Said]:
    home = innermost(passed.step)
    if home is None or passed.step.branches_in(home):
        return
    counted = any(map(is_every_so_often, step.step.branches_in(home)))
    clears = any(map(is_every_so_often, clear.step.branches_in(home)))
    inside = step.step.inside(home)
    each = clear.step.inside(home) and not clear.step.branches_in(home)
    order = clear.step.number < passed.step.number < step.step.number
    if innermost(clear.step) is not home:
        return
    if each and ((inside and counted) or (not inside and order)):
        yield tell(
            "LOP005",
            clear.step,
            "the gradients are cleared before every micro-batch, but applied only after several: "
            "all but the last one are lost",
            "gradients of the last micro-batch",
            "cleared once for every update",
            step.step.node,
        )
    elif clears and inside and not step.step.branches_in(home):
        yield tell(
            "LOP005",
            clear.step,
            "every micro-batch is applied at once, but the gradients are cleared only after "
            "several: earlier micro-batches are applied again and again",
            "gradients of earlier updates",
            "update and clearing under the same condition",
            step.step.node,
        )


def directions(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """LOP007: the sign of a loss is turned round on its way to the update."""
    del read
    signs = Signs(loop.passes)
    maximised = [call for _, call in constructed(script.source.tree) if _maximises(call)]
    for event in loop.events:
        loss = loss_of(event) if event.kind is Kind.BACKWARD else None
        if loss is None:
            continue
        sign = signs.of(loss, event.step)
        match loss:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id=name)) if sign == 1:
                if "loss" in name.lower():
                    yield _ascending(event, f"`{name}` is already −ρ·A, and its negative is used")
        if sign == -1 and maximised and len(constructed(script.source.tree)) == len(maximised):
            text = "the optimizer maximises, and what it is given is a loss, −ρ·A"
            yield _ascending(event, text, maximised[0])
        if sign == -1:
            yield from _by_hand(loop, event)


def _maximises(call: ast.Call) -> bool:
    return any(
        k.arg == "maximize" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in call.keywords
    )


def _ascending(event: Event, text: str, *others: ast.AST) -> Said:
    return tell(
        "LOP007",
        event.step,
        f"the update climbs the loss: {text}; tokens with a positive advantage become less likely",
        "probability of good tokens goes down",
        "goes up",
        *others,
    )


def _by_hand(loop: LoopRead, event: Event) -> Iterator[Said]:
    """`p.data += lr * p.grad` after the backward pass of a loss."""
    for step in loop.trace.steps:
        match step.node:
            case ast.AugAssign(op=ast.Add(), target=target, value=value):
                grown = ast.unparse(target).removesuffix(".data")
                if f"{grown}.grad" in ast.unparse(value) and "-" not in ast.unparse(value):
                    if step.number > event.step.number:
                        yield tell(
                            "LOP007",
                            step,
                            "the gradient of a loss, −ρ·A, is added to the parameters: the update "
                            "climbs the loss",
                            "parameters + rate · gradient",
                            "parameters − rate · gradient",
                            event.step.node,
                        )


def accumulation(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """AGG001, AGG002: what the loss of a micro-batch is divided by."""
    for event in loop.events:
        if event.kind is not Kind.BACKWARD:
            continue
        loss = Loss(loop.passes, event)
        yield from _twice(script, read, event, loss)
        found = accumulates(event, loop.events)
        if found is not None and loss.core is not None and loss.certain:
            yield from _mean_of_means(script, read, loop, event, loss, found[0])


def _twice(script: Script, read: FileRead, event: Event, loss: Loss) -> Iterator[Said]:
    by = [d for d in loss.divisions if is_accumulation(d.divisor)]
    if not by:
        return
    fixed = read.values.number(by[0].divisor)
    if fixed is not None and fixed.value == 1:
        return
    names = [said(loss.passes.argument(d.frame, d.divisor)[1]) for d in by]
    if len(by) > 1 and names[0] == names[1]:
        yield tell(
            "AGG002",
            event.step,
            f"the loss is divided by `{names[0]}` twice on its way to the backward pass",
            f"1/{names[0]}²",
            f"1/{names[0]}",
            by[0].node,
            by[1].node,
        )
        return
    if framework := _accelerator(script, event):
        steps = framework.value
        written = read.values.number(steps)
        if written is not None and written.value == 1:
            return
        yield tell(
            "AGG002",
            event.step,
            "`accelerator.backward` divides by gradient_accumulation_steps itself, and the loss "
            f"is divided by `{names[0]}` before",
            "divided twice",
            "divided once",
            by[0].node,
            steps,
        )


def _accelerator(script: Script, event: Event) -> ast.keyword | None:
    """The number of steps that Accelerate is told, where its backward pass is the one taken."""
    on = event.node.func.value if isinstance(event.node, ast.Call) and isinstance(
        event.node.func, ast.Attribute) else None  # fmt: skip
    if (
        on is None
        or "accelerator" not in said(on).lower()
        or "deepspeed" in script.source.text.lower()
    ):
        return None
    made = [n for n in ast.walk(script.source.tree)
            if isinstance(n, ast.Call) and called(n) == "Accelerator"]  # fmt: skip
    if len(made) != 1:
        return None
    return next((k for k in made[0].keywords if k.arg == "gradient_accumulation_steps"), None)


def _mean_of_means(
    script: Script, read: FileRead, loop: LoopRead, event: Event, loss: Loss, micro: Loop
) -> Iterator[Said]:
    if loss.core is None or "num_items_in_batch" in script.source.text:
        return
    node, frame, step = loss.core
    home = _outside_of_helpers(step)
    mask = token_mean(node, summed(node, loop.passes, frame))
    if mask is None or same_every_round(loop.passes, mask, frame, micro):
        return
    # a divisor that knows all micro-batches would put it right again
    others = [d for d in loss.divisions if not is_accumulation(d.divisor)]
    counted = [d for d in others if not _is_count(_named(loop, d.frame, d.divisor))]
    if counted or _rescales(script):
        return
    rows = rows_of(read.values, loop.passes, micro)
    if rows is None and (groups := groups_of(loop.passes, micro)):
        yield tell(
            "AGG001",
            home,
            "each micro-batch holds whole groups and is averaged over its own tokens; the means "
            "are then added up as if they had equally many: the gradient depends on how the batch "
            "is split",
            "a mean of means",
            "tokens of all micro-batches in the divisor",
            groups,
            event.step.node,
            severity=Severity.ERROR,
        )
    elif rows is None and loss.shares:
        yield tell(
            "AGG001",
            home,
            "each micro-batch is averaged over its own tokens, and its mean is weighted by its "
            "share of the rows: with more than one row in it, the gradient depends on how the "
            "batch is split",
            "means of tokens, weighted by rows",
            "tokens of all micro-batches in the divisor",
            loss.shares[0],
            event.step.node,
            severity=Severity.WARNING,
        )
    elif rows is None:
        reason = "whether a micro-batch holds more than one row is not fixed in the source"
        yield undecided("AGG001", event.step, reason)
    elif rows > 1:
        yield tell(
            "AGG001",
            home,
            f"each micro-batch of {rows} rows is averaged over its own tokens, and the means are "
            "then added up as if they had equally many: the gradient depends on how the batch is "
            "split",
            "a mean of means",
            "tokens of all micro-batches in the divisor",
            micro,
            event.step.node,
            severity=Severity.ERROR,
        )


def _outside_of_helpers(step: Step) -> Step:
    """The statement that calls a function of one line, such as a masked mean."""
    while step.frame.site is not None and not isinstance(step.frame.node, ast.Module):
        body = [n for n in step.frame.node.body if not _is_docstring(n)]
        if len(body) > 1:
            break
        step = step.frame.site
    return step


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _named(loop: LoopRead, frame: Frame, node: ast.expr) -> ast.expr:
    """What a name was assigned, where that was once."""
    key = frame.key(node) if isinstance(node, ast.Name) else None
    written = loop.passes.assigned.of(key) if key else []
    value = written[0][1] if len(written) == 1 else None
    return value if value is not None and not isinstance(value, ast.Starred) else node


def _is_count(node: ast.expr) -> bool:
    """`len(micro_batches)`, or `len(rows) // size`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
        node = node.left
    return is_row_count(node)


def _rescales(script: Script) -> bool:
    """Whether gradients are multiplied or divided afterwards."""
    text = script.source.text
    return any(word in text for word in (".grad.div_", ".grad /=", ".grad.mul_", ".grad *="))
