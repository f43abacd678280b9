"""C9 in fractions."""

from fractions import Fraction

import pytest

from rlproof.lab.claims.registry import find

FOUND = {n.name: n.value for n in find("C9").numbers()}
OLD = [Fraction(1, 100), Fraction(1, 2), Fraction(4, 5), Fraction(9, 10)]


def caps(high):
    """A slope is left while ρ ≤ 1 + ε, and π_new ≤ 1 always."""
    return [min(Fraction(1), old * (1 + high)) for old in OLD]


def test_caps():
    plain, higher = caps(Fraction(1, 5)), caps(Fraction(28, 100))
    for high, row in ((".2", plain), (".28", higher)):
        name = f"cap for π_old = .01, .5, .8, .9 at ε_high = {high}"
        assert FOUND[name] == pytest.approx([float(x) for x in row])
    gaps = [float(cap - old) for cap, old in zip(plain, OLD, strict=True)]
    name = "room above, said to be the same for all, ε_high = .2"
    assert FOUND[name] == pytest.approx(gaps, abs=1e-9)
    never = [float(1 / (1 + high)) for high in (Fraction(1, 5), Fraction(28, 100))]
    assert FOUND["never clipped above from π_old, ε_high = .2 and .28"] == pytest.approx(never)


@pytest.mark.parametrize("low", [0.2, 0.95, 1.0])
def test_the_lower_clip(low):
    """For A = −1 the term −max(ρ, 1 − ε) moves with ρ only above 1 − ε."""

    def s(ratio):
        return min(-ratio, -min(max(ratio, 1 - low), 1.2))

    slopes = [r * (s(r * (1 + 1e-6)) - s(r * (1 - 1e-6))) / (2e-6 * r) for r in (0.5, 0.1, 0.001)]
    [found] = [
        value
        for name, value in FOUND.items()
        if name.endswith(f"ε_low = {str(low).removeprefix('0').removesuffix('.0')}")
    ]
    assert found == pytest.approx(slopes, abs=1e-9)
