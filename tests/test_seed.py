"""The original script, where the development material is at hand; visibly skipped elsewhere."""

import os
from pathlib import Path

import pytest

from rlproof import tiny
from rlproof.checks import Options, check_paths
from rlproof.judge.check import check
from rlproof.read.script import read
from tests.support.checking import check_text, strong
from tests.support.repairing import run

SEED = Path(os.environ.get("RLPROOF_SEED", Path(__file__).parents[2] / "shared/seed/grpo_seed.py"))
pytestmark = pytest.mark.skipif(not SEED.exists(), reason=f"{SEED} is not there")

EXPECTED = {
    "ADV001": (52, 54),
    "ADV004": (54, 54),
    "MSK001": (63, 71),
    "MSK002": (63, 71),
    "SUR001": (64, 64),
    "SUR004": (67, 67),
    "SUR005": (70, 70),
    "LOP001": (113, 113),
    "MET001": (114, 114),
}
GROUPED = """\
    out = []
    for k in range(0, len(rewards), group_size):
        out += _group(rewards[k : k + group_size], eps)
    return out


def _group(rewards, eps):
    mean = sum(rewards) / len(rewards)
"""
RATIO = """\
            if not mask[i][t]:
                continue
            ratio = math.exp(new_logps[i][t] - old_logps[i][t])
"""
LOOP = "        for _ in range(epochs):\n"
OLD = "old_logps = token_logps(theta, rows, tokens)\n"
REPAIRS = [
    ("    mean = sum(rewards) / len(rewards)\n", GROUPED),
    ("/ std for", "/ (std + eps) for"),
    ("            ratio = new_logps[i][t] / old_logps[i][t]\n", RATIO),
    ("max(unclipped", "min(unclipped"),
    ("+= surrogate", "+= -surrogate"),
    (f"{LOOP}            {OLD}", f"        {OLD}{LOOP}"),
    ("old_logps, mask))\n", 'old_logps, mask, loss_kwargs.get("clip_eps", 0.2)))\n'),
]


def test_every_fault_is_found_at_its_line():
    report = check(read(str(SEED)))
    spans = {
        f.code: (f.place.line, f.place.end_line) for f in report.findings if f.severity != "note"
    }
    assert spans == EXPECTED
    severities = {f.code: str(f.severity) for f in report.findings}
    assert severities["MET001"] == "warning"
    assert severities["LOP010"] == severities["LOP011"] == severities["KLD010"] == "note"
    message = next(f.message for f in report.findings if f.code == "LOP001")
    assert "clip fraction can only be 0" in message


def test_one_fix_repairs_it_and_it_trains_as_the_tiny_trainer_does(tmp_path):
    """Rewards are those of `rlproof.tiny`, which draws alike; all figures, of a repair by hand.

    The tiny trainer measures the clip fraction after each step too, so that alone may differ.
    """
    path = tmp_path / "grpo_seed.py"
    path.write_text(SEED.read_text())
    options = Options.resolve((), (), None, True, None, None, fix=True)
    outcome = check_paths((str(path),), options)
    assert outcome.exit_code == 0
    assert strong(outcome.reports[0]) == []
    [(label, _)] = outcome.reports[0].repair.alternatives
    assert "negate both terms and keep max" in label
    _, history = run(path.read_text())["train"]()
    _, tiny_history = tiny.train()
    _, by_hand = run(repaired_by_hand())["train"]()
    got = [step["reward"] for step in history]
    assert got == pytest.approx([step["reward"] for step in tiny_history], abs=1e-9)
    for step, meant in zip(history, by_hand, strict=True):
        assert step == pytest.approx(meant, abs=1e-9)
    fixed = path.read_bytes()
    assert check_paths((str(path),), options).repairs == []
    assert path.read_bytes() == fixed


def repaired_by_hand():
    text = SEED.read_text()
    for old, new in REPAIRS:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_the_repaired_script_is_clean(tmp_path):
    assert strong(check_text(tmp_path, repaired_by_hand())) == []
