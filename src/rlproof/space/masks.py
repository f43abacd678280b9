"""Which tokens of a completion the loss counts.

Shapes: B rows, T slots.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlproof.space.arrays import Array, namespace

TRUNCATED = ("counted", "dropped")
ENDS = ("counted", "dropped")


@dataclass(frozen=True, slots=True)
class Masks:
    """Coordinates of the mask. Tokens that the policy did not choose never count."""

    truncated: str = "counted"
    """Completions that hit the length limit: `counted`, or `dropped` (DAPO's overlong filter)."""
    end: str = "counted"
    """The token that ends a completion: `counted`, since the policy chose it, or `dropped`."""


def token_mask(
    lengths_B: Array,
    width: int,
    how: Masks,
    truncated_B: Array | None = None,
    injected_BT: Array | None = None,
) -> Array:
    """1 on tokens that the loss counts, 0 elsewhere: (B, T), of the type of `lengths_B`.

    Args:
        lengths_B: tokens of each completion, its end token included.
        width: T.
        how: the coordinates.
        truncated_B: which completions were cut off; they have no end token.
        injected_BT: which tokens came from a tool or a user, not from the policy.

    Raises:
        ValueError: truncated completions are to be dropped, and it is not said which they are.
    """
    xp = namespace(lengths_B)
    slots_1T = xp.arange(width)[None, :]
    lengths_B1 = lengths_B[:, None]
    real = slots_1T < lengths_B1
    cut_B1 = xp.zeros_like(lengths_B1) > 0
    if truncated_B is not None:
        cut_B1 = truncated_B[:, None] > 0
    elif how.truncated == "dropped":
        raise ValueError("masks.truncated = 'dropped' needs to know which rows are truncated")
    if how.truncated == "dropped":
        real = real & ~cut_B1
    if how.end == "dropped":
        real = real & ((slots_1T < lengths_B1 - 1) | cut_B1)
    if injected_BT is not None:
        real = real & ~(injected_BT > 0)
    return xp.astype(real, lengths_B.dtype)
