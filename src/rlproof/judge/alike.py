"""What identification can't decide on principle, and what is nearest when it decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.seen import Point
from rlproof.judge.identify import nearest_surrogate
from rlproof.probe.loss import LossObservation


def indistinguishable(point: Point, masked: bool) -> dict[str, str]:
    """The coordinate `same_as`: other points that give the same value and gradient here."""
    found = "; ".join(_same(point, masked))
    return {"same_as": found} if found else {}


def _same(point: Point, masked: bool) -> Iterator[str]:
    if point.get("level") == "sequence-mean":
        yield "level sequence-mean-token, whose gradient differs only if A varies within a row"
    if point.get("surrogate") == "dual-clip":
        yield "surrogate two-sided with the same cap"
    if point.get("ratio") == "detached":
        yield "surrogate log-prob in the gradient; the values differ"
    if point.get("divergence") == "k3-straight-through":
        yield "k3 weighted by exp(x − stop(x))"
    if not masked and point.get("aggregation") in ("token-mean", "sequence-mean"):
        yield "aggregation sequence-mean, since without a mask all rows are equally long"


def nearest(seen: LossObservation, takes_clip: tuple[bool, bool]) -> str:
    """The surrogate that comes closest to a term that no known one reproduces."""
    fit = nearest_surrogate(seen, takes_clip)
    if fit is None:
        return ""
    return f"nearest: {fit.names[1]} of the {fit.names[0]} ratio, residual {fit.residual:.2g}"
