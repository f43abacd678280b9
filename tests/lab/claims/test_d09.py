"""D9 written out term by term: a tree of prefixes in plain dictionaries."""

from math import exp, log

import numpy as np
import pytest

from rlproof.lab.claims.d09_shared_prefixes_are_process_rewards import (
    GROUP,
    SIZES,
    by_prefix,
    by_token,
    off_policy,
)
from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import normal, tree_of

DRAWN = normal(2 * 39 + 27, 0)
OLD, REWARDS = DRAWN[:39].reshape(13, 3), DRAWN[78:]
NEW = OLD + normal(39, 7).reshape(13, 3)
PREFIXES = [(), *((a,) for a in range(3)), *((a, b) for a in range(3) for b in range(3))]


def log_prob(table, prefix):
    """log π of the last token of `prefix`."""
    row = table[PREFIXES.index(prefix[:-1])]
    return row[prefix[-1]] - log(sum(map(exp, row)))


def tokens_of(sequence):
    return (sequence // 9, sequence // 3 % 3, sequence % 3)


def clipped(advantage, ratio):
    return min(advantage * ratio, advantage * min(max(ratio, 0.8), 1.2))


def both_sides(term):
    """Σ over completions and tokens, and Σ over distinct prefixes, of a term of (A, ρ)."""
    mean = sum(REWARDS[o] for o in GROUP) / len(GROUP)
    members, first = {}, 0.0
    for o in GROUP:
        for t in (1, 2, 3):
            prefix = tokens_of(o)[:t]
            members.setdefault(prefix, []).append(REWARDS[o] - mean)
            ratio = exp(log_prob(NEW, prefix) - log_prob(OLD, prefix))
            first += term(REWARDS[o] - mean, ratio)
    second = 0.0
    for prefix, advantages in members.items():
        ratio = exp(log_prob(NEW, prefix) - log_prob(OLD, prefix))
        second += len(advantages) * term(sum(advantages) / len(advantages), ratio)
    return first, second, members


def test_every_number():
    found = {n.name: n.value for n in find("D9").numbers()}
    first, second, members = both_sides(lambda a, ratio: a * ratio)
    assert first == pytest.approx(second, abs=1e-13)
    assert by_token(off_policy(), GROUP)[0] == pytest.approx(first, abs=1e-12)
    assert found["largest gap in value and gradient, 56 groups"] == pytest.approx(0, abs=1e-12)
    sizes = [len(members[p]) for p in sorted(members, key=lambda p: (len(p), p))]
    assert found["sizes |λ| of the group 000, 001, 002, 010, 011, 100"] == tuple(sizes) == SIZES
    process = [sum(members[p]) / len(members[p]) for p in ((0, 0), (0,))]
    assert found["process rewards Ā of the prefixes 00 and 0"] == pytest.approx(process, abs=1e-12)
    first, second, _ = both_sides(clipped)
    assert found["with the clip: Σ_i Σ_t of the clipped terms"] == pytest.approx(first, abs=1e-12)
    name = "with the clip: Σ_λ |λ| × the clipped term of Ā_λ, said to be equal"
    assert found[name] == pytest.approx(second, abs=1e-12)


def test_the_gradient_by_differences():
    """Of Σ_i Σ_t A_i·ρ at the moved logits, in a few coordinates."""
    task, theta = off_policy(), off_policy().policy.theta.ravel()
    for d in (0, 3, 13, 21):
        step = 1e-5 * np.eye(39)[d]
        high, low = (by_token(task.at(theta + sign * step), GROUP)[0] for sign in (1, -1))
        numeric = (high - low) / 2e-5
        assert by_prefix(task, GROUP)[1 + d] == pytest.approx(numeric, abs=1e-8)
    assert tree_of(0).policy.theta == pytest.approx(OLD)
