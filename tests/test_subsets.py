"""All 128 subsets of seven repairs: exactly the faults that remain are found.

Two of them, R and S, cancel in the sign of the gradient, so that the trainer with both still
learns; G, M and O can't be seen in the reward at all.
"""

from itertools import combinations

import pytest

from tests.support.checking import check_text, strong
from tests.support.sampling import one_in, only
from tests.support.trainers import LETTERS, expected, trainer

SUBSETS = ["".join(c) for n in range(len(LETTERS) + 1) for c in combinations(LETTERS, n)]
ONE_LEFT_OR_ONE_DONE = [
    *("", LETTERS),
    *LETTERS,
    *(LETTERS.replace(letter, "") for letter in LETTERS),
]


def test_there_are_128_subsets():
    assert len(set(SUBSETS)) == 128


@pytest.mark.parametrize("fixes", only(ONE_LEFT_OR_ONE_DONE, SUBSETS))
def test_every_subset(tmp_path, fixes):
    """MET001 is left in every other script, so that both states occur with every fault."""
    fixes += "C" * (SUBSETS.index(fixes) % 2)
    report = check_text(tmp_path, trainer(fixes))
    assert strong(report) == expected(fixes)
    assert all(finding.evidence for finding in report.findings)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("fixes", one_in(10, ONE_LEFT_OR_ONE_DONE))
def test_arrays_give_the_same_findings(tmp_path, library, fixes):
    if library == "torch":
        pytest.importorskip("torch")
    report = check_text(tmp_path, trainer(fixes, library))
    assert strong(report) == expected(fixes)


@pytest.mark.parametrize("library", ["list", "numpy", "torch"])
def test_a_repaired_trainer_is_clean_and_named(tmp_path, library):
    if library == "torch":
        pytest.importorskip("torch")
    report = check_text(tmp_path, trainer(LETTERS + "C", library))
    assert strong(report) == []
    assert [t.recipe for t in report.targets if t.role == "loss"] == ["grpo"]
    assert report.skipped == ()


def test_findings_point_at_the_lines_at_fault(tmp_path):
    source = trainer("")
    lines = source.split("\n")
    spans = {
        f.code: (f.place.line, f.place.end_line) for f in check_text(tmp_path, source).findings
    }

    def line_of(text):
        [number] = [i for i, line in enumerate(lines, 1) if text in line]
        return number

    assert spans["ADV001"] == (line_of("mean = sum"), line_of("return [(r - mean) / std"))
    assert spans["ADV004"] == (line_of("return [(r - mean) / std"),) * 2
    assert spans["SUR001"] == (line_of("ratio = new_logps"),) * 2
    assert spans["SUR004"] == (line_of("surrogate = max"),) * 2
    assert spans["SUR005"] == (line_of("total += surrogate"),) * 2
    loop = (line_of("for t in range(len(mask[i]))"), line_of("count += 1"))
    assert spans["MSK001"] == spans["MSK002"] == loop
    assert spans["LOP001"] == (line_of("            old_logps = token_logps"),) * 2
    assert spans["MET001"] == (line_of('stats["clip_frac"] = max'),) * 2
