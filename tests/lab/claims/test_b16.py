"""B16 by sums in plain Python, by differences of log π(S), and by sampling with rejection."""

from functools import cache
from math import log, sqrt
from random import Random

import pytest
from tests.support.four_arms import P4, REF2, VALUES, kl, mean, sd, softmax

from rlproof.lab.claims.registry import find

LOGITS = (0.5, 0.0, -0.5, -1.0)


@cache
def found():
    return {n.name: n.value for n in find("B16").numbers()}


def cut(probs, kept):
    return [p / sum(probs[:kept]) for p in probs[:kept]]


def values(name, p, q):
    return [VALUES[name](a, b) for a, b in zip(p, q, strict=False)]


@pytest.mark.parametrize(
    ("name", "kept"), [("E_q[k1], E_q[k3], log-probs of π, top-2", 2), ("the same, top-3", 3)]
)
def test_log_probs_of_the_whole_policy(name, kept):
    q = cut(P4, kept)
    by_hand = [mean(q, values(k, P4[:kept], REF2)) for k in ("k1", "k3")]
    assert found()[name] == pytest.approx(by_hand, abs=1e-12)
    inside, ref_inside = sum(P4[:kept]), sum(REF2[:kept])
    of_q = kl(q, REF2[:kept])
    closed = [of_q + log(inside), of_q + log(inside) + ref_inside / inside - 1]
    assert by_hand == pytest.approx(closed, abs=1e-14)


def test_divergences_and_ratios():
    got = found()
    assert got["KL(π‖ref), said to be estimated"] == pytest.approx(kl(P4, REF2))
    both = [kl(cut(P4, n), REF2[:n]) for n in (2, 3)]
    assert got["KL(q‖ref), top-2 and top-3"] == pytest.approx(both)
    ratios = [mean(cut(P4, n), [b / a for a, b in zip(P4[:n], REF2, strict=False)]) for n in (2, 3)]
    assert got["E_q[ref/π], top-2 and top-3, needed to be 1"] == pytest.approx(ratios)


def test_log_probs_of_the_cut_policy():
    q = cut(P4, 2)
    for name, ref in (
        ("E_q[k1], E_q[k3], log-probs of q, top-2", REF2[:2]),
        ("the same with ref cut to S, too", cut(REF2, 2)),
    ):
        by_hand = [mean(q, values(k, q, ref)) for k in ("k1", "k3")]
        assert found()[name] == pytest.approx(by_hand, abs=1e-12)
        assert by_hand[1] - by_hand[0] == pytest.approx(sum(ref) - 1, abs=1e-14)


def test_the_gradient_of_k1_is_that_of_the_kept_mass():
    numeric = []
    for v in range(4):
        up, down = list(LOGITS), list(LOGITS)
        up[v] += 1e-5
        down[v] -= 1e-5
        numeric.append((log(sum(softmax(up)[:2])) - log(sum(softmax(down)[:2]))) / 2e-5)
    name = "E_q[∇k1], log-probs of π, top-2, said to be 0"
    assert found()[name] == pytest.approx(numeric, abs=1e-9)


def test_k3_by_rejection():
    """40,000 tokens of π, those outside of S thrown away; within 4 standard errors of .218653."""
    drawn = [a for a in Random(9).choices(range(4), weights=P4, k=40_000) if a < 2]
    each = values("k3", P4[:2], REF2)
    error = sd(cut(P4, 2), each) / sqrt(len(drawn))
    assert abs(sum(each[a] for a in drawn) / len(drawn) - 0.218653) < 4 * error
