"""Trials of advantage functions, through a script in the sandbox."""

from functools import reduce
from operator import add

import pytest

from rlproof.bind.advantages import AdvantagesImplementation
from rlproof.bind.sandbox import Sandbox
from rlproof.faults.seen import ScriptError
from rlproof.probe.advantages import CLOSE, EQUAL, GROUP, REWARDS, ROUNDED, Trial, observe
from rlproof.read.script import read
from rlproof.read.targets import Role

SCRIPT = """\
def group_advantages(rewards, group_size):
    out = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        mean = sum(group) / len(group)
        std = (sum((r - mean) ** 2 for r in group) / len(group)) ** 0.5
        out += [(r - mean) / {divisor} for r in group]
    return out
"""


def ask(folder, text):
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    script = read(str(path))
    with Sandbox(script.source) as sandbox:
        return observe(AdvantagesImplementation(script, script.of(Role.ADVANTAGES)[0], sandbox))


def test_guarded_function(tmp_path):
    seen = ask(tmp_path, SCRIPT.format(divisor="(std + 1e-6)"))
    # 1, 0, ½, 0: mean 0.375, squared deviations 0.390625 + 2·0.140625 + 0.015625 = 0.6875,
    # std √(0.6875/4) = 0.414578, so the first advantage is 0.625/0.414578 = 1.50756.
    assert seen.plain.got[0] == pytest.approx(1.50756, abs=1e-4)
    assert all(trial.sane for trial in (*seen.equal, *seen.rounded))
    assert [trial.got for trial in seen.equal] == [[0.0] * 4] * 2
    assert seen.single.got == [0.0, 0.0]
    # (0, d): std d/2, so the second advantage is (d/2)/(d/2 + 1e-6).
    expected = [(d / 2) / (d / 2 + 1e-6) for d in CLOSE]
    assert [trial.got[1] for trial in seen.close] == pytest.approx(expected)


def test_second_group_is_changed_and_the_first_is_not(tmp_path):
    seen = ask(tmp_path, SCRIPT.format(divisor="(std + 1e-6)"))
    assert seen.plain.rewards == REWARDS
    assert seen.plain.rewards[:GROUP] == seen.changed.rewards[:GROUP]
    assert seen.plain.rewards[GROUP:] != seen.changed.rewards[GROUP:]
    assert seen.plain.got[:GROUP] == seen.changed.got[:GROUP]


def test_unguarded_function(tmp_path):
    seen = ask(tmp_path, SCRIPT.format(divisor="std"))
    assert [trial.text for trial in seen.equal] == ["ZeroDivisionError"] * len(EQUAL)
    assert not any(trial.sane for trial in seen.equal)
    assert seen.plain.error is None
    assert seen.single.error.kind == "ZeroDivisionError"


def test_rounded_groups_are_not_exact(tmp_path):
    """Where a mean differs from its members in the last place, std is about 1e-17.

    Added one by one all do. Python 3.12's `sum` compensates, and some are exact then.
    """
    for rewards in ROUNDED:
        assert reduce(add, rewards) / len(rewards) != rewards[0]
    seen = ask(tmp_path, SCRIPT.format(divisor="std"))
    rounded = [sum(rewards) / len(rewards) != rewards[0] for rewards in ROUNDED]
    assert any(rounded)
    assert [trial.got is not None and not trial.sane for trial in seen.rounded] == rounded


def test_nan_is_a_failure_of_the_trial(tmp_path):
    seen = ask(tmp_path, SCRIPT.format(divisor="(std or float('nan'))"))
    assert [trial.text for trial in seen.equal] == ["nan"] * len(EQUAL)
    assert seen.plain.got is not None


@pytest.mark.parametrize(
    ("trial", "text", "sane"),
    [
        (Trial([1.0, 1.0], 2, [0.0, 9e-4]), "[0, 0.0009]", True),
        (Trial([1.0, 1.0], 2, [0.0, 1e-3]), "[0, 0.001]", False),  # the limit is below 1e-3
        (Trial([1.0], 1, [-1 / 3]), "[-0.3333]", False),
        (Trial([1.0], 1, None, ScriptError("ValueError", "why", 3, "f")), "ValueError", False),
    ],
)
def test_outcome_of_a_trial(trial, text, sane):
    assert trial.text == text
    assert trial.sane is sane


@pytest.mark.parametrize("rewards", EQUAL)
def test_equal_groups_are_exact(rewards):
    assert sum(rewards) / len(rewards) == rewards[0]
