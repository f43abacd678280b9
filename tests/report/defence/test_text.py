"""The defence for the terminal: what the short and the full form show."""

from dataclasses import replace

import pytest
from tests.defence import scripts

from rlproof.defence.claims import Computed
from rlproof.defence.model import Table
from rlproof.defence.script import defend_script
from rlproof.defence.trainer import TrainerDefence, defend_trainer
from rlproof.lab.claims.model import number
from rlproof.lab.claims.registry import find
from rlproof.read.script import read
from rlproof.report.defence import script_text, text
from rlproof.report.defence.words import told_number, value


def plain(made):
    import click

    return click.unstyle(made)


@pytest.fixture(scope="module")
def one():
    return defend_trainer(["A3"])


def test_the_short_form_has_lines_sentence_and_numbers(one):
    made = plain(text.render(one, False, 100))
    claim = find("A3")
    assert claim.title in made
    assert "mean = sum(group) / len(group)" in made
    assert "A3" in made
    assert "(0.5, 0.5, 0.5, 0.5)" in made
    assert "more that hold" in made
    assert "Proof" not in made
    assert "1 claim, 6 numbers computed in this run: all hold." in made
    assert "`--full`" in made


def test_the_full_form_has_everything(one):
    made = plain(text.render(one, True, 100))
    claim = find("A3")
    for told in (claim.statement, claim.conditions, claim.proof, claim.refutes):
        assert told.splitlines()[0] in made
    for source in claim.sources:
        assert source.text.split(",")[0] in made
    (computed,) = one.computed
    assert all(n.name.split(",")[0] in made for n in computed.numbers)
    assert "`--full`" not in made


def test_a_miss_is_always_shown():
    good = [number(f"good {i}", 1.0, 1.0, 1e-9, "proof") for i in range(5)]
    bad = number("what misses", 1.0, 2.0, 1e-9, "proof")
    made = plain(text.render(
        TrainerDefence((), (Computed(find("A3"), (*good, bad)),)), False, 100
    ))  # fmt: skip
    assert "MISS what misses: 1 (expected 2 ± 1e-09)" in made
    assert "A3 DO NOT HOLD" in made
    assert "and 3 more that hold" in made


def test_no_line_is_wider_than_the_terminal(one):
    for line in plain(text.render(one, False, 80)).splitlines():
        code = line[:4].strip().isdigit()
        assert code or len(line) <= 80


@pytest.mark.parametrize(
    ("x", "shown"),
    [(1.0, "1"), (-0.5, "−0.5"), ((1.0, -2.0), "(1, −2)"), (None, "–"), (float("nan"), "–"),
     (tuple(float(i) for i in range(10)), "(0, 1, 2, 3, 4, 5, 6, 7, …)"), (-0.0, "0")],
)  # fmt: skip
def test_values(x, shown):
    assert value(x) == shown


def test_an_expected_value_is_told_where_it_looks_different():
    assert told_number(number("a", 1.0, 1.0, 1e-9, "proof")) == "a: 1"
    assert told_number(number("a", 1e-12, 0.0, 1e-9, "proof")) == "a: 1e−12 (expected 0 ± 1e-09)"


def test_a_table_keeps_its_columns():
    one = Table("Numbers", ("what", "a long name of a column"), (("x", 1.5), ("longer", None)))
    caption, *lines = script_text.table(one, 100)
    assert caption.strip() == "Numbers"
    assert lines[-2].split() == ["x", "1.5"]
    assert lines[-1].split() == ["longer", "–"]
    assert lines[-2].rindex("1.5") + 3 == lines[-1].rindex("–") + 1


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "script.py"
    path.write_text(scripts.INVERTED, encoding="utf-8")
    return defend_script(read(str(path)), seconds=60)


def test_a_script_in_all_its_parts(script):
    claims = [Computed(find(known)) for known in script.claims]
    made = plain(script_text.render(script, claims, False, 100))
    assert "DESCENDS Σ_prompts 2·arcsin√p" in made
    assert "policy_loss, given group_advantages" in made
    for part in script.parts:
        assert f"{part.title}: {part.function}" in made
    assert "SUR005 surrogate-sign [error]" in made
    assert f"against C2: {find('C2').title}"[:80] in made
    assert "can't be defended" in made.splitlines()[-1]


def test_without_objections_nothing_is_to_be_objected_to(script):
    clean = replace(script, objections=())
    assert script_text.summary(clean).endswith("nothing to object to.")
