"""A notebook from file to report in every format; places are cells and lines of cells."""

import json

import pytest
from click.testing import CliRunner

from rlproof.cli import main
from rlproof.judge.check import check
from rlproof.read.script import read
from tests.support.checking import strong

SETUP = "%pip install -q numpy\nimport numpy as np"
LOSS = '''\
def policy_loss(logp, old_logp, adv, mask, clip_eps=0.2):
    """Clipped policy loss."""
    ratio = np.exp(logp - old_logp)
    a = adv[:, None]
    term = np.{picker}(ratio * a, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * a)
    return -(term * mask).sum() / max(mask.sum(), 1)
'''
USE = "%%time\nlogs = !ls\nloss = policy_loss(lp, old, adv, m)"


def notebook(folder, picker="maximum", name="train.ipynb", loss=LOSS):
    sources = [("markdown", "# GRPO"), ("code", SETUP), ("code", loss.replace("{picker}", picker)),
               ("code", "%%bash\nnvidia-smi"), ("code", USE)]  # fmt: skip
    cells = [
        {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
        | ({"execution_count": 1, "outputs": [{"text": ["loss 0.1"]}]} if kind == "code" else {})
        for kind, text in sources
    ]
    path = folder / name
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    )
    return str(path)


def run(*args):
    return CliRunner().invoke(main, ["check", *args])


def test_the_text_names_cell_and_line(tmp_path):
    """The picker is line 5 of the third cell of the file."""
    path = notebook(tmp_path)
    full, concise = run(path), run(path, "--format", "concise")
    assert (full.exit_code, concise.exit_code) == (1, 1)
    assert full.output.startswith(f"{path}:cell 3, line 5:5: SUR004 optimistic-clip [error]")
    assert "\n5 |     term = np.maximum(" in full.output
    assert concise.output.startswith(f"{path}:cell 3, line 5:5: SUR004")


def test_the_json_has_cell_and_line(tmp_path):
    [file] = json.loads(run(notebook(tmp_path), "--format", "json").stdout)["files"]
    finding = next(f for f in file["findings"] if f["code"] == "SUR004")
    assert [finding[key] for key in ("cell", "line", "end_line")] == [3, 5, 5]
    assert [(t["cell"], t["line"]) for t in file["targets"]] == [(3, 1)]
    diff = finding["fix"]["diff"].splitlines()
    assert diff[0].endswith("train.ipynb (cell 3)")
    assert diff[2] == "@@ -2,5 +2,5 @@"
    assert [line[:1] for line in diff[3:]] == [" ", " ", " ", "-", "+", " "]


def test_a_script_has_no_cell_in_json(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import numpy as np\n" + LOSS.replace("{picker}", "maximum"))
    [file] = json.loads(run(str(path), "--format", "json").stdout)["files"]
    assert "cell" not in file["targets"][0] | file["findings"][0]


def test_the_page_lists_cells_with_their_own_numbers(tmp_path):
    page = run(notebook(tmp_path), "--format", "html").stdout
    assert page.count("<figcaption>Cell ") == 3
    assert 'href="#f1-src-c3-L7">cell 3, line 5</a>' in page
    assert 'id="f1-src-c3-L7" data-n="5"' in page, "line 7 of the joined source: 2 + 5"


@pytest.mark.parametrize("option", ["full", "json", "html", "github"])
def test_a_healthy_notebook_is_silent(tmp_path, option):
    assert run(notebook(tmp_path, "minimum"), "--format", option).exit_code == 0


def test_a_folder_has_its_notebooks_checked(tmp_path):
    notebook(tmp_path)
    (tmp_path / ".ipynb_checkpoints").mkdir()
    notebook(tmp_path / ".ipynb_checkpoints")
    document = json.loads(run(str(tmp_path), "--format", "json").stdout)
    assert [file["path"] for file in document["files"]] == [str(tmp_path / "train.ipynb")]


def test_reasons_name_cells_as_well(tmp_path):
    raising = LOSS.replace("    a = adv", "    raise ValueError('no')\n    a = adv")
    report = check(read(notebook(tmp_path, loss=raising)))
    assert strong(report) == []
    assert [s.reason for s in report.skipped] == ["raised ValueError at cell 3, line 4: no"]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ('{"cells": [', 2, "not a notebook that can be read"),
        ('{"cells": []}', 5, "holds no Python code"),
        ('{"cells": [{"cell_type": "code", "source": "x = ("}]}', 2, "cell 1, line 1: not valid"),
    ],
)
def test_bad_notebooks_end_in_one_line(tmp_path, text, code, message):
    path = tmp_path / "bad.ipynb"
    path.write_text(text)
    result = run(str(path))
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_notebook_in_r_does_not_fail_a_folder(tmp_path):
    notebook(tmp_path, "minimum")
    (tmp_path / "plots.ipynb").write_text(
        '{"metadata": {"kernelspec": {"language": "R"}}, '
        '"cells": [{"cell_type": "code", "source": "x <- 1"}]}'
    )
    assert run(str(tmp_path)).exit_code == 0


INLINE = """\
def train(policy, optimizer, batches):
    for batch in batches:
        logp = policy(batch["ids"])
        ratio = torch.exp(logp - batch["old_logp"])
        a = batch["advantages"][:, None]
        term = torch.{picker}(ratio * a, torch.clamp(ratio, 0.8, 1.2) * a)
        loss = -(term * batch["mask"]).sum() / batch["mask"].sum()
        loss.backward()
        optimizer.step()
"""


def test_the_name_of_a_loss_in_a_loop_has_the_line_of_its_cell(tmp_path):
    """`loss.backward()` is line 9 of the third cell, whose first line imports torch."""
    pytest.importorskip("torch")
    path = notebook(tmp_path, loss="import torch\n" + INLINE)
    [file] = json.loads(run(path, "--format", "json").stdout)["files"]
    finding = next(f for f in file["findings"] if f["code"] == "SUR004")
    name = "train (inline loss, cell 3, line 9)"
    assert (finding["function"], finding["cell"], finding["line"]) == (name, 3, 7)
    assert name in [target["name"] for target in file["targets"]]
