"""C3 by differences of the three functions, written for one token."""

from math import exp, log

import pytest

from rlproof.lab.claims.c03_min_keeps_the_corrections import RATIOS
from rlproof.lab.claims.registry import find

FUNCTIONS = {
    "min": lambda plain, clipped: min(plain, clipped),
    "max instead": lambda plain, clipped: max(plain, clipped),
    "clip alone": lambda plain, clipped: clipped,
}


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_by_differences(name, sign):
    def s(log_ratio):
        ratio = exp(log_ratio)
        return FUNCTIONS[name](ratio * sign, min(max(ratio, 0.8), 1.2) * sign)

    numeric = [(s(log(r) + 1e-6) - s(log(r) - 1e-6)) / 2e-6 for r in RATIOS]
    [found] = [
        n.value
        for n in find("C3").numbers()
        if f": {name}, A = {'+' if sign > 0 else '−'}1" in n.name
    ]
    assert found == pytest.approx(numeric, abs=1e-8)
