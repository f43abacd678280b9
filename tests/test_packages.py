"""Checking packages: every file once, imports within the project followed, loops recorded."""

import json

import pytest
from click.testing import CliRunner

from rlproof.cli import main
from rlproof.faults.page import page

SCRIPT = page("LOP002").planted
HELPERS, LOOP = SCRIPT[: SCRIPT.index("def train(")], SCRIPT[SCRIPT.index("def train(") :]
NAMES = "DIGITS, token_logps, rollout, gradient"
IMPORTS = (
    f"import random\n{{origin}} import {NAMES}\nfrom .algo import the_loss, group_advantages\n\n\n"
)
LOSS = '''\
import numpy as np

from .. import EPS
from ..util import masked_mean


def policy_loss(logp, old_logp, adv, mask, clip_eps=EPS):
    """Clipped policy loss."""
    ratio, a = np.exp(logp - old_logp), adv[:, None]
    term = np.maximum(ratio * a, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * a)
    return -masked_mean(term, mask)
'''  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose loop, loss and advantages lie in different files."""
    monkeypatch.chdir(tmp_path)
    files = {
        "kit/__init__.py": "EPS = 0.2\nraise RuntimeError('the top level never runs')\n",
        "kit/util.py": "def masked_mean(x, m):\n    return (x * m).sum() / max(m.sum(), 1)\n",
        "kit/table.py": HELPERS,
        "kit/algo/__init__.py": "from ..table import grpo_loss as the_loss, group_advantages\n",
        "kit/algo/losses.py": LOSS,
        "kit/use.py": "from .algo.losses import policy_loss\n\nloss = policy_loss\n",
        "kit/train.py": IMPORTS.format(origin="from kit.table")
        + LOOP.replace("grpo_loss(", "the_loss("),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def found(*paths):
    result = CliRunner().invoke(main, ["check", "--format", "json", *paths])
    files = json.loads(result.stdout)["files"]
    codes = {
        f["path"]: [x["code"] for x in f["findings"] if x["severity"] == "error"] for f in files
    }
    assert len(codes) == len(files), "a file was judged twice"
    assert [s["reason"] for f in files for s in f["skipped"]] == []
    return codes, files


def test_a_package_is_judged_file_by_file(package):
    codes, files = found("kit")
    assert codes == {
        "kit/algo/losses.py": ["SUR004"],
        "kit/table.py": [],
        "kit/train.py": ["LOP002"],
    }
    [finding] = next(f for f in files if f["path"] == "kit/train.py")["findings"]
    line = (package / "kit/train.py").read_text().split("\n")[finding["line"] - 1]
    assert line.endswith("# error: LOP002")


def test_the_files_behind_a_loop_are_judged_with_it(package):
    codes, _ = found("kit/train.py")
    assert codes == {"kit/train.py": ["LOP002"], "kit/table.py": []}


def test_a_script_that_only_imports_leads_to_what_it_imports(package):
    codes, _ = found("kit/use.py")
    assert codes == {"kit/algo/losses.py": ["SUR004"]}


def test_one_file_under_several_names_is_judged_once(package):
    codes, _ = found("kit/algo/losses.py", "./kit/algo/losses.py", "kit/use.py")
    assert codes == {"kit/algo/losses.py": ["SUR004"]}


def test_a_folder_without_init_is_a_package_to_relative_imports(package, monkeypatch):
    for file in package.rglob("__init__.py"):
        file.unlink()
    (package / "kit/algo/losses.py").write_text(LOSS.replace("from .. import EPS", "EPS = 0.2"))
    codes, _ = found("kit/algo/losses.py")
    assert codes == {"kit/algo/losses.py": ["SUR004"]}


@pytest.mark.parametrize("name", ["json", "v1.0", "my-kit"])
def test_the_name_of_the_folder_does_not_matter_to_relative_imports(package, name):
    """`json` is a module of Python's own; the others are no names at all."""
    (package / "kit").rename(package / name)
    codes, _ = found(f"{name}/algo/losses.py")
    assert codes == {f"{name}/algo/losses.py": ["SUR004"]}
