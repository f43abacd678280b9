"""ADV019: the score of a response does not reach its tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import GaugeSeen, Seen

_SCORE = 0.1  # below any usual clip


def detect(seen: Seen) -> Iterator[Sighting]:
    """A terminal reward across a masked slot; a score in a row that ends before the width."""
    for gauge in seen.gauges:
        if gauge.role == "token-returns":
            yield from _returns(gauge)
        if gauge.role == "score-placement":
            yield from _placed(gauge)


def _returns(gauge: GaugeSeen) -> Iterator[Sighting]:
    """Without a discount every real token before a terminal reward of 1 has the return 1."""
    last = [[0.0, 0.0, 0.0, 1.0]]
    whole = _row(gauge.run({"rewards": last, "mask": [[1, 1, 1, 1]], "discount": 1.0}))
    split = _row(gauge.run({"rewards": last, "mask": [[1, 0, 1, 1]], "discount": 1.0}))
    if whole != [1.0] * 4 or split is None or not split[2] == split[3] == 1.0:
        return
    if split[0] != 1.0:
        yield Sighting(
            gauge.where["masked"],
            "the return ends at a masked slot: tokens before a tool's output never see the reward "
            "that comes after it",
            Evidence(
                "rewards (0, 0, 0, 1), mask (1, 0, 1, 1), no discount: return of the first token",
                rounded(split[0]),
                1.0,
            ),
        )


def _row(got: Any) -> list[float] | None:
    """The first row of numbers in what was returned."""
    while isinstance(got, list) and got and isinstance(got[0], list):
        got = got[0]
    plain = isinstance(got, list) and len(got) == 4
    return [float(x) for x in got] if plain else None


def _placed(gauge: GaugeSeen) -> Iterator[Sighting]:
    """What lies in real slots must add up to the score, in a short row as in a full one."""
    mask = [[1, 1, 1, 1], [1, 1, 0, 0]]
    values = {"divergence of each token": [[0.0] * 4] * 2, "rewards": [_SCORE] * 2, "mask": mask}
    got: Any = gauge.run(values)
    if not (isinstance(got, list) and len(got) == 2 and all(isinstance(r, list) for r in got)):
        return
    sums = [sum(x * m for x, m in zip(*rows, strict=True)) for rows in zip(got, mask, strict=True)]
    if abs(sums[0] - _SCORE) < 1e-6 < abs(sums[1] - _SCORE):
        yield Sighting(
            gauge.where["placed"],
            "the score lies behind the last token of a row that is shorter than the batch, where "
            "the mask takes it away",
            Evidence(
                "a row of 4 tokens, one of 2 in 4 slots, score 0.1 each: sum of the rewards of "
                "their tokens",
                [rounded(x) for x in sums],
                [_SCORE, _SCORE],
            ),
        )


FAULT = Fault(
    code="ADV019",
    name="score-does-not-arrive",
    severity=Severity.ERROR,
    summary="a score placed behind the last token, or a return that ends at a tool's output",
    remedy="place the score on the last real token, and skip masked slots without a reset",
    views="C",
    detect=detect,
)
