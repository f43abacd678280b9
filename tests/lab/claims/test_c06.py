"""C6 by plain sums over four actions, over ordered groups, and with the tiny trainer."""

from itertools import product
from math import e, log, prod

import pytest
from tests.lab.claims.c_plain import ADV, PI, cosine, error, pull, shifted

from rlproof import tiny
from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_REWARDS

FOUND = {n.name: n.value for n in find("C6").numbers()}


def test_one_token_with_the_tiny_trainer():
    old, mask = [[log(0.25)]], [[1]]
    new = tiny.token_logps([[1.0, 0.0, 0.0, 0.0]], [0], [[0]])
    for name, before in (("frozen", old), ("refreshed", new)):
        loss = tiny.grpo_loss(new, before, new, [1.0], mask, beta=0.0)
        share = tiny.clip_fraction(new, before, mask)
        ratio = 4 * e / (e + 3) if name == "frozen" else 1.0
        found = FOUND[f"loss, clip fraction, ρ: logit + 1, old {name}"]
        assert found == pytest.approx((loss, share, ratio))


def test_second_epoch_on_p4():
    new, _ = shifted()
    right = pull([n * r for n, r in zip(new, P4_REWARDS, strict=True)], new)
    stale = pull([p * a for p, a in zip(PI, ADV, strict=True)], new)
    assert FOUND["E[ĝ] frozen, P4 shifted"] == pytest.approx(right, abs=1e-12)
    assert FOUND["E[ĝ] refreshed"] == pytest.approx(stale, abs=1e-12)
    assert FOUND["relative error of the refreshed gradient"] == pytest.approx(error(stale, right))
    assert FOUND["its cosine with ∇V of π_new"] == pytest.approx(cosine(stale, right))
    assert FOUND["E[ĝ] refreshed, clipped − unclipped"] == pytest.approx([0] * 4, abs=1e-12)
    still = pull([p * a for p, a in zip(PI, ADV, strict=True)], PI)
    assert FOUND["with one update nothing differs, P4"] == pytest.approx(still, abs=1e-12)


def test_groups_of_three():
    new, ratios = shifted()
    total = [0.0] * 4
    for group in product(range(4), repeat=3):
        mean = sum(P4_REWARDS[a] for a in group) / 3
        chance = prod(PI[a] for a in group)
        for a in group:
            weight = chance * ratios[a] * (P4_REWARDS[a] - mean) / 3
            for v in range(4):
                total[v] += weight * ((a == v) - new[v])
    assert FOUND["E[ĝ] frozen in groups of 3 with their mean"] == pytest.approx(total, abs=1e-12)


def test_the_tiny_trainer_keeps_them_frozen():
    """With several epochs something is clipped; a refreshed old would show 0 (see above)."""
    _, history = tiny.train(steps=2, epochs=3, lr=8.0)
    assert max(step["clip_frac"] for step in history) > 0.1
