"""E9. Four invariants hold to the last bit or nearly, and each one catches a family of faults.

Statement:
    For a table of logits, any batch and any loss of token log-probs:

    the gradient's rows sum to 0; a row whose prompt is not in the batch is 0; what stands in
    padded slots does not change loss or gradient; neither do further padded columns.

Conditions:
    The first needs a softmax over logits, whatever the loss. The last needs a denominator that
    counts real tokens: with the padded width it fails on purpose (D5).

Proof:
    Every score is onehot − π, whose entries sum to 0, and the gradient is a sum of slopes times
    scores. An absent prompt has no token. A mask that is used leaves padded slots out of every
    sum, so no operation sees them, and the bits stay.

Refutes:
    "Only the reward curve shows whether a loss is right": these need no training, and a loss that
    ignores its mask fails the third at once. They do not see a wrong sign.

Sources:
    * The invariants and what breaks them (derived here)
"""

from __future__ import annotations

from random import Random

import numpy as np

from rlproof import tiny
from rlproof.faults.msk002 import formula as all_slots
from rlproof.lab.claims._e_shared import Table, drawn, moved
from rlproof.lab.claims.model import Number, number
from rlproof.lab.fixtures import p4, tree_of
from rlproof.space.aggregation import token_mean


def numbers() -> tuple[Number, ...]:
    """All four on the tiny trainer, the first on the other tasks too, and two that fail."""
    batch = drawn()
    right = batch.gradient(moved())
    three = [*moved(), [0.3, -0.2, 0.1, 0.0]]
    grown = tiny.grpo_grad(three, batch.rows, batch.tokens, batch.old, batch.ref,
                           batch.advantages, batch.mask)  # fmt: skip
    tables = [task.gradient.reshape(task.policy.family.shape) for task in (p4(), tree_of(0))]
    loss = batch.loss(moved())
    return (
        number("row sums of the gradient", np.sum(right, axis=1), (0.0, 0.0), 1e-15, "Σ score = 0"),
        number("row sums of ∇V on P4 and TREE, largest",
               max(float(np.abs(table.sum(axis=1)).max()) for table in tables), 0.0, 1e-14,
               "Σ score = 0"),
        number("gradient of a prompt that is absent", grown[2], (0.0,) * 4, 1e-300, "exact"),
        number("loss with other padding, minus the loss", padded_loss(1, 0) - loss, 0.0, 1e-300,
               "exact"),
        number("loss with three more columns, minus the loss", padded_loss(1, 3) - loss, 0.0,
               1e-300, "exact"),
        number("loss with other padding, minus the loss, mask ignored",
               padded_loss(1, 0, False) - padded_loss(None, 0, False), 0.148039, 1e-6,
               "sum over the padded slots"),
        number("gradient with both, largest change", _gradient_change(), 0.0, 1e-300, "exact"),
        number("weight of a token over its old one, three more columns, padded width",
               _width(3) / _width(0), 5 / 8, 1e-12, "T = 5 and 8"),
        number("row sum where the log-prob is the bare logit, A = 1", _unnormalised(), -1.0, 1e-8,
               "the score is onehot, the slope −ρ·A"),
    )  # fmt: skip


def padded_loss(draw: int | None, more: int, masked: bool = True) -> float:
    """The loss where padded slots hold random numbers, and there are `more` of them.

    None leaves them as they are; unmasked, they count like others.
    """
    rng, batch = Random(draw or 0), drawn()

    def scrambled(table: Table) -> Table:
        return [
            [
                x if real or draw is None else rng.uniform(-2, 0)
                for x, real in zip(row, mask, strict=True)
            ]
            + [rng.uniform(-2, 0) for _ in range(more)]
            for row, mask in zip(table, batch.mask, strict=True)
        ]

    new = tiny.token_logps(moved(), batch.rows, batch.tokens)
    mask = [[real if masked else 1 for real in (*row, *[0] * more)] for row in batch.mask]
    new, old, ref = (scrambled(table) for table in (new, batch.old, batch.ref))
    return tiny.grpo_loss(new, old, ref, batch.advantages, mask)


def _gradient_change() -> float:
    """Other padding tokens and three more columns."""
    batch, rng = drawn(), Random(2)
    tokens = [
        [v if real else rng.randrange(4) for v, real in zip(row, mask, strict=True)] + [3, 1, 2]
        for row, mask in zip(batch.tokens, batch.mask, strict=True)
    ]
    mask = [[*row, 0, 0, 0] for row in batch.mask]
    old, ref = ([[*row, -1.0, -2.0, -3.0] for row in table] for table in (batch.old, batch.ref))
    other = tiny.grpo_grad(moved(), batch.rows, tokens, old, ref, batch.advantages, mask)
    return float(np.abs(np.subtract(other, batch.gradient(moved()))).max())


def _width(more: int) -> float:
    """The weight of a real token where all slots are counted, over that of the token mean."""
    mask = np.array([[*row, *[0] * more] for row in drawn().mask], float)
    return float(all_slots(mask)[0, 0] / token_mean(mask)[0, 0])


def _unnormalised() -> float:
    """Of one token 1 on-policy, the loss being a function of θ₁ instead of log softmax(θ)₁."""

    def loss(theta: Table) -> float:
        return tiny.grpo_loss([[theta[0][1]]], [[0.0]], [[0.0]], [1.0], [[1]], beta=0.0)

    return sum(tiny.numeric_grad(loss, [[0.0] * 4])[0])
