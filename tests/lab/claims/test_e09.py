"""E9 by a loss written for this batch, and by differences."""

from math import exp
from random import Random

import pytest

from rlproof import tiny
from rlproof.lab.claims._e_shared import drawn, moved
from rlproof.lab.claims.registry import find


def terms(new, old, ref, advantage):
    """−min(ρA, clip(ρ)A) + .04·k3 of one token."""
    ratio = exp(new - old)
    surrogate = min(ratio * advantage, min(max(ratio, 0.8), 1.2) * advantage)
    return -surrogate + 0.04 * (exp(ref - new) - (ref - new) - 1)


def loss(draw, masked):
    """Mean over real tokens, or over all slots; padded slots hold the draw's numbers."""
    batch, rng = drawn(), Random(draw or 0)
    new = tiny.token_logps(moved(), batch.rows, batch.tokens)

    def filled(x, real):
        return x if real or draw is None else rng.uniform(-2, 0)

    tables = [
        [list(map(filled, row, mask)) for row, mask in zip(table, batch.mask, strict=True)]
        for table in (new, batch.old, batch.ref)
    ]
    total, count = 0.0, 0
    for i, mask in enumerate(batch.mask):
        for t, real in enumerate(mask):
            if real or not masked:
                slots = (table[i][t] for table in tables)
                total += terms(*slots, batch.advantages[i])
                count += 1
    return total / count


def test_padding():
    found = {n.name: n.value for n in find("E9").numbers()}
    for name in (
        "loss with other padding, minus the loss",
        "loss with three more columns, minus the loss",
        "gradient with both, largest change",
    ):
        assert found[name] == 0.0
    assert loss(None, True) == pytest.approx(drawn().loss(moved()), abs=1e-14)
    assert loss(1, True) == loss(None, True)
    name = "loss with other padding, minus the loss, mask ignored"
    assert found[name] == pytest.approx(loss(1, False) - loss(None, False), abs=1e-12)
    name = "weight of a token over its old one, three more columns, padded width"
    assert found[name] == pytest.approx((1 / (8 * 8)) / (1 / (8 * 5)))


def test_rows():
    """Differences along (1, 1, 1, 1): a softmax does not see it, a bare logit does."""
    found = {n.name: n.value for n in find("E9").numbers()}
    for p in range(2):
        up, down = moved(), moved()
        up[p], down[p] = [x + 1e-4 for x in up[p]], [x - 1e-4 for x in down[p]]
        numeric = (drawn().loss(up) - drawn().loss(down)) / 2e-4
        assert found["row sums of the gradient"][p] == pytest.approx(numeric, abs=1e-11)
    assert found["gradient of a prompt that is absent"] == (0.0,) * 4
    assert found["row sums of ∇V on P4 and TREE, largest"] < 1e-15
    bare = -(exp(1e-4) - exp(-1e-4)) / 2e-4
    name = "row sum where the log-prob is the bare logit, A = 1"
    assert found[name] == pytest.approx(bare, abs=1e-9)
