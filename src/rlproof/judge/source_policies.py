"""Which policy the old and the reference log-probs of a loop come from."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rlproof.judge.source_parts import copied_for_a_buffer, copied_in_parts
from rlproof.judge.source_said import Said, brief, tell, undecided
from rlproof.read.loop.events import Event, Kind
from rlproof.read.loop.passes import Difference, Forward, said
from rlproof.read.loop.reading import FileRead, LoopRead
from rlproof.read.loop.repeats import UPDATES, epoch_loop, rounds, statement_in
from rlproof.read.loop.trace import Key, Loop, Step
from rlproof.read.names import words
from rlproof.read.targets import Script

_OLD = {"old", "behavior", "behaviour", "behave", "prev", "previous", "sampling", "rollout", "prox"}
_REF = {"ref", "reference", "base", "sft", "init", "initial", "frozen", "refs"}
_REFERENCE = {"ref", "reference", "refs", "sft"}
_SWITCHES = ("disable_adapter", "set_adapter", "enable_adapter", "swap_", "load_state_dict")
_COPIES = {"load_state_dict", "copy_", "lerp_", "deepcopy"}


def pair_of(loop: LoopRead, difference: Difference) -> tuple[Forward, Forward] | None:
    """The forward pass that carries the gradient, and the one that does not."""
    passes = []
    for trail in difference.trails:
        if len(trail) != 1:
            return None
        ((number, stopped),) = trail
        if number < 0:
            return None
        forward = loop.passes.forwards[number]
        passes.append((forward, forward.gradient and not stopped))
    (left, left_flows), (right, right_flows) = passes
    if left_flows == right_flows:
        return None
    return (left, right) if left_flows else (right, left)


def _side(loop: LoopRead, difference: Difference) -> set[str]:
    """The words of the names on the side without gradient, through parameters."""
    flows = [
        any(not stopped and loop.passes.forwards[n].gradient for n, stopped in trail)
        for trail in difference.trails
    ]
    node = difference.left if flows[1] else difference.right
    frame = difference.step.frame
    _, outer = loop.passes.argument(frame, node)
    return set(words(said(node))) | set(words(said(outer)))


def _same_question(one: Forward, other: Forward) -> bool:
    """Whether unknown code is asked twice with arguments of the same kind."""
    names = [{k.arg for k in forward.call.keywords} for forward in (one, other)]
    return names[0] == names[1] and len(one.call.args) == len(other.call.args)


def _mixes(script: Script) -> bool:
    """Whether the file turns one model into another by other means than a `with` block."""
    return any(word in script.source.text for word in _SWITCHES)


def _updates_between(found: Sequence[Event], one: Step, other: Step) -> bool:
    low, high = sorted((one.number, other.number))
    return any(e.kind in UPDATES and low < e.step.number < high for e in found)


def old_log_probs(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """LOP001: the ratio of every update compares the policy with itself."""
    for ratio in loop.passes.ratios:
        difference = ratio.difference
        pair = pair_of(loop, difference)
        if pair is None or _side(loop, difference) & _REF:
            continue
        new, old = pair
        orientation = bool(difference.trails[0]) and _flows_left(loop, difference)
        if not orientation and not _side(loop, difference) & _OLD:
            continue  # exp(x − new) without a name is as likely a divergence
        if new.model != old.model or old.adapter or new.adapter or _mixes(script):
            continue
        if not _same_question(new, old):
            continue
        copied = new.number == old.number and _is_copy(loop, difference)
        if copied and (older := list(copied_for_a_buffer(read, loop, ratio, new))):
            yield from older
            continue
        epochs = epoch_loop(loop.passes, loop.events, old)
        if epochs is None or not new.step.inside(epochs):
            if copied:
                yield from copied_in_parts(read, loop, ratio, new)
            continue
        if _updates_between(loop.events, new.step, old.step):
            continue
        if not _is_settled(loop, difference):
            if new.number != old.number:
                reason = "a condition decides which old log-probs are taken"
                yield undecided("LOP001", ratio.step, reason)
            continue
        if new.number == old.number and not copied:
            continue
        yield from _refreshed(read, ratio.step, new, old, epochs)


def _other_side(loop: LoopRead, difference: Difference) -> ast.expr:
    """The operand through which no gradient flows."""
    return difference.right if _flows_left(loop, difference) else difference.left


def _is_settled(loop: LoopRead, difference: Difference) -> bool:
    """Whether no condition of its own stands between a value and its use."""
    use = difference.step
    todo = [(use.frame, _other_side(loop, difference))]
    seen: set[Key] = set()
    forwards = {id(f.call) for f in loop.passes.forwards}
    while todo:
        frame, node = loop.passes.argument(*todo.pop())
        for inner in _shallow(node, forwards):
            key = frame.key(inner)
            if key is None or key in seen:
                continue
            seen.add(key)
            for step, value in loop.passes.assigned.of(key):
                if step.branches != use.branches[: len(step.branches)]:
                    return False
                if value is not None:
                    todo.append((step.frame, value))
    return True


def _shallow(node: ast.expr, forwards: set[int]) -> Iterator[ast.expr]:
    """The names in an expression, but not those that a forward pass or local code is given."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute):
        return
    elif id(node) not in forwards:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from _shallow(child, forwards)


