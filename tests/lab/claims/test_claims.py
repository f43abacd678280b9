"""Every claim parses and holds, and would not hold with another expected value."""

import subprocess
import sys
from dataclasses import replace

import pytest

from rlproof.lab.claims.registry import find, modules

IDS = list(modules())


@pytest.fixture(scope="module", params=IDS)
def claim_id(request):
    """Tests of one claim run one after the other, so that one process computes it."""
    return request.param


@pytest.fixture(scope="module")
def numbers(claim_id):
    return find(claim_id).numbers()


def test_the_claim_holds(claim_id, numbers):
    wrong = [f"{n.name}: {n.value}, expected {n.expected}" for n in numbers if not n.holds]
    assert not wrong, "\n".join(wrong)
    assert replace(find(claim_id), numbers=lambda: numbers).holds()
    assert numbers, "a claim without a number proves nothing"


def test_every_number_can_fail_and_says_where_it_comes_from(claim_id, numbers):
    """Another expected value, off by twice the tolerance, is refused."""
    assert len({one.name for one in numbers}) == len(numbers)
    for one in numbers:
        assert one.origin
        assert 0 < one.tolerance < 0.1
        shift = 2 * one.tolerance + one.error
        entries = one.expected if isinstance(one.expected, tuple) else (one.expected,)
        for place in range(len(entries)):
            shifted = [e + shift * (i == place) for i, e in enumerate(entries)]
            other = tuple(shifted) if isinstance(one.expected, tuple) else shifted[0]
            assert not replace(one, expected=other).holds


@pytest.mark.slow
def test_numbers_are_the_same_every_time(claim_id, numbers):
    assert find(claim_id).numbers() == numbers


def test_the_text_is_clean(claim_id):
    claim = find(claim_id)
    text = "\n".join([claim.title, claim.statement, claim.conditions, claim.proof, claim.refutes])
    assert "\\" not in text
    assert ".md" not in text
    assert all(len(line) <= 96 for line in text.splitlines())


def test_a_wrong_number_makes_the_claim_fail():
    claim = find("A3")
    first, *rest = claim.numbers()
    spoilt = replace(first, expected=(0.51,) * 4)
    assert not replace(claim, numbers=lambda: (spoilt, *rest)).holds()


def test_one_claim_is_loaded_alone_without_torch():
    code = (
        "import sys; from rlproof.lab.claims.registry import only\n"
        "assert all(c.holds() for c in only('C3'))\n"
        "print('torch' in sys.modules, *[m for m in sys.modules if '.claims.a' in m])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == ["False"]
