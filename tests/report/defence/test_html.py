"""The pages: small, whole, with every formula rendered and every number where it belongs."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.defence import scripts
from tests.report.reading import Read

from rlproof.defence.claims import Computed
from rlproof.defence.script import defend_script
from rlproof.defence.trainer import defend_trainer
from rlproof.lab.claims.model import number
from rlproof.lab.claims.registry import find
from rlproof.read.script import read
from rlproof.report.defence import html

BROKEN = Path(__file__).parents[3] / "examples" / "broken_trainer.py"


@pytest.fixture(scope="module")
def broken():
    return defend_script(read(str(BROKEN)), seconds=60)


def used(defence):
    return [Computed(find(known)) for known in defence.claims]


@pytest.fixture(scope="module")
def page(broken):
    return html.script(broken, used(broken))


def test_a_script_page_is_small_offline_and_in_order(page):
    assert len(page.encode()) < html.LIMIT
    seen = Read(page)
    assert len(set(seen.ids)) == len(seen.ids)
    assert seen.headings[0] == 1
    assert all(b - a <= 1 for a, b in zip(seen.headings, seen.headings[1:], strict=False))
    assert all(link.startswith("#") for link in seen.links)
    assert not any("http" in str(a.get("src", "")) for _, a in seen.attributes)


def test_every_formula_is_rendered(page):
    seen = Read(page)
    assert seen.tags.count("math") >= 6
    text = "".join(seen.math)
    assert "\\" not in text
    assert "&" not in text
    assert "∇" in text


def test_charts_tables_and_statements_are_there(page, broken):
    words = Read(page).words
    for part in broken.parts:
        assert part.title in words
        for text in part.says:
            assert text in words
    for one in broken.optimised:
        assert all(text in words for text in one.says)
    assert page.count('class="chart"') == 3, "prompt weight, clip, lengths"
    assert "2.60886" in words, "w_8(.01) of claim A9"


def test_objections_link_to_their_claims(page):
    assert 'href="#C1"' in page
    assert 'id="C1"' in page


def test_the_same_bytes_each_time(page, broken):
    assert html.script(broken, used(broken)) == page


def test_a_page_that_would_be_too_large_is_shortened(broken):
    large = replace(broken, parts=broken.parts * 60, objections=broken.objections * 60)
    made = html.script(large, used(broken))
    assert len(made.encode()) < html.LIMIT
    assert "Shortened" in Read(made).words


def test_hostile_text_is_text(tmp_path):
    path = tmp_path / "<script>alert(1)<.py"
    path.write_text(scripts.GRPO.replace("policy_loss", "policy_loss_of_é"), encoding="utf-8")
    defence = defend_script(read(str(path)), seconds=60)
    made = html.script(defence, used(defence))
    Read(made)
    assert "<script>alert" not in made


@pytest.fixture(scope="module")
def tiny():
    return defend_trainer(["A,C"])


def test_the_page_of_the_tiny_trainer(tiny):
    made = html.trainer(tiny)
    seen = Read(made)
    assert len(made.encode()) < html.LIMIT
    words = seen.words
    for one in tiny.computed:
        assert one.claim.id in seen.ids
        assert one.claim.title in words
    for one in tiny.lines:
        assert one.ground.code in words
        assert one.ground.why in words
    assert "all hold" in words


def test_indented_formulas_are_code(tiny):
    made = html.trainer(tiny)
    assert "E[√(K·(G − K))]/G" in Read(made).words
    before = made[: made.index("E[√(K·(G − K))]/G")]
    assert before.rindex("<pre><code>") > before.rindex("<p>")


def test_a_claim_that_fails_is_seen():
    wrong = number("what misses", 1.0, 2.0, 1e-9, "proof")
    defence = replace(defend_trainer(["A3"]), computed=(Computed(find("A3"), (wrong,)),))
    words = Read(html.trainer(defence)).words
    assert "does not hold" in words
    assert "MISS what misses: 1 (expected 2 ± 1e-09)" in words


@pytest.mark.slow
@pytest.mark.slow
def test_all_claims_fit_on_one_page():
    made = html.trainer(defend_trainer())
    assert len(made.encode()) < html.LIMIT
    seen = Read(made)
    assert sum(one[:1] in "ABCDE" and one[1:].isdigit() for one in seen.ids) >= 80
