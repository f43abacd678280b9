"""Faults of advantage functions that show only between groups, and what merely looks like them."""

from textwrap import indent

import pytest
from tests.support.checking import check_text, strong

Z = "(g - g.mean(1, keepdims=True)) / (g.std(1, keepdims=True) + eps)"
FUNCTION = '''\
import numpy as np


def group_advantages(rewards, group_size, eps=1e-6):
    """Advantages."""
    r = np.asarray(rewards, dtype=float)
    g = r.reshape(-1, group_size)
{body}
'''
LONE = FUNCTION.format(body=f"    return r if group_size == 1 else ({Z}).ravel()")


def codes(folder, body):
    return strong(check_text(folder, FUNCTION.format(body=indent(body, "    "))))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"return ({Z}).ravel()", []),
        ("return ((g - g.mean(0)) / (g.std(0) + eps)).ravel()", ["ADV012"]),
        ("return ((g - g.mean(1)) / (g.std(1) + eps)).ravel()", ["ADV012"]),
        ("return ((g - g.mean(1, keepdims=True)) / (g.std(0) + eps)).ravel()", ["ADV012"]),
        ("g = r.reshape(group_size, -1)\nreturn (g - g.mean(0)).ravel()", []),  # A, B, A, B
        (f"a = {Z}\nreturn ((a - a.mean()) / (a.std() + eps)).ravel()", ["ADV008"]),
        (f"a = {Z}\nreturn ((a - a.mean()) / (a.std(ddof=1) + eps)).ravel()", ["ADV008"]),
        ("a = g - g.mean(1, keepdims=True)\nreturn (a / (a.std() + eps)).ravel()", []),
        (f"return np.clip({Z}, -5, 5).ravel()", []),
    ],
)
def test_axes_and_second_normalisations(tmp_path, body, expected):
    assert codes(tmp_path, body) == expected


@pytest.mark.parametrize(
    "doc", ["GDPO for one reward.", "Decoupled normalisation of rewards.", "Advantages, as gdpo."]
)
def test_the_second_normalisation_of_gdpo_is_published(tmp_path, doc):
    twice = indent(f"a = {Z}\nreturn ((a - a.mean()) / (a.std() + eps)).ravel()", "    ")
    text = FUNCTION.format(body=twice)
    assert strong(check_text(tmp_path, text)) == ["ADV008"]
    assert strong(check_text(tmp_path, text.replace("Advantages.", doc))) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # 0 · NaN is NaN: a matrix of group means reaches every group
        ("i = np.arange(len(r)) // group_size\nreturn r - (i[:, None] == i) @ r / group_size",
         ["ADV009"]),
        ("m = np.nanmean(g, 1, keepdims=True)\nreturn ((g - m) / (g.std(1, keepdims=True) + eps))",
         ["ADV009"]),
        ("m, s = np.nanmean(g, 1, keepdims=True), np.nanstd(g, 1, keepdims=True)\n"
         "return np.nan_to_num((g - m) / (s + eps))", []),
        (f"assert np.isfinite(rewards).all()\nreturn {Z}", []),
        ("return (g - g.mean(1, keepdims=True)) / (r.std() + eps)", []),  # over the batch by nature
    ],
)  # fmt: skip
def test_missing_rewards(tmp_path, body, expected):
    assert codes(tmp_path, body) == expected


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("", []),
        ("def go(b):\n    return group_advantages(b, group_size=1)\n", ["ADV003"]),
        ("N = 1\n\n\ndef go(b):\n    return group_advantages(b, N)\n", ["ADV003"]),
        ("def go(b, n=1):\n    return group_advantages(b, n)\n", ["ADV003"]),
        ("def go(b, n=1):\n    n = len(b)\n    return group_advantages(b, n)\n", []),
        ("def go(b, n):\n    return group_advantages(b, n)\n", []),
        ("def go():\n    return group_advantages([1.0, 0.0], 1)\n", []),
        ("def test_lone(b):\n    assert group_advantages(b, 1) == b\n", []),
    ],
)
def test_where_a_group_size_of_one_is_set(tmp_path, use, expected):
    assert strong(check_text(tmp_path, f"{LONE}\n\n{use}")) == expected


def test_a_zero_for_a_lone_member_is_left_to_the_loop(tmp_path):
    use = "\n\ndef go(b):\n    return group_advantages(b, 1)\n"
    text = FUNCTION.format(body=f"    return ({Z}).ravel()") + use
    assert strong(check_text(tmp_path, text)) == []


TWO = '''\
import numpy as np


def group_advantages(rewards, group_size):
    """{doc}."""
    g = np.asarray(rewards, dtype=float).reshape(-1, group_size)
    return (g - g.mean(1, keepdims=True)) / (g.std(1, keepdims=True) + 1e-6)


def stored_advantages(rewards, group_size):
    """Advantages."""
    g = np.asarray(rewards, dtype=float).reshape(-1, group_size)
    return (g - g.mean(1, keepdims=True)) / (g.std(1, ddof={ddof}, keepdims=True) + 1e-6)
'''
BOTH = "\n\ndef go(b):\n    return group_advantages(b, 4), stored_advantages(b, 4)\n"


@pytest.mark.parametrize(
    ("doc", "ddof", "use", "expected"),
    [
        ("Advantages", 1, BOTH, ["ADV017"]),
        ("Advantages", 0, BOTH, []),
        ("Advantages", 1, "", []),
        ("In units of the population std", 1, BOTH, []),
    ],
)
def test_two_standard_deviations(tmp_path, doc, ddof, use, expected):
    assert strong(check_text(tmp_path, TWO.format(doc=doc, ddof=ddof) + use)) == expected