def _is_copy(loop: LoopRead, difference: Difference) -> bool:
    """Whether the old log-probs are the new ones, detached, and nothing else."""
    frame, node = loop.passes.argument(difference.step.frame, _other_side(loop, difference))
    for _ in range(4):
        match node:
            case ast.Call(func=ast.Attribute(attr="detach")):
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr="clone")):
                node = inner
            case ast.Name():
                key = frame.key(node)
                written = loop.passes.assigned.of(key) if key else []
                if len(written) != 1 or written[0][1] is None:
                    return False
                frame, node = written[0][0].frame, written[0][1]
            case _:
                return False
    return False


def _flows_left(loop: LoopRead, difference: Difference) -> bool:
    return any(not s and loop.passes.forwards[n].gradient for n, s in difference.trails[0])


def _refreshed(
    read: FileRead, ratio: Step, new: Forward, old: Forward, epochs: Loop
) -> Iterator[Said]:
    times = rounds(read.values, epochs)
    same = new.number == old.number
    source = ratio if same else statement_in(old.step, new.step)
    if times == 1:
        return
    if same and times is None:
        reason = f"the ratio is always 1, which is right if {brief(epochs)} goes round once only"
        yield undecided("LOP001", source, reason)
        return
    if not same and old.step.branches_in(epochs) != new.step.branches_in(epochs):
        return
    if not same and source.branches_in(epochs):
        yield undecided("LOP001", source, "a condition decides when old log-probs are computed")
        return
    model = new.model[1].split(":")[-1]
    often = "again and again" if times else "in every round"
    what = "are a copy of the new ones" if same else f"come from `{model}` as it is at that moment"
    yield tell(
        "LOP001",
        source,
        f"old log-probs {what}, in a loop that updates it on the same data {often}: the "
        "ratio is 1 at every update and the clip never acts (no update lies between the two)",
        "ratio 1 in every round of the loop",
        "old log-probs from before the loop",
        epochs,
        statement_in(new.step, old.step).node if not same else new.step.node,
    )


