"""The defence as Markdown: read back by a parser, not by eye."""

import re

import pytest
from markdown_it import MarkdownIt
from tests.defence import scripts

from rlproof.defence.claims import Computed
from rlproof.defence.script import defend_script
from rlproof.defence.trainer import defend_trainer
from rlproof.lab.claims.registry import find, modules
from rlproof.read.script import read
from rlproof.report.defence import markdown

PARSER = MarkdownIt("commonmark").enable("table")


def tokens(text):
    return PARSER.parse(text)


def words(text):
    """All text of the parsed document."""
    found = []
    for token in tokens(text):
        inner = [token, *(token.children or [])]
        kinds = ("text", "code_inline", "code_block", "softbreak")
        found += [one.content or "\n" for one in inner if one.type in kinds]
    return " ".join(" ".join(found).split())


def test_a_claim_with_its_numbers():
    made = markdown.trainer(defend_trainer(["A9"]))
    said = words(made)
    claim = find("A9")
    assert claim.title in said
    assert "(r_i − r̄)/σ̂·s_i" in said
    kinds = [token.type for token in tokens(made)]
    assert kinds.count("table_open") == 2
    assert "code_block" in kinds, "indented formulas stay as they are"
    rows = kinds.count("tr_open")
    assert rows == 1 + 1 + len(claim.numbers()) + 1, "a line, the numbers, two headers"


@pytest.mark.parametrize("known", list(modules()))
def test_no_text_of_a_claim_turns_into_markup(known):
    """Emphasis, links or HTML within a claim would be a sign that was not escaped."""
    claim = find(known)
    made = markdown.told(claim)
    for token in tokens(made):
        for one in token.children or []:
            assert one.type not in ("em_open", "link_open", "html_inline", "image")
            if one.type == "strong_open":
                assert token.content in {
                    f"**{name}**"
                    for name in ("Statement", "Conditions", "Proof", "Refutes", "Sources")
                }
    squeezed = re.sub(r"\s", "", words(made))
    for text in (claim.statement, claim.proof, claim.refutes):
        assert re.sub(r"\s", "", text) in squeezed


def test_a_script(tmp_path):
    path = tmp_path / "a_script_of_mine.py"
    path.write_text(scripts.BATCH_AND_PADDING, encoding="utf-8")
    defence = defend_script(read(str(path)), seconds=60)
    made = markdown.script(defence, [Computed(find(known)) for known in defence.claims])
    said = words(made)
    for one in defence.optimised:
        assert all(text in said for text in one.says)
    for part in defence.parts:
        assert all(text in said for text in part.says)
        assert part.title in said
    assert "a_script_of_mine.py" in said
    assert "MSK001" in said
    tables = sum(len([t for t in p.tables if t.rows]) for p in defence.parts)
    kinds = [token.type for token in tokens(made)]
    assert kinds.count("table_open") == tables + len(defence.compared)
