"""What a loss computes: its point of the space, and the facts that detectors read."""

from __future__ import annotations

import re
from typing import Any

from rlproof.bind.loss import LossImplementation
from rlproof.faults.seen import LossSeen
from rlproof.judge.evaluate import evaluate
from rlproof.judge.identify import TOLERANCE, clip_matters, identify, padding_weight, residual
from rlproof.probe.loss import LossObservation, observe
from rlproof.read.anatomy import divides_by_width, picker
from rlproof.read.landmarks import loss_landmarks
from rlproof.read.names import Slot
from rlproof.read.targets import Target

_REAL_TOKENS = r"\b(real|valid|unpadded|non-?pad\w*|unmasked|response|completion)\s+tokens?\b"


def judge(loss: LossImplementation) -> LossSeen:
    """Probe one loss and name what it computes."""
    seen = observe(loss)
    target = loss.target
    low = target.has(Slot.CLIP) or target.has(Slot.CLIP_LOW)
    high = target.has(Slot.CLIP) or target.has(Slot.CLIP_HIGH)
    point = identify(seen, (low, high), target.has(Slot.BETA))
    return LossSeen(
        function=target.name,
        slots=frozenset(str(p.slot) for p in target.parameters if p.slot),
        where=loss_landmarks(target),
        point=point,
        run=loss.run,
        predict=evaluate,
        facts=_facts(seen, target, point),
        declared=direction(target),
    )


def _facts(seen: LossObservation, target: Target, point: dict[str, str | float]) -> dict[str, Any]:
    pulled = seen.weights.divergence
    return {
        "clip_matters": clip_matters(seen),
        "picker": picker(target),
        "explicit_width": divides_by_width(target) and not re.search(_REAL_TOKENS, target.doc),
        "divergence_on_padding": padding_weight(pulled, seen.weights.mask) > TOLERANCE,
        "residual": residual(point, seen),
        "mode": seen.mode,
    }


def direction(target: Target) -> str | None:
    """What the name and the docstring say is returned: a `loss`, an `objective`, or nothing."""
    text = f"{target.name} {target.doc}".lower()
    minimised = bool(re.search(r"minimi[sz]|descent|\bloss\b", text.replace("_", " ")))
    maximised = bool(re.search(r"maximi[sz]|ascent", text))
    if minimised != maximised:
        return "loss" if minimised else "objective"
    return "loss" if "loss" in target.name.lower() else None
