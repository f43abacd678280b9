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
