"""What a loss computes: its point of the space, and the facts that detectors read."""

from __future__ import annotations

import re
from typing import Any

from rlproof.bind.loss import LossImplementation
from rlproof.faults.seen import LossSeen, Place, Point
from rlproof.judge import alike
from rlproof.judge.evaluate import evaluate
from rlproof.judge.identify import TOLERANCE, clip_matters, identify, padding_weight, residual
from rlproof.probe.loss import LossObservation, observe
from rlproof.read.anatomy import declares_unused, is_negated, is_unread, maximises, picker
from rlproof.read.landmarks import loss_landmarks
from rlproof.read.names import Slot
from rlproof.read.parameters import number
from rlproof.read.targets import Script, Target
from rlproof.read.widths import says_width, width_instead_of, width_place

_ZERO = 1e-9
_REAL_TOKENS = r"\b(real|valid|unpadded|non-?pad\w*|unmasked|response|completion)\s+tokens?\b"


def judge(loss: LossImplementation) -> LossSeen:
    """Probe one loss and name what it computes."""
    seen = observe(loss)
    target = loss.target
    low = target.has(Slot.CLIP) or target.has(Slot.CLIP_LOW)
    high = target.has(Slot.CLIP) or target.has(Slot.CLIP_HIGH)
    point = identify(seen, (low, high), target.has(Slot.BETA))
    point |= _default_bounds(target, point)
    if seen.against_ref:
        point["ratio_to"] = "reference"
    if not loss.reduced and point.get("aggregation") == "sum":
        point["aggregation"] = "per-token"
    return LossSeen(
        function=target.name,
        slots=frozenset(str(p.slot) for p in target.parameters if p.slot),
        where=_landmarks(loss.script, target),
        point=point,
        run=loss.run,
        predict=evaluate,
        facts=_facts(seen, loss.script, target, point)
        | {"nearest": _nearest(seen, point, (low, high))},
        declared=direction(loss.script, target),
    )


def _landmarks(script: Script, target: Target) -> dict[str, Place]:
    """Those of the function; the divisor may stand in a helper."""
    found = loss_landmarks(target)
    helper = width_place(script, target)
    return found if helper is None else {**found, "width": helper}


def _nearest(seen: LossObservation, point: Point, takes_clip: tuple[bool, bool]) -> str:
    return "" if "surrogate" in point else alike.nearest(seen, takes_clip)


def _default_bounds(target: Target, point: Point) -> dict[str, str | float]:
    """The script's own default clip range, by which the objective is named."""
    if point.get("clip_from") != "arguments":
        return {}
    found: dict[str, str | float] = {}
    for axis, slot in (("clip_low", Slot.CLIP_LOW), ("clip_high", Slot.CLIP_HIGH)):
        parameter = target.parameter(slot) or target.parameter(Slot.CLIP)
        default = number(parameter.default) if parameter else None
        if default is not None:
            found[axis] = default
    return found


def _facts(
    seen: LossObservation, script: Script, target: Target, point: dict[str, str | float]
) -> dict[str, Any]:
    pulled = seen.weights.divergence
    return {
        "clip_matters": clip_matters(seen),
        "cap_unread": any(
            p.slot is Slot.CAP and is_unread(target, p.name) for p in target.parameters
        ),
        "picker": picker(target),
        "explicit_width": says_width(script, target) and not re.search(_REAL_TOKENS, target.doc),
        "width_instead_of": width_instead_of(script, target),
        "surrogate_on_padding": abs(seen.unit) > _ZERO
        and padding_weight(seen.weights.surrogate, seen.weights.mask) > TOLERANCE,
        "divergence_on_padding": padding_weight(pulled, seen.weights.mask) > TOLERANCE,
        "residual": residual(point, seen),
        "mode": seen.mode,
        "unused_on_purpose": declares_unused(target, {p.name for p in target.parameters})
        or (target.origin is not None and target.origin.chosen),
    }


def direction(script: Script, target: Target) -> str | None:
    """What is returned: a `loss`, an `objective`, or nothing that the script says clearly.

    The docstring counts before the calls, and both before the name.
    """
    doc = target.doc.lower()
    minimised = bool(re.search(r"minimi[sz]|\bdescen", doc))
    maximised = bool(re.search(r"maximi[sz]|\bascen|higher is better", doc))
    if minimised != maximised:
        return "loss" if minimised else "objective"
    if is_negated(script, target):
        return "objective"
    if maximised or maximises(script):
        return None
    named = f"{target.name.replace('_', ' ')} {doc}".lower()
    return "loss" if re.search(r"\bloss\b|\b[a-z]+loss(fn)?\.", named) else None
