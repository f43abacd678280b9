"""MSK008: a mask that multiplies lets NaN and infinity through."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, log

from rlproof.faults.model import Evidence, Fault, Severity, Sighting, rounded
from rlproof.faults.seen import Batch, LossSeen, ScriptError, Seen


def detect(seen: Seen) -> Iterator[Sighting]:
    """A padded slot holds −inf: the loss should not notice."""
    for loss in seen.losses:
        known = "mask" in loss.slots and "aggregation" in loss.point
        if not known or loss.point.get("padding") == "counted":
            continue
        where = "old" if "old log-probs" in loss.slots else "new"
        if _survives(loss, where, -1.0) and not _survives(loss, where, -inf):
            half = [[log(0.5)]]
            alone = Batch(half, half, half, [-1.0], [[1]])
            yield Sighting(
                loss.where["slots"],
                "the mask multiplies, and 0 · inf is NaN: a padded slot that isn't finite makes "
                "the whole loss NaN",
                Evidence(
                    "one real and one padded slot, A = -1, beta = 0, π_new = π_old = 0.5; log "
                    f"π_{where} of the padded slot is −inf: loss",
                    "not finite",
                    rounded(loss.run(alone).value),
                ),
            )


def _survives(loss: LossSeen, where: str, value: float) -> bool:
    rows = [[log(0.5), log(0.5)]]
    batch = Batch(rows, rows, rows, [-1.0], [[1, 0]]).but(**{where: [[log(0.5), value]]})
    try:
        loss.run(batch)
    except ScriptError as error:
        if error.kind != "not finite":
            raise
        return False
    return True


FAULT = Fault(
    code="MSK008",
    name="mask-by-multiplication",
    severity=Severity.NOTE,
    summary="NaN or infinity in a masked slot reaches the loss (NaN × 0)",
    remedy="fill masked slots with 0 before any arithmetic: torch.where(mask, new - old, 0)",
    views="CS",
    detect=detect,
)
