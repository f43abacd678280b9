"""Every subset of faults of a trainer is repaired completely, and trains as the right one does.

The right one is `trainer(LETTERS + "C")`; its own figures are in tests/test_subsets.py and
tests/test_tiny.py. Two trainers with the same objective draw the same samples, so that their
reward curves are equal and not only alike.
"""

import warnings

import pytest
from tests.support.checking import check_text, strong
from tests.support.repairing import repair_text, run
from tests.support.sampling import one_in
from tests.support.trainers import LETTERS, trainer
from tests.test_subsets import ONE_LEFT_OR_ONE_DONE, SUBSETS

from rlproof.judge.findings import FixStatus

SAMPLE = ["SKC", ""]
NEGATE = "negate both terms and keep max"


def rewards(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the torch trainer makes floats of its parameters
        _, history = run(text)["train"]()
    return [step["reward"] for step in history]


@pytest.fixture(scope="module")
def right():
    return {library: rewards(trainer(LETTERS + "C", library)) for library in ("list", "numpy")}


def assert_repaired(tmp_path, fixes, library, curve):
    report = repair_text(tmp_path, trainer(fixes, library))
    assert report.repair.status is FixStatus.VERIFIED, report.repair.message
    assert report.repair.passed == report.repair.cases >= 60
    assert strong(report.repair.after) == []
    assert rewards(report.repair.text) == pytest.approx(curve, abs=1e-9)
    offered = [label for label, _ in report.repair.alternatives]
    sign_pair = "M" not in fixes and "S" not in fixes
    assert [NEGATE in label for label in offered] == [True] * sign_pair
    return report


@pytest.mark.parametrize("fixes", one_in(2, SAMPLE))
def test_a_sample_of_subsets(tmp_path, fixes, right):
    assert_repaired(tmp_path, fixes, "list", right["list"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("fixes", [s for s in SUBSETS if s != LETTERS])
def test_every_subset(tmp_path, fixes, right):
    """MET001 is left in every other script, so that both states occur with every fault."""
    fixes += "C" * (SUBSETS.index(fixes) % 2)
    assert_repaired(tmp_path, fixes, "list", right["list"])


@pytest.mark.slow
def test_numpy(tmp_path, right):
    report = assert_repaired(tmp_path, "GRMSO", "numpy", right["numpy"])
    assert strong(check_text(tmp_path, report.repair.text)) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("fixes", ONE_LEFT_OR_ONE_DONE)
def test_arrays(tmp_path, library, fixes, right):
    if library == "torch":
        pytest.importorskip("torch")
    curve = right.get(library) or rewards(trainer(LETTERS + "C", library))
    assert_repaired(tmp_path, fixes, library, curve)


@pytest.mark.slow
def test_both_repairs_of_the_sign_pair_are_offered(tmp_path):
    """−min(a, b) = max(−a, −b): either is right, and each changes two tokens."""
    report = repair_text(tmp_path, trainer("GERKOC"))
    assert "min(plain, clipped)" in report.repair.text
    assert "-surrogate + beta * kl" in report.repair.text
    [(label, patch)] = report.repair.alternatives
    assert label == NEGATE
    assert "+            surrogate = max(-plain, -clipped)\n" in patch
    other = trainer("GERKOC").replace("max(plain, clipped)", "max(-plain, -clipped)")
    assert strong(check_text(tmp_path, other)) == []
    fixes = {f.code: f.fix for f in report.findings if f.fix and f.fix.alternatives}
    assert set(fixes) == {"SUR004", "SUR005"}


def test_nothing_is_offered_where_only_one_of_the_pair_is_wrong(tmp_path):
    assert repair_text(tmp_path, trainer("GERSKOC")).repair.alternatives == ()


@pytest.mark.slow
def test_same_input_same_repair(tmp_path):
    first, second = (repair_text(tmp_path, trainer("GERSKO"), offers=False) for _ in range(2))
    assert first.repair == second.repair
