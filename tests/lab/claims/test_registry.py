"""Claims are found by id, name and section; their text is refused if it lacks something."""

import pytest

from rlproof.lab.claims import registry
from rlproof.lab.claims.model import Number, Verified, number
from rlproof.lab.claims.page import HEADINGS, parse
from rlproof.lab.claims.registry import find, modules, only

GOOD = """A7. One line.

Statement:
    Two
    lines.

        f = 1

Conditions:
    None.
Proof:
    Short.
Refutes:
    nothing
Sources:
    * Somebody, "Title",
      arXiv:1234.56789 (abstract seen)
    * Another (from memory)
"""


@pytest.mark.parametrize("spelling", ["A3", "a3", " a3 ", "own-sample-only-scales",
                                      "own_sample_only_scales"])  # fmt: skip
def test_ids_and_names_are_accepted(spelling):
    assert find(spelling).id == "A3"


def test_ids_are_in_their_natural_order():
    ids = list(modules())
    assert ids == sorted(ids, key=lambda i: (i[0], int(i[1:])))
    assert ids.index("A3") < ids.index("A9") < ids.index("B4")


def test_only_takes_ids_sections_or_nothing():
    assert [c.id for c in only("B4", "A1")] == ["B4", "A1"]
    assert {c.id for c in only("c")} == {i for i in modules() if i[0] == "C"}
    assert [c.id for c in only()] == list(modules())


def test_an_unknown_claim_suggests_a_near_one():
    with pytest.raises(KeyError, match="own-sample-only-scales"):
        find("own-sample-scales")


def test_text_is_split_at_its_headings():
    page = parse(GOOD)
    assert (page.id, page.title) == ("A7", "One line.")
    assert page.sections["Statement"] == "Two\nlines.\n\n    f = 1"
    assert [(s.text, s.verified) for s in page.sources] == [
        ('Somebody, "Title", arXiv:1234.56789', Verified.ABSTRACT),
        ("Another", Verified.MEMORY),
    ]


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_missing_heading_is_refused(heading):
    with pytest.raises(ValueError, match="has headings"):
        parse(GOOD.replace(f"{heading}:\n", ""))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    Short.\n", "", "nothing under"),
        ("Proof:", "Demonstration:", "has headings"),
        ("    Short.\n", "    Short.\nProof:\n    Twice.\n", "has headings"),
        ("A7. One line.", "Seventh. One line.", "starts with its id"),
        ("A7. One line.", "A7. No full stop", "starts with its id"),
        ("(from memory)", "(I think)", "must end in one of"),
        ("    * Another", "    Another", "must end in one of"),
        ("    * Somebody", "    Somebody", "starts with"),
        ("\nStatement:", "\nStray text.\n\nStatement:", "has headings"),
    ],
)
def test_other_faults_of_the_text_are_refused(old, new, message):
    assert old in GOOD
    with pytest.raises(ValueError, match=message):
        parse(GOOD.replace(old, new))


def test_no_text_is_refused():
    with pytest.raises(ValueError, match="starts with its id"):
        parse(None)


def test_two_files_of_one_id_are_refused(tmp_path, monkeypatch):
    for name in ("a01_first.py", "a01_second.py", "page.py"):
        (tmp_path / name).touch()
    monkeypatch.setattr(registry, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match="two claims have one id"):
        modules.__wrapped__()


@pytest.mark.parametrize(
    ("value", "expected", "holds"),
    [
        (1.0, 1.05, True),
        (1.0, 1.2, False),
        (float("nan"), 1.0, False),
        ((1.0, 2.0), (1.0, 2.05), True),
        ((1.0, 2.0), (1.0, 2.2), False),
        ((1.0, 2.0), (1.0,), False),
        ((float("nan"), 1.0), (1.0, 1.0), False),
        ((), (), False),
    ],
)
def test_a_number_holds_within_its_tolerance(value, expected, holds):
    assert Number("x", value, expected, 0.1, "by hand").holds is holds


def test_arrays_become_plain_floats():
    import numpy as np

    made = number("x", np.array([1, 2]), np.float64(3), 0.1, "by hand")
    assert made.value == (1.0, 2.0)
    assert type(made.expected) is float
