"""The page as such: structure, links, escaping, scripts, and what it refuses."""

import base64
import hashlib
import re

import pytest
from tests.report.reading import Read

from rlproof.report.html import (
    Badge,
    Chart,
    Code,
    Details,
    Diff,
    Formula,
    FormulaError,
    Link,
    Listing,
    Mark,
    NumberTable,
    Prose,
    Section,
    Series,
    Text,
    Tone,
    page,
)

HOSTILE = "<script>alert(1)</script> ]]> --> \" ' & </pre></style> \x1b[31m \x00"
CHART = Chart(HOSTILE, "x " + HOSTILE, "y", [0.0, 0.5, 1e-7], [Series(HOSTILE, [1.0, None, 2.5])])
EVERYTHING = [
    Text(HOSTILE, Tone.ERROR),
    Prose(HOSTILE + r" \(a_i\)"),
    Formula(r"L = -\sum_i w_i s_i", HOSTILE),
    NumberTable(
        HOSTILE,
        ["a", "b", "c", HOSTILE],
        [
            [Link(HOSTILE, "one"), Code(HOSTILE), Badge(HOSTILE), HOSTILE],
            [1, 0.1 + 0.2, None, Formula("x")],
        ],
    ),
    CHART,
    Listing(HOSTILE, [HOSTILE, "x = 1"], "src",
            [Mark(1, 1, 0, 9, Tone.ERROR, Link(HOSTILE, "one"))]),
    Diff(HOSTILE, f"--- a\n+++ b\n@@ 1 @@\n-{HOSTILE}\n+{HOSTILE}"),
    Details(HOSTILE, [Text(HOSTILE)]),
]  # fmt: skip
PAGE = page(HOSTILE, [Section(HOSTILE, EVERYTHING, "one", Badge(HOSTILE))], [Text(HOSTILE)])


def test_everything_hostile_is_text():
    read = Read(PAGE)
    assert read.tags.count("script") == 2  # uPlot, and the page's own
    assert "<script>alert" not in PAGE
    assert read.words.count("<script>alert(1)</script> ]]> -->") >= 16
    assert not re.search("[\x00-\x08\x0b-\x1f]", PAGE)
    assert r"\x1b[31m" in read.words


def test_the_page_needs_nothing_else():
    read = Read(PAGE)
    assert not {"img", "link", "iframe", "object", "embed", "base", "form"} & set(read.tags)
    assert not [a for _, a in read.attributes if {"src", "srcset", "action", "onclick"} & set(a)]
    assert all(link.startswith("#") for link in read.links)
    assert "url(" not in PAGE
    assert "@import" not in PAGE


def test_only_its_own_scripts_may_run():
    """The policy names the hash of every script that is there, and no other source."""
    policy = next(a["content"] for t, a in Read(PAGE).attributes if "http-equiv" in a)
    scripts = re.findall(r"<script>(.*?)</script>", PAGE, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; script-src "
        + " ".join(f"'sha256-{h}'" for h in hashes)
        + "; base-uri 'none'; form-action 'none'"
    )


def test_structure():
    read = Read(PAGE)
    assert len(read.ids) == len(set(read.ids))
    assert {link[1:] for link in read.links} <= set(read.ids)
    assert read.headings == [1, 2]
    assert read.tags.count("caption") == read.tags.count("table") == 2
    assert {"main", "header", "footer"} <= set(read.tags)
    assert ("html", {"lang": "en"}) in read.attributes
    first = next(a for t, a in read.attributes if t == "a")
    assert first["class"] == "skip"


def test_a_chart_is_a_table_first():
    """Without JavaScript the numbers are what one sees."""
    read = Read(page("t", [Section("s", [CHART])]))
    assert ("details", {"class": "numbers", "open": None}) in read.attributes
    assert "1e-07" in read.words
    assert "–" in read.words
    assert "2.5" in read.words


def test_the_licence_of_what_is_copied_in_comes_with_it():
    assert "Permission is hereby granted" in PAGE
    assert "Leon Sorokin" in PAGE


def test_a_page_without_charts_has_no_script():
    text = page("t", [Section("s", [Text("x")])])
    assert "<script" not in text
    assert "script-src &#39;none&#39;" in text
    assert len(text) < 20_000


def test_the_same_bytes_again():
    assert page(HOSTILE, [Section(HOSTILE, EVERYTHING, "one", Badge(HOSTILE))],
                        [Text(HOSTILE)]) == PAGE  # fmt: skip


def test_nested_sections_and_their_anchors():
    text = page("t", [Section("A b!", [Section("A b!", [Section("Deep", [Section("x")])])])])
    read = Read(text)
    assert read.headings == [1, 2, 2, 3, 4, 5]  # the second is the table of contents
    assert {"a-b", "a-b-2", "deep", "x"} <= set(read.ids)
    assert "#deep" not in read.links  # the contents end at the third level


def test_numbers_of_a_table_are_short():
    text = page("t", [Section("s", [NumberTable("c", ["a", "b"], [["x", 0.1 + 0.2]])])])
    assert '<td class="number">0.3</td>' in text
    assert '<th scope="row">x</th>' in text


@pytest.mark.parametrize(
    ("sections", "error"),
    [
        ([Section("s", [NumberTable("c", ["a"], [[Link("x", "lost")]])])], "no such anchor: lost"),
        ([Section("s", [], "a"), Section("t", [], "a")], "given twice: anchor a"),
    ],
)
def test_links_are_checked(sections, error):
    with pytest.raises(ValueError, match=error):
        page("t", sections)


def test_refusals():
    with pytest.raises(FormulaError):
        page("t", [Section("s", [Formula(r"\nosuch")])])
    with pytest.raises(TypeError, match="str is no building block"):
        page("t", [Section("s", ["text"])])
    with pytest.raises(ValueError, match="s: 1 values, 2 x"):
        Chart("t", "x", "y", [1.0, 2.0], [Series("s", [1.0])])
