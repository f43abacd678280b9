"""B4 by plain sums over four arms, by sampling, and by recursion over the tree."""

from math import exp, log, sqrt
from random import Random

import numpy as np
import pytest

from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import P4_LOGITS, tree_of

TOTAL = sum(map(exp, P4_LOGITS))
PROBS = [exp(z) / TOTAL for z in P4_LOGITS]


def found():
    return {n.name: n.value for n in find("B4").numbers()}


def towards_uniform(probs):
    """∇KL(π‖uniform) = π·(log 4π − KL)."""
    divergence = sum(p * log(4 * p) for p in probs)
    return [p * (log(4 * p) - divergence) for p in probs]


def test_p4_by_hand():
    values = found()
    forward, reverse = [p - 0.25 for p in PROBS], towards_uniform(PROBS)
    for name in ("E[∇k3], P4", "∇KL(ref‖π) by differences, P4",
                 "GRPO's loss with β = 1 and rewards 0, P4"):  # fmt: skip
        assert values[name] == pytest.approx(forward, abs=1e-9)
    assert values["∇KL(π‖ref), said to be followed, P4"] == pytest.approx(reverse, abs=1e-12)
    assert values["E[k3], P4"] == pytest.approx(sum(p * log(4 * p) for p in PROBS), abs=1e-12)
    inner = sum(a * b for a, b in zip(forward, reverse, strict=True))
    sizes = sqrt(sum(a * a for a in forward) * sum(b * b for b in reverse))
    assert values["cosine of the two, P4"] == pytest.approx(inner / sizes, abs=1e-12)


def test_far_from_the_reference():
    values, probs = found(), (0.97, 0.01, 0.01, 0.01)
    wanted = sqrt(sum(x * x for x in towards_uniform(probs)))
    strong = sqrt(0.72**2 + 3 * 0.24**2)
    assert values["|E[∇k3]|, π = (.97, .01, .01, .01)"] == pytest.approx(strong, abs=1e-12)
    assert values["|∇KL(π‖ref)| there"] == pytest.approx(wanted, abs=1e-12)
    assert values["how many times too strong"] == pytest.approx(strong / wanted, abs=1e-9)


def test_p4_by_sampling():
    """20,000 draws of (1 − r)·s, within 4 standard errors."""
    draws = Random(0).choices(range(4), weights=PROBS, k=20_000)
    for v in range(4):
        terms = [(1 - 0.25 / PROBS[a]) * ((a == v) - PROBS[v]) for a in range(4)]
        mean = sum(terms[a] for a in draws) / len(draws)
        variance = (
            sum(p * t * t for p, t in zip(PROBS, terms, strict=True)) - (PROBS[v] - 0.25) ** 2
        )
        assert abs(mean - (PROBS[v] - 0.25)) < 4 * sqrt(variance / len(draws))


def test_tree_by_recursion():
    """Down the tree: row x adds reach(x)·(π_x − ref_x), reached by π, or by ref for sequences."""
    task, values = tree_of(0), found()
    p, q = np.exp(task.policy.log_table), np.exp(task.held_to.log_table)

    def down(table):
        reach = {(): 1.0}
        rows = []
        for row in range(13):
            prefix = list(reach)[row]
            rows.append(reach[prefix] * (p[row] - q[row]))
            if len(prefix) < 2:
                reach |= {(*prefix, v): reach[prefix] * table[row][v] for v in range(3)}
        return np.concatenate(rows)

    np.testing.assert_allclose(values["E[∇Σ_t k3], TREE"], down(p), atol=1e-12)
    np.testing.assert_allclose(values["E[∇k3] of whole sequences, TREE"], down(q), atol=1e-12)
