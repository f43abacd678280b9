"""The direction that an advantage function gives graded rewards, by enumerating P4.

Shapes: M groups, G members, D parameters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlproof.defence.functions import Advantages, Asked, Floats
from rlproof.defence.model import Cell, Fact, Part, Table
from rlproof.defence.worlds import graded
from rlproof.lab.calculus import compare, curl, jacobian
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS, p4

_ZERO = 1e-9


def field(asked: Asked, theta: Floats, size: int) -> Floats:
    """E[(1/G)·Σ A_i·s_i] on P4 with any logits, from the advantages of all its groups: (D,)."""
    probs = np.exp(theta - theta.max())
    probs /= probs.sum()
    actions_MG = np.array(graded(size))
    scores = np.eye(len(probs)) - probs
    weights_M = probs[actions_MG].prod(axis=1)
    sums_MD = np.einsum("mg,mgd->md", asked.values, scores[actions_MG]) / size
    total: Floats = weights_M @ sums_MD
    return total


@dataclass(frozen=True, slots=True)
class DirectionSeen:
    """The direction on P4 with its four graded rewards."""

    size: int
    """G."""
    degrees: float
    scale: float
    curl: float


def measure(function: Advantages) -> DirectionSeen | None:
    """Angle to ∇V on P4 and relative curl of the field; None where the field is 0.

    Raises:
        ScriptError, UnbindableError: the function can't be asked.
    """
    size = min(4, *function.sizes)
    rewards = [[P4_REWARDS[a] for a in group] for group in graded(size)]
    asked = function.table(rewards, size)
    theta = np.array(P4_LOGITS)
    mean = field(asked, theta, size)
    if np.linalg.norm(mean) < _ZERO:
        return None
    against = compare(mean, p4().gradient)
    turned = curl(jacobian(lambda t: field(asked, t, size), theta))
    return DirectionSeen(size, against.degrees, against.scale, turned)


def part(function: Advantages, seen: DirectionSeen | None) -> Part:
    """The angle, in words."""
    if seen is None:
        says: tuple[str, ...] = ("On graded rewards its expected direction is 0.",)
        facts: dict[str, Fact] = {"degrees": None}
        rows: tuple[tuple[Cell, ...], ...] = ()
    else:
        facts = {"degrees": seen.degrees, "scale": seen.scale, "curl": seen.curl}
        rows = (
            ("angle to ∇V, degrees", seen.degrees), ("scale along ∇V", seen.scale),
            ("|J − Jᵀ|/|J + Jᵀ|", seen.curl),
        )  # fmt: skip
        says = (_sentence(seen),)
    groups = f"all {4**seen.size} groups of {seen.size}" if seen else "groups"
    return Part(
        "direction", "Direction on graded rewards", function.name or "", function.line or 0,
        ("A3", "A11", "A13"), says,
        (Table(f"P4: rewards (1, .6, .3, 0), {groups}", ("what", "value"), rows),),
        facts=facts,
    )  # fmt: skip


def _sentence(seen: DirectionSeen) -> str:
    gradient = (
        "it is the gradient of a function" if seen.curl < 1e-4
        else f"it is the gradient of no function (relative curl {seen.curl:.2g})"
    )  # fmt: skip
    if seen.degrees < 0.05:
        return f"With four reward values its direction is {seen.scale:.4g}·∇V: {gradient}."
    if seen.degrees > 179.95:
        return f"With four reward values its direction is {seen.scale:.4g}·∇V, downhill."
    return f"With four reward values its direction is {seen.degrees:.3g}° from ∇V, and {gradient}."
