"""The third part of a recorded loss: c·Σ u·H, with the entropy H at every slot.

The weights u are those of the surrogate or a mean over the real tokens, as TRL takes it. An
entropy computed from logits has no part in ∂L/∂log π; one estimated from the sampled tokens'
log-probs has. Shapes: B rows, T slots, W weightings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlproof.watch.seen import Array


@dataclass(frozen=True, slots=True)
class Bonus:
    """How the entropy enters."""

    weights: str
    """`same` as the surrogate's, `token-mean`; `constant` adds the same number at every step."""
    in_gradient: bool = False
    """Whether it is differentiated through the recorded log-probs."""


BONUSES = (
    Bonus("same"), Bonus("token-mean"), Bonus("same", True), Bonus("token-mean", True),
    Bonus("constant"),
)  # fmt: skip
"""The constant is no bonus: it stands for what was not recorded, and only raises doubt."""
SPARE = 6
"""Batches from which a loss alone can tell: three numbers are fitted, three batches check them."""
OF_GRADIENT = 3
"""Batches from which a loss can tell beside a gradient, which fixes all but the bonus."""


def through_log_probs(entropy: Array | None, new: Array, mask: Array) -> Array | None:
    """∂H/∂log π (B, T), where the recorded entropy is an estimate from the sampled tokens.

    Those are −log π and −π·log π. None where it is neither, and so came from the logits.
    """
    if entropy is None:
        return None
    real = mask > 0
    with np.errstate(all="ignore"):
        chance = np.exp(new)
        for value, slope in ((-new, -np.ones_like(new)), (-chance * new, -chance * (1 + new))):
            if np.allclose(value[real], entropy[real], rtol=1e-3, atol=1e-6):
                return slope
    return None
