"""Parts of one rollout, one after the other, with updates between them.

Behind the first update the rest of the rollout is from an older policy. A ratio that is made of the
new log-probs and a copy of them is 1 there as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.faults.model import Severity
from rlproof.judge.source_said import Said, tell
from rlproof.read.landmarks import CLIPPERS, called
from rlproof.read.loop.events import Kind
from rlproof.read.loop.passes import Forward, Passes, Ratio, said
from rlproof.read.loop.reading import FileRead, LoopRead
from rlproof.read.loop.repeats import UPDATES, rounds
from rlproof.read.loop.trace import Loop, Step
from rlproof.read.loop.updates import innermost, is_every_so_often
from rlproof.read.loop.values import Values
from rlproof.read.names import words

_BUFFERS = {"buffer", "replay", "queue", "store", "pool"}
_AGES = {"age", "staleness", "stale", "lag", "delay"}
_WRAPS = {"enumerate", "tqdm", "list", "zip", "tuple", "reversed"}


def copied_in_parts(read: FileRead, loop: LoopRead, ratio: Ratio, new: Forward) -> Iterator[Said]:
    """LOP001: the old log-probs are a copy of the new ones, and updates come between the parts.

    Only with a clip, which says that the ratio is meant to move, and only where the source fixes
    how many parts there are and after how many of them comes an update.
    """
    parts = innermost(new.step)
    if parts is None or not _samples_around(loop, parts, new.step):
        return
    updates = [e for e in loop.events if e.kind in UPDATES and e.step.inside(parts)]
    if len(updates) != 1 or not _clips(loop, parts):
        return
    count = _count(read.values, loop.passes, parts)
    every = _rhythm(read.values, updates[0].step, parts)
    if count is None or every is None or every >= count:
        return
    source = _source(loop.passes, ratio)
    yield tell(
        "LOP001",
        source,
        f"old log-probs are a copy of the new ones, for {count} parts of one rollout with an "
        f"update after every {every}: behind the first update the tokens are from an older "
        "policy, and the ratio is 1 all the same, so that the clip never acts",
        "ratio 1 for parts that an older policy sampled",
        "old log-probs from before the loop over the parts",
        parts,
        updates[0].step.node,
        severity=Severity.WARNING,
    )


def copied_for_a_buffer(
    read: FileRead, loop: LoopRead, ratio: Ratio, new: Forward
) -> Iterator[Said]:
    """LOP001: a copy of the new log-probs for data that, the file says, may be older.

    It says so where a buffer is asked for data of a greatest age above 0.
    """
    home = innermost(new.step)
    updates = [e for e in loop.events if home and e.kind in UPDATES and e.step.inside(home)]
    if home is None or not updates:
        return
    for step in loop.trace.steps:
        for call in step.calls() if step.inside(home) else ():
            age = _age(read.values, call)
            if age is None:
                continue
            source = _outermost(ratio.step, step)
            yield tell(
                "LOP001",
                source,
                f"old log-probs are a copy of the new ones, and data may be {age:g} updates old: "
                "the ratio is 1 whatever policy sampled them, and nothing corrects for it",
                "ratio 1 for tokens that an older policy sampled",
                "the log-probs of the policy that sampled",
                step.node,
                ratio.step.node,
                severity=Severity.WARNING,
            )
            return


def _age(values: Values, call: ast.Call) -> float | None:
    """The age that `buffer.sample(max_policy_age)` allows, if it is above 0."""
    on = call.func.value if isinstance(call.func, ast.Attribute) else None
    if on is None or not set(words(said(on))) & _BUFFERS:
        return None
    for given in [*call.args, *(k.value for k in call.keywords)]:
        name = next((k.arg for k in call.keywords if k.value is given), None) or said(given)
        fixed = values.number(given)
        if set(words(name)) & _AGES and fixed is not None:
            if isinstance(fixed.value, int | float) and fixed.value > 0:
                return float(fixed.value)
    return None


def _outermost(step: Step, other: Step) -> Step:
    """The statement of the same function as another one that a step belongs to."""
    while step.frame is not other.frame and step.frame.site is not None:
        step = step.frame.site
    return step


def _samples_around(loop: LoopRead, parts: Loop, inside: Step) -> bool:
    """Whether rollouts are made outside of the loop over parts, in a loop around it."""
    outer = [x for x in inside.loops if x is not parts]
    made = [e.step for e in loop.events if e.kind is Kind.ROLLOUT]
    around = [s for s in made if any(s.inside(x) for x in outer)]
    return bool(around) and not any(s.inside(parts) for s in made)


def _clips(loop: LoopRead, parts: Loop) -> bool:
    return any(
        called(call) in CLIPPERS
        for step in loop.trace.steps
        if step.inside(parts)
        for call in step.calls()
    )


def _source(passes: Passes, ratio: Ratio) -> Step:
    """Where the copy was made, if that is a statement of its own."""
    difference = ratio.difference
    frame, node = passes.argument(difference.step.frame, difference.right)
    key = frame.key(node) if isinstance(node, ast.Name) else None
    written = passes.assigned.of(key) if key else []
    return written[0][0] if len(written) == 1 else ratio.step


def _count(values: Values, passes: Passes, parts: Loop) -> int | None:
    """How many parts: those of a `range`, or of `x.chunk(n)`, behind names and zips."""
    if isinstance(parts, ast.While):
        return None
    if (times := rounds(values, parts)) is not None:
        return times
    node: ast.expr = parts.iter
    frame = next(step.frame for step in passes.trace.steps if step.node is parts)
    for _ in range(6):
        match node:
            case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in _WRAPS:
                node = first
            case ast.Name():
                key = frame.key(node)
                written = passes.assigned.of(key) if key else []
                if len(written) != 1 or written[0][1] is None:
                    return None
                frame, node = written[0][0].frame, written[0][1]
            case ast.Call() if called(node) in ("chunk", "array_split"):
                size = node.args[-1] if node.args else None
                fixed = values.number(size)
                whole = fixed is not None and isinstance(fixed.value, int)
                return int(fixed.value) if fixed and whole and fixed.value else None
            case _:
                return None
    return None


def _rhythm(values: Values, update: Step, parts: Loop) -> int | None:
    """After how many rounds an update comes: `if (k + 1) % n == 0`; 1 without a condition."""
    branches = update.branches_in(parts)
    if not branches:
        return 1
    if len(branches) > 1 or not is_every_so_often(branches[0]):
        return None
    test = branches[0].node.test if isinstance(branches[0].node, ast.If) else None
    match test:
        case ast.Compare(
            left=ast.BinOp(op=ast.Mod(), right=by), ops=[ast.Eq()], comparators=[ast.Constant()]
        ):
            fixed = values.number(by)
            return int(fixed.value) if fixed and isinstance(fixed.value, int) else None
    return None
