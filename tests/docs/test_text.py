"""Text from claims and faults reaches the page as it is."""

import re

import pytest
from markdown_it import MarkdownIt
from rlproof_docs.text import code, fence, link_words, plain, table


def rendered(markdown):
    """What a reader sees of inline Markdown."""
    tree = MarkdownIt("commonmark").enable("table").parseInline(markdown)[0]
    return "".join(token.content for token in tree.children)


@pytest.mark.parametrize(
    "text",
    [
        "E[(1/G)·Σ_i (r_i − r̄)/σ̂·s_i] = w_G(p)·∇p",  # a link, if [ and ( are left alone
        "a*b*c and _x_ and __y__",
        "if x < 3 > 2 # not a heading ~~gone~~ $x$ {role}`x`",
        r"back\slash and a | bar",
        "lone ` backtick",
    ],
)
def test_plain_text_is_shown_as_it_is(text):
    assert rendered(plain(text)).replace("`x`", "x") == text.replace("`x`", "x")


def test_code_stays_code():
    assert plain("`a_b` and a_b") == r"`a_b` and a\_b"


def test_code_with_backticks_gets_two():
    assert code("a`b") == "``a`b``"
    assert code("") == ""


def test_bars_do_not_end_a_cell():
    lines = table(("a", "b"), [("`x|y`", "two\nlines")]).splitlines()
    assert lines[2] == r"| `x\|y` | two lines |"


def test_fence_grows_around_a_fence():
    assert fence("text", "```\nx\n```").startswith("````text\n")


def test_words_become_links_outside_code_only():
    text = "A1 and `A1`\n```\nA1\n```\nA1"
    linked = link_words(text, re.compile("A1"), "claim-")
    assert linked == "[A1](#claim-a1) and `A1`\n```\nA1\n```\n[A1](#claim-a1)"