def references(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """LOP003: the reference log-probs come from the policy that is being trained."""
    del read
    seen: set[int] = set()
    for difference in loop.passes.differences:
        pair = pair_of(loop, difference)
        if pair is None or not _side(loop, difference) & _REFERENCE:
            continue
        new, ref = pair
        if not _same_question(new, ref):
            continue
        if new.model != ref.model or ref.number == new.number or ref.number in seen:
            continue
        trained = [
            around
            for around in ref.step.loops
            if any(e.kind in UPDATES and e.step.inside(around) for e in loop.events)
        ]
        if not trained or ref.adapter or new.adapter or _mixes(script):
            continue
        seen.add(ref.number)
        source = statement_in(ref.step, new.step)
        if source.branches_in(trained[0]) or not _is_settled(loop, difference):
            reason = "a condition decides whether the reference log-probs come from the policy"
            yield undecided("LOP003", source, reason)
            continue
        alias = _alias(loop, ref)
        others = [alias.node] if alias else [statement_in(new.step, ref.step).node]
        if alias:
            text = f"{brief(alias.node)} copies nothing: both names are the model that is trained"
        else:
            text = "they are computed from the model that is trained, inside of its own loop"
        yield tell(
            "LOP003",
            alias or source,
            f"the reference log-probs follow the policy: {text}; the divergence holds nothing back",
            "one model for the policy and the reference",
            "a frozen copy of the model",
            *([source.node] if alias else others),
        )


def _alias(loop: LoopRead, ref: Forward) -> Step | None:
    """The statement that makes the reference's name another one for the policy."""
    func = ref.call.func
    node = func.value if isinstance(func, ast.Attribute) and func.attr == "forward" else func
    frame, node = loop.passes.argument(ref.step.frame, node)
    key = frame.key(node)
    written = loop.passes.assigned.of(key) if key else []
    return written[0][0] if len(written) == 1 and loop.passes.root(key) != key else None


def stale_copies(script: Script, read: FileRead, loop: LoopRead) -> Iterator[Said]:
    """LOP002: old log-probs from a copy that is never renewed, or kept from the first rollout."""
    del read
    rollouts = [e for e in loop.events if e.kind is Kind.ROLLOUT]
    for ratio in loop.passes.ratios:
        pair = pair_of(loop, ratio.difference)
        if pair is None or not _side(loop, ratio.difference) & _OLD:
            continue
        new, old = pair
        around = _rollout_loop(rollouts, old)
        if around is None or not new.step.inside(around):
            continue
        if kept := _kept(loop, ratio.difference, around):
            yield _never_again(kept, around)
        elif new.model != old.model and (copy := _copied(loop, old)):
            sampled = {loop.passes.root(e.key) for e in rollouts}
            if old.model in sampled or _renewed(script, loop, old.model, copy):
                continue
            if copy.inside(around):
                continue
            yield tell(
                "LOP002",
                copy,
                f"`{old.model[1]}` is copied once, before the loop, and nothing renews it: from "
                "the second rollout on the ratio compares with a policy that did not sample",
                "old log-probs of the policy that training started from",
                "old log-probs of the policy that sampled",
                statement_in(old.step, new.step).node,
                around,
            )


def _rollout_loop(rollouts: Sequence[Event], forward: Forward) -> Loop | None:
    """The innermost loop that makes new rollouts around a forward pass."""
    found = [x for x in forward.step.loops if any(e.step.inside(x) for e in rollouts)]
    return found[-1] if found else None


def _kept(loop: LoopRead, difference: Difference, around: Loop) -> Step | None:
    """`if old is None: old = …`, with no other assignment in the loop over rollouts."""
    frame, node = loop.passes.argument(difference.step.frame, difference.right)
    key = frame.key(node)
    written = loop.passes.assigned.of(key) if key else []
    inside = [step for step, _ in written if step.inside(around)]
    before = [value for step, value in written if not step.inside(around)]
    starts = any(isinstance(v, ast.Constant) and v.value is None for v in before)
    if len(inside) != 1 or not starts or len(before) != 1:
        return None
    branches = inside[0].branches_in(around)
    if len(branches) != 1 or branches[0].arm != 0 or not isinstance(branches[0].node, ast.If):
        return None
    match branches[0].node.test:
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return inside[0] if inside[0].frame.key(left) == key else None
    return None


def _never_again(step: Step, around: Loop) -> Said:
    return tell(
        "LOP002",
        step,
        "the old log-probs are computed for the first rollout only: nothing sets them back to "
        "None, so later rollouts are compared with the log-probs of other completions",
        "computed once",
        "computed for every rollout",
        around,
    )


def _copied(loop: LoopRead, old: Forward) -> Step | None:
    """Where a model became a copy of another: one assignment, of a deep copy."""
    written = loop.passes.assigned.of(old.model)
    if len(written) != 1 or written[0][1] is None:
        return None
    step, value = written[0]
    copies = [n for n in ast.walk(value or step.node) if isinstance(n, ast.Call)]
    names = {getattr(n.func, "attr", getattr(n.func, "id", "")) for n in copies}
    return step if "deepcopy" in names else None


def _renewed(script: Script, loop: LoopRead, model: Key, copy: Step) -> bool:
    """Whether anything else than forward passes touches the copy."""
    name = model[1].split(".")[-1]
    if any(word in script.source.text for word in ("lerp_", "copy_(", "swap_")):
        return True
    forwards = {id(f.call) for f in loop.passes.forwards}
    for step in loop.trace.steps:
        if step is copy:
            continue
        for call in step.calls():
            if id(call) in forwards or call in step.inlined:
                continue
            on = call.func.value if isinstance(call.func, ast.Attribute) else None
            given = [*call.args, *(k.value for k in call.keywords)]
            if on is not None and said(on) == name:
                if getattr(call.func, "attr", "") not in ("eval", "to", "parameters", "cuda"):
                    return True
            if any(said(g) == name for g in given):
                return True
    return False
