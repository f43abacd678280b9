"""C4 by plain sums over four actions and by recursion over a tree."""

import pytest
from tests.lab.claims.c_plain import ADV, PI, Tree, shifted

from rlproof.lab.claims.c04_min_is_pessimistic import BACK
from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C4").numbers()}


@pytest.mark.parametrize("name", ["forth", "back"])
def test_promises_on_p4(name):
    new, ratios = shifted() if name == "forth" else shifted(BACK)
    cases = [(p, r * a, min(max(r, 0.8), 1.2) * a) for p, r, a in zip(PI, ratios, ADV, strict=True)]
    sums = [sum(p * f(x, y) for p, x, y in cases) for f in (lambda x, _: x, min, max)]
    assert FOUND[f"E_old of ρ·A, min, max on P4, {name}"] == pytest.approx(sums, abs=1e-12)
    gain = sum(n * a for n, a in zip(new, ADV, strict=True))
    assert FOUND[f"V_new − V_old, P4, {name}"] == pytest.approx(gain, abs=1e-12)
    assert sums[1] <= sums[0] <= sums[2]


def test_a_promise_that_is_not_kept():
    """No ratio leaves the band, so min is the surrogate, which is more than the improvement."""
    tree = Tree(0, 0.05)
    ratios = [n / o for x in tree.old for n, o in zip(tree.new[x], tree.old[x], strict=True)]
    assert min(ratios) > 0.8
    assert max(ratios) < 1.2
    promise, gain = tree.surrogate(), tree.improvement()
    assert FOUND["E_old[Σ_t min] on TREE, moved by .05"] == pytest.approx(promise, abs=1e-12)
    assert FOUND["V_new − V_old on TREE, said to be at least that"] == pytest.approx(gain)
    assert promise > gain + 5e-5
    name = "the same without a clip: no token is clipped"
    assert FOUND[name] == pytest.approx(promise, abs=1e-12)


def test_the_bounds():
    excess = FOUND["max over a grid of min − ρ·A and of ρ·A − max"]
    assert max(excess) <= 0
