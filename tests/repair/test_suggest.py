"""A suggested edit is small, in the script's own names, and never claimed to be verified."""

import pytest
from tests.support.trainers import trainer

from rlproof.judge.check import check
from rlproof.judge.findings import FixStatus
from rlproof.read.script import read
from rlproof.repair.fix import suggest


def suggested(path):
    script = read(str(path))
    return suggest(script, check(script))


def changed(finding):
    """Lines that a diff puts in and takes out."""
    body = finding.diff.splitlines()[2:]
    return sum(line[:1] == "+" for line in body), sum(line[:1] == "-" for line in body)


@pytest.mark.parametrize("library", ["list", "numpy", "torch"])
def test_edits_touch_few_lines(tmp_path, library):
    if library == "torch":
        pytest.importorskip("torch")
    path = tmp_path / "script.py"
    path.write_text(trainer("", library))
    lines = {f.code: changed(f) for f in suggested(path).findings if f.diff}
    # Counted by hand: the loop over chunks is 7 lines for 3, `continue` 2 for none.
    loops = {"ADV001": (7, 3), "MSK001": (2, 0), "MSK002": (1, 1)}
    arrays = {"ADV001": (3, 3), "MSK001": (1, 1), "MSK002": (1, 1)}
    expected = loops if library == "list" else arrays
    for code in ("ADV004", "SUR001", "SUR004", "SUR005", "LOP001", "MET001"):
        expected[code] = (1, 1)
    assert {code: lines[code] for code in expected} == expected


def test_nothing_is_called_verified_that_was_not_run(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(trainer(""))
    fixes = [f.fix for f in suggested(path).findings if f.fix]
    assert len(fixes) >= 9
    assert {fix.status for fix in fixes} == {FixStatus.SUGGESTED}


def test_no_edit_where_ratio_and_divergence_share_the_difference(tmp_path):
    """Swapping the operands of a shared log-ratio would turn the ratio over as well."""
    pytest.importorskip("torch")
    path = tmp_path / "script.py"
    path.write_text(
        "import torch\n\n\n"
        "def grpo_loss(policy_logps, ref_logps, advantages, clip_eps=0.2, beta=0.01):\n"
        '    """Clipped surrogate and k3, a loss to minimise."""\n'
        "    log_ratio = policy_logps - ref_logps\n"
        "    ratio = torch.exp(log_ratio)\n"
        "    clipped = ratio.clamp(1 - clip_eps, 1 + clip_eps)\n"
        "    policy = -torch.min(ratio * advantages, clipped * advantages).mean()\n"
        "    return policy + beta * (ratio - log_ratio - 1).mean()\n"
    )
    found = {finding.code: finding.diff for finding in suggested(path).findings}
    assert found["SUR016"] is None
    assert found["KLD002"] is None
