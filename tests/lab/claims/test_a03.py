"""A3 by plain loops over every ordered group of P4."""

from itertools import product
from math import exp, prod

import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS


@pytest.mark.parametrize("size", [2, 3, 4])
def test_ordered_groups(size):
    total = sum(map(exp, P4_LOGITS))
    probs = [exp(z) / total for z in P4_LOGITS]
    value = sum(p * r for p, r in zip(probs, P4_REWARDS, strict=True))
    mean = [0.0] * 4
    for group in product(range(4), repeat=size):
        weight = prod(probs[a] for a in group)
        centre = sum(P4_REWARDS[a] for a in group) / size
        for a in group:
            for v in range(4):
                score = (a == v) - probs[v]
                mean[v] += weight * (P4_REWARDS[a] - centre) * score / size
    ratios = [m / (p * (r - value)) for m, p, r in zip(mean, probs, P4_REWARDS, strict=True)]
    [found] = [n for n in find("A3").numbers() if n.name.endswith(f"coordinate, P4, G = {size}")]
    assert found.value == pytest.approx(ratios, abs=1e-12)
