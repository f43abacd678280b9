"""Rates over scripts that no edit was written for: slips planted in every published variant."""

from pathlib import Path

import pytest
from tests.support.checking import check_text, strong
from tests.support.repairing import EVERY
from tests.support.slips import SLIPS, planted
from tests.support.variants import VARIANTS

from rlproof.judge.check import check
from rlproof.read.script import read
from rlproof.repair.fix import repair

PLAIN = tuple(v for v in VARIANTS if "import torch" not in v.text)


def outcomes(folder: Path, cases):
    """For each script with a finding: whether its repair is verified."""
    found = {}
    for name, text in cases:
        path = folder / "script.py"
        path.write_text(text, encoding="utf-8")
        script = read(str(path))
        report = check(script)
        if strong(report):
            repaired = repair(script, report, EVERY, offers=False)
            found[name] = repaired.repair.status == "verified"
    return found


def rate(found):
    wrong = [name for name, verified in found.items() if not verified]
    return 1 - len(wrong) / len(found), wrong


@pytest.mark.slow
def test_a_sample_of_single_slips(tmp_path):
    found = outcomes(tmp_path, list(planted(PLAIN, 1))[::40])
    share, wrong = rate(found)
    assert len(found) >= 3
    assert share >= 0.9, wrong


@pytest.mark.exhaustive
def test_single_slips(tmp_path):
    pytest.importorskip("torch")
    share, wrong = rate(outcomes(tmp_path, planted(VARIANTS, 1)))
    assert share >= 0.9, wrong


@pytest.mark.exhaustive
def test_pairs_of_slips(tmp_path):
    found = outcomes(tmp_path, list(planted(PLAIN, 2))[::3])
    share, wrong = rate(found)
    assert len(found) >= 50
    assert share >= 0.8, wrong


@pytest.mark.parametrize("name", SLIPS)
def test_every_slip_has_a_place(name):
    assert any(name in case for case, _ in planted(VARIANTS, 1))


@pytest.mark.slow
def test_slips_are_faults(tmp_path):
    """Most scripts with a slip have a finding; in the others it makes no difference, or a note."""
    cases = list(planted(PLAIN, 1))[::30]
    hits = sum(bool(strong(check_text(tmp_path, text))) for _, text in cases)
    assert hits >= 0.6 * len(cases)
