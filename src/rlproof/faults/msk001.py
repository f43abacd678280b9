"""MSK001: padded slots enter the sum."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from typing import Any

from rlproof.faults.extraction import sightings
from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, GaugeSeen, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """Only the padded slot changes, and the loss follows."""
    for loss in seen.losses:
        counted = loss.point.get("padding") == "counted" or (
            "aggregation" not in loss.point and loss.facts.get("surrogate_on_padding")
        )
        reduced = loss.point.get("aggregation") != "per-token"
        if not (counted and reduced and {"mask", "lengths"} & loss.slots):
            continue
        quarter, half = log(0.25), log(0.5)
        rows = [[quarter, quarter]]
        batch = Batch(rows, rows, rows, [1.0], [[1, 0]], low=0.9, high=9.0)
        moved = batch.but(new=[[quarter, half]], ref=[[quarter, half]])
        yield Sighting(
            loss.where["slots"],
            "padded slots enter the sum: what stands behind the end of a row moves the loss",
            Evidence(
                "one real and one padded slot, A = 1, beta = 0, clip wide; π_new of the padded "
                "slot goes from 0.25 (ρ = 1) to 0.5 (ρ = 2); change of the loss",
                rounded(loss.run(moved).value - loss.run(batch).value),
                0.0,
            ),
        )
    yield from _advantages(seen)
    yield from _whitened(seen)
    yield from sightings(
        seen,
        "padding in sum",
        "sum",
        "padded slots enter the log-prob of a whole completion",
    )


def _advantages(seen: Seen) -> Iterator[Sighting]:
    """Of advantages that are given for each slot, those of padded slots count."""
    for place, facts in seen.other:
        if found := facts.get("advantages_of_padding"):
            yield Sighting(
                place,
                "advantages of padded slots enter: their mean over a row depends on its padding",
                Evidence(
                    "rows of 3 and of 2 real tokens in 4 slots, A = 1 and −2 in each real slot, 0 "
                    "in padded ones: loss; expected as with A in padded slots too",
                    rounded(found[1]),
                    rounded(found[0]),
                ),
            )


def _whitened(seen: Seen) -> Iterator[Sighting]:
    """Where token advantages are whitened, what stands in padded slots moves those of real ones."""
    for gauge in seen.gauges:
        if gauge.role != "advantage-whitening":
            continue
        first, other, shifted = (_white(gauge, *case) for case in ((0, 0), (0, 5), (1, 0)))
        whole, moved = (_white(gauge, *case, real=1) for case in ((0, 0), (1, 1)))
        if first is None or other is None or None in (shifted, whole, moved):
            continue
        # a sum over slots that are 0 in padding, by the number of real ones, is as right
        centres, still = _near(whole, moved), _near(first, shifted)
        if not _near(first, other) and centres and not still:
            yield Sighting(
                gauge.where["mean"],
                "padded slots enter the statistics that token advantages are whitened with",
                Evidence(
                    "advantages (1, −1, 0.5) and (2, 0, x), x padded: first advantage returned "
                    "for x = 5; expected as for x = 0",
                    rounded(other),
                    rounded(first),
                ),
            )


def _white(gauge: GaugeSeen, shift: float, last: float, real: int = 0) -> float | None:
    """The first advantage returned, all real ones shifted; the last slot is padding, or real."""
    rows = [[1.0 + shift, -1.0 + shift, 0.5 + shift], [2.0 + shift, shift, last]]
    return _first(gauge.run({"advantages": rows, "mask": [[1, 1, 1], [1, 1, real]]}))


def _near(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and abs(one - other) < 1e-4


def _first(value: Any) -> float | None:
    """The first of the advantages that were returned, alone, under their key, or in a tuple."""
    if isinstance(value, dict):
        value = next((v for k, v in value.items() if "adv" in k.lower()), None)
    shape = [len(row) for row in value if isinstance(row, list)] if isinstance(value, list) else []
    return float(value[0][0]) if shape == [3, 3] else None


FAULT = Fault(
    code="MSK001",
    name="padding-in-loss",
    severity=Severity.ERROR,
    summary="masked positions enter the numerator",
    remedy="skip slots whose mask is 0, in every sum",
    views="CR",
    detect=detect,
)
