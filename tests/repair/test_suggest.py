"""A suggested edit is small, applies cleanly, and removes the finding that it is for."""

import subprocess

import pytest
from tests.support.checking import strong
from tests.support.trainers import trainer

from rlproof.faults.page import page
from rlproof.judge.check import check
from rlproof.read.script import read
from rlproof.repair.suggest import _EDITS, suggest


def suggested(path):
    script = read(str(path))
    return suggest(script, check(script))


def apply(folder, diff):
    """With git, the strictest reader of patches at hand."""
    subprocess.run(
        ["git", "apply", "--unsafe-paths", "-p1", "-"],
        input=diff.replace(f"a{folder}/", "a/").replace(f"b{folder}/", "b/"),
        cwd=folder,
        text=True,
        check=True,
    )


@pytest.mark.parametrize("code", sorted(_EDITS))
def test_the_edit_of_a_page_removes_its_fault(tmp_path, code):
    text = page(code).planted
    if "import torch" in text:
        pytest.importorskip("torch")
    path = tmp_path / "script.py"
    path.write_text(text)
    [finding] = [f for f in suggested(path).findings if f.code == code]
    assert finding.diff is not None
    apply(tmp_path, finding.diff)
    assert strong(suggested(path)) == []


@pytest.mark.parametrize("library", ["list", "numpy", "torch"])
def test_edits_touch_few_lines(tmp_path, library):
    if library == "torch":
        pytest.importorskip("torch")
    path = tmp_path / "script.py"
    path.write_text(trainer("", library))
    for finding in suggested(path).findings:
        if finding.diff:
            body = finding.diff.splitlines()[2:]
            assert sum(line[:1] == "+" for line in body) == 1, finding.code
            assert sum(line[:1] == "-" for line in body) == 1, finding.code


def test_a_finding_without_a_certain_edit_gets_none(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(trainer(""))
    by_code = {f.code: f.diff for f in suggested(path).findings}
    assert by_code["MSK001"] is None
    assert by_code["ADV001"] is None


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
