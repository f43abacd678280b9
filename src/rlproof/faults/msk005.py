"""MSK005: a row without an end-of-sequence token gets the wrong mask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.faults.model import Evidence, Fault, Severity, Sighting
from rlproof.faults.seen import GaugeSeen, Seen

_EOS = 9


def detect(seen: Seen) -> Iterator[Sighting]:
    """First that it is such a mask at all: real up to the first EOS. Then a row without one."""
    for gauge in seen.gauges:
        if gauge.role != "completion-mask":
            continue
        ended = _mask(gauge, [5, 7, _EOS, 1])
        if ended not in ([1, 1, 1, 0], [1, 1, 0, 0]):
            continue
        got = _mask(gauge, [5, 7, 6, 4])
        if got is None or got == [1, 1, 1, 1]:
            continue
        yield Sighting(
            gauge.where["result"],
            "a completion that was cut off before its end-of-sequence token is masked out",
            Evidence(f"tokens (5, 7, 6, 4), EOS = {_EOS}: mask", got, [1.0] * 4),
        )


def _mask(gauge: GaugeSeen, tokens: list[int]) -> list[float] | None:
    """The mask of one row; None where what is returned is none."""
    got: Any = gauge.run({"tokens": [tokens], "end-of-sequence id": _EOS, "padding id": 1})
    while isinstance(got, list) and len(got) == 1:
        got = got[0]
    plain = isinstance(got, list) and len(got) == len(tokens)
    return [float(x) for x in got] if plain and all(_is_number(x) for x in got) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


FAULT = Fault(
    code="MSK005",
    name="mask-without-eos-case",
    severity=Severity.ERROR,
    summary="no EOS in the row makes padding count as real",
    remedy="take the width as the end of a row that has no EOS",
    views="CD",
    detect=detect,
)
