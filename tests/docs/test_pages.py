"""Every fault, recipe, claim, command and option has its place on the site."""

import re

import click
import pytest
from recipes import releases
from rlproof_docs import claims, cli, faults, recipes

from rlproof.cli import main
from rlproof.faults.page import HEADINGS
from rlproof.faults.registry import catalogue
from rlproof.lab.claims.model import Claim, Source, Verified, number
from rlproof.space.objective import Objective
from rlproof.space.published import OBJECTIVES
from rlproof.space.spellings import NO_SPELLING, spellings_of


@pytest.mark.parametrize("code", catalogue())
def test_a_fault_has_all_its_headings_and_its_metadata(code):
    text = faults.fault_page(catalogue()[code])
    assert text.startswith(f"(fault-{code.lower()})=\n# {code} {catalogue()[code].name}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(HEADINGS)
    assert f"**{catalogue()[code].severity}**" in text


def test_the_overview_has_every_fault_once():
    links = re.findall(r"\[([A-Z]{3}\d{3})\]\(#fault-", faults.overview())
    assert sorted(links) == list(catalogue())


def test_every_family_has_a_title():
    assert {code[:3] for code in catalogue()} <= set(faults.FAMILIES)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_recipe_has_its_source_formula_and_spellings(name):
    text = recipes.recipe_page(name, OBJECTIVES[name])
    assert "{math}" in text
    for arxiv in re.findall(r"arXiv:[\d.]+\d", OBJECTIVES[name].source):
        assert arxiv in text
    for spelling in spellings_of(name):
        assert f"`{spelling.options}`".replace("|", r"\|") in text
        assert releases(spelling) in text
    assert ("No framework that was read" in text) == (name in NO_SPELLING)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_recipe_lists_the_coordinates_that_differ(name):
    """Compared with the objective itself."""
    values, defaults = OBJECTIVES[name].objective.coordinates(), Objective().coordinates()
    listed = re.findall(r"^\| `([\w.]+)` \|", recipes.recipe_page(name, OBJECTIVES[name]), re.M)
    differing = [axis for axis in values if axis != "name" and values[axis] != defaults[axis]]
    assert [axis for axis in listed if axis in values] == differing


def test_frameworks_have_all_their_spellings():
    for framework in recipes.HOW_TO.values():
        text = recipes.of_framework(framework)
        for name in OBJECTIVES:
            mine = [s for s in spellings_of(name) if s.framework == framework]
            assert (f"](#{recipes.label(name)})\n" in text) == bool(mine)


def test_file_names_are_unique():
    assert len({recipes.slug(name) for name in OBJECTIVES}) == len(OBJECTIVES)


def a_claim():
    return Claim(
        id="A1",
        name="one",
        title="One * holds.",
        statement="Then\n\n    x_1 = E[r](s)\n\nfor all x_1, by [A2] and `A2`.",
        conditions="None.",
        proof="1. By (A2).\n* And so.",
        refutes="nothing",
        sources=(Source("Somebody, arXiv:1", Verified.MEMORY),),
        numbers=lambda: (),
    )


def test_a_claim_shows_what_was_computed_beside_what_is_expected():
    one = number("n", 2 / 3, 0.6667, 1e-4, "closed form")
    found = (one, number("m", (-1, 2), (-1, 3), 1e-9, "counted"))
    text = claims.claim_page(a_claim(), found)
    assert "| n | 0.666667 | 0.6667 | 0.0001 | closed form |" in text
    assert "(from memory)" in text
    assert claims.failing({"A1": found}) == ["claim A1: m is (−1, 2), expected (−1, 3)"]


def test_formulas_of_a_claim_stand_by_themselves():
    text = claims.claim_page(a_claim(), ())
    assert "```{code-block} text\n:class: formula\n\nx_1 = E[r](s)\n```" in text


def test_a_claim_links_to_others_but_not_from_code_or_to_itself():
    text = claims.claim_page(a_claim(), ())
    assert text.count("[A2](#claim-a2)") == 2
    assert "`A2`" in text
    assert "#claim-a1" not in text


def test_the_command_line_has_every_command_and_option():
    text = cli.document()
    for name, command in main.commands.items():
        if command.hidden:
            continue
        section = text.split(f"## rlproof {name}\n")[1].split("\n## ")[0]
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.opts[-1] in section, (name, option.opts)
