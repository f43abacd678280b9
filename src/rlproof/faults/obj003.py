"""OBJ003: two implementations of one objective give different losses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import isfinite

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Answer, Batch, LossSeen, ScriptError, Seen

_WAYS = {
    "fused", "fast", "liger", "triton", "chunked", "compiled", "eager", "naive", "slow",
    "vectorized", "vectorised", "optimized", "optimised", "efficient", "kernel", "unfused",
}  # fmt: skip
_NEW = [[-1.0, -0.6, -0.9], [-0.7, -1.2, -1.0]]
_OLD = [[-1.2, -0.5, -0.9], [-0.9, -1.0, -0.7]]
_REF = [[-1.1, -0.8, -0.6], [-0.8, -1.1, -1.1]]
_BATCH = Batch(_NEW, _OLD, _REF, [1.0, -0.5], [[1, 0, 0], [1, 1, 1]], beta=0.1)
_TOLERANCE = 1e-4  # of values of about 1: single precision passes


def detect(seen: Seen) -> Iterator[Sighting]:
    """Losses whose names differ by the way of computing only, asked the same question."""
    for one, other in combinations(seen.losses, 2):
        plain, fast = sorted((one, other), key=lambda loss: len(_way(loss)))
        same = _stem(one) == _stem(other) and _way(fast) and one.slots == other.slots
        if not same:
            continue
        answers = [_ask(loss) for loss in (plain, fast)]
        if None in answers or _alike(*answers):  # type: ignore[arg-type]
            continue
        got, expected = (rounded(a.value) for a in reversed(answers) if a is not None)
        text = (
            "new [[-1, -.6, -.9], [-.7, -1.2, -1]], old [[-1.2, -.5, -.9], [-.9, -1, -.7]], ref "
            "[[-1.1, -.8, -.6], [-.8, -1.1, -1.1]], A (1, -.5), mask [[1, 0, 0], [1, 1, 1]], "
            f"beta 0.1: {fast.function} against {plain.function}"
        )
        yield Sighting(
            fast.where["reduce"],
            f"{fast.function} and {plain.function} are two ways of computing one loss by their "
            "names, and give one batch different losses or gradients",
            Evidence(text, got, expected),
        )


def _words(loss: LossSeen) -> list[str]:
    return loss.function.lower().strip("_").split("_")


def _stem(loss: LossSeen) -> list[str]:
    return [w for w in _words(loss) if w not in _WAYS]


def _way(loss: LossSeen) -> list[str]:
    return [w for w in _words(loss) if w in _WAYS]


def _ask(loss: LossSeen) -> Answer | None:
    try:
        answer = loss.run(_BATCH)
    except ScriptError:
        return None
    return answer if isfinite(answer.value) else None


def _alike(one: Answer, other: Answer) -> bool:
    pairs = [(one.value, other.value)]
    pairs += [(x, y) for a, b in zip(one.gradient, other.gradient, strict=True)
              for x, y in zip(a, b, strict=True)]  # fmt: skip
    return all(abs(x - y) <= _TOLERANCE for x, y in pairs)


FAULT = Fault(
    code="OBJ003",
    name="implementations-differ",
    severity=Severity.WARNING,
    summary="a fast implementation and a plain one of the same loss disagree",
    remedy="test both on one batch, value and gradient, and repair the one that is not meant",
    views="C",
    detect=detect,
)
