"""C2 by a loss written out for four rows, and by plain sums over four actions."""

from math import exp, log

import pytest
from tests.lab.claims.c_plain import ADV, PI, error, held, pull, shifted

from rlproof.lab.claims.c02_on_policy_the_clip_is_silent import ADVANTAGES, APART, ROWS
from rlproof.lab.claims.registry import find
from rlproof.lab.fixtures import EOS_LOGITS, eos

FOUND = {n.name: n.value for n in find("C2").numbers()}


def loss(logits):
    """Sequence-mean min-clip with sample std left out, over the four rows of the claim."""

    def logps(z):
        total = log(sum(map(exp, z)))
        return [x - total for x in z]

    family, total = eos().policy.family, 0.0
    new, old = logps(logits), logps(EOS_LOGITS)
    for row, adv in zip(ROWS, ADVANTAGES, strict=True):
        real = [int(t) for t, m in zip(family.tokens[row], family.mask[row], strict=True) if m]
        terms = [exp(new[t] - old[t]) for t in real]
        total -= sum(min(r * adv, min(max(r, 0.8), 1.2) * adv) for r in terms) / len(real) / 4
    return total


def test_value_and_gradient_of_four_rows():
    assert sorted(eos().policy.family.lengths[ROWS]) == [1, 2, 3, 5]
    assert FOUND["loss of four rows"] == pytest.approx(loss(EOS_LOGITS), abs=1e-12)
    numeric = []
    for v in range(4):
        up, down = list(EOS_LOGITS), list(EOS_LOGITS)
        up[v] += 1e-5
        down[v] -= 1e-5
        numeric.append((loss(up) - loss(down)) / 2e-5)
    assert FOUND["its gradient by differences"] == pytest.approx(numeric, abs=1e-9)
    assert max(map(abs, numeric)) > 0.1


def test_four_faults_off_policy():
    new, ratios = shifted(APART)
    cases = list(zip(PI, ADV, ratios, strict=True))
    assert {(a > 0, held(a, r), abs(r - 1) > 0.2) for _, a, r in cases} == {
        (True, False, True),  # rewarded, but fell: max and the clip alone drop it
        (False, False, True),  # punished, but rose: the same
        (False, True, True),  # held
        (False, False, False),  # inside
    }
    right = pull([p * r * a * (not held(a, r)) for p, a, r in cases], new)
    wrong = {
        "off-policy relative error of max, P4": [
            p * r * a * (not held(-a, r)) for p, a, r in cases
        ],
        "off-policy relative error of no clip, P4": [p * r * a for p, a, r in cases],
        "off-policy relative error of the clip alone, P4": [
            p * r * a * (abs(r - 1) <= 0.2) for p, a, r in cases
        ],
        "off-policy, old refreshed, P4": [p * a for p, a, _ in cases],
    }
    for name, weights in wrong.items():
        assert FOUND[name] == pytest.approx(error(pull(weights, new), right), abs=1e-10)
    for name in ("max", "no clip", "the clip alone"):
        assert FOUND[f"on-policy relative error of {name}"] < 1e-12
    for world in ("P4, sequence-mean", "EOS, token-mean", "TREE, sequence-sum"):
        assert FOUND[f"E and Cov of min-clip − REINFORCE, {world}, G = 2"] < 1e-12
