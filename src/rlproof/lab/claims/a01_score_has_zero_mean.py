"""A1. The score has mean zero.

Statement:
    For any policy with parameters θ and score s(o) = ∇log π(o),

        E_π[s] = Σ_o π(o)·∇log π(o) = 0.

Conditions:
    The sequences are drawn from π itself, and the set of sequences does not depend on θ.
    Lengths drawn by the environment and lengths chosen by an end token are both covered.

Proof:
    π(o)·∇log π(o) = ∇π(o), so the sum is ∇Σ_o π(o) = ∇1 = 0.

Refutes:
    nothing

Sources:
    * Williams 1992, "Simple statistical gradient-following algorithms" (from memory)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import eos, p4, seed, tree_of
from rlproof.lab.tasks import Task


def numbers() -> tuple[Number, ...]:
    """The largest entry of E[s] on all four fixtures."""
    worlds: dict[str, Task] = {"P4": p4(), "SEED": seed(), "EOS": eos(), "TREE": tree_of(0)}
    return tuple(
        number(
            f"largest |E[s]|, {name}",
            np.abs(task.policy.expect(task.policy.scores)).max(),
            0.0,
            1e-13,
            f"proof; enumeration over {len(task.rewards)} sequences",
        )
        for name, task in worlds.items()
    )
