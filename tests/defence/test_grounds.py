"""The tiny trainer's lines and their grounds: a change of either is noticed."""

import ast

import pytest

from rlproof.defence.grounds import (
    GROUNDS,
    MATHEMATICAL,
    UngroundedError,
    grounded,
    source,
    ungrounded,
)
from rlproof.defence.statements import canonical, is_trivial, statements
from rlproof.lab.claims.registry import modules


def test_every_ground_stands_on_the_line_it_names():
    lines = source().splitlines()
    found = grounded()
    assert len(found) == len(GROUNDS) >= 50
    for one in found:
        text = " ".join(line.strip() for line in lines[one.line - 1 : one.end_line])
        head = text.split("  #")[0] if one.ground.code.endswith(":") else text
        assert canonical(head) == one.ground.code
    assert [one.line for one in found] == sorted(one.line for one in found)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("surrogate = min(ratio", "surrogate = max(ratio"),
        ("total += -surrogate + beta * kl", "total += surrogate + beta * kl"),
        ("old_logps = token_logps(theta,", "old_logps = token_logps(ref,"),
        ("return outside / len(real)", "return outside / len(mask)"),
    ],
)
def test_a_changed_statement_is_noticed(before, after):
    assert before in source()
    with pytest.raises(UngroundedError, match="nowhere"):
        grounded(source().replace(before, after))


def test_moved_lines_are_followed():
    moved = grounded("# one more line\n" + source())
    assert [one.line for one in moved] == [one.line + 1 for one in grounded()]


def test_every_mathematical_statement_has_a_ground():
    assert ungrounded() == []
    names = {s.function for s in statements(source())}
    assert set(MATHEMATICAL) <= names


def test_a_new_statement_has_none():
    total = "        total += -surrogate"
    text = source().replace(total, f"        kl = kl * 2\n{total}")
    assert [s.code for s in ungrounded(text)] == ["kl = kl * 2"]


def test_grounds_name_claims_that_exist_and_say_why():
    for ground in GROUNDS:
        assert ground.claims
        assert set(ground.claims) <= set(modules()), ground
        assert ground.why.endswith(".")
        assert "\\" not in ground.why


@pytest.mark.parametrize(
    ("code", "trivial"),
    [
        ("grad = [[0.0] * len(row) for row in theta]", True),
        ("total = 0.0", True),
        ("_check_groups(rewards, group_size)", True),
        ("return advantages", True),
        ("return [0.0] * len(group)", False),
        ("total = 0.5 * x", False),
        ("if x > 0: y = 1", False),
        ("total += 1", False),
    ],
)
def test_what_counts_as_mathematics(code, trivial):
    assert is_trivial(ast.parse(code).body[0]) == trivial
