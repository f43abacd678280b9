"""Functions that a script imports from its own project: found, named as it calls them."""

import pytest

from rlproof.read.imports import imported
from rlproof.read.script import read
from rlproof.read.source import load
from rlproof.read.targets import Role

LOSS = "def grpo_loss(logp, old_logp, advantages, mask):\n    return 0\n"
ADVANTAGES = "def group_advantages(rewards, group_size):\n    return rewards\n"
OTHER = "def helper(x):\n    return x\n"


@pytest.fixture
def project(tmp_path):
    """Files by path; a `script` is read and its imports are given as name: (role, file)."""

    def build(files, script):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = imported(load(str(tmp_path / script)))
        where = {one.target.name: one.path.removeprefix(f"{tmp_path}/") for one in found}
        return {one.target.name: (one.target.role, where[one.target.name]) for one in found}

    return build


@pytest.mark.parametrize(
    "line",
    [
        "from losses import grpo_loss",
        "from .losses import grpo_loss",
        "from . import x\nfrom .losses import grpo_loss",
        "try:\n    from .losses import grpo_loss\nexcept ImportError:\n    pass",
        "def main():\n    from losses import grpo_loss",
    ],
)  # fmt: skip
def test_a_sibling_is_followed(project, line):
    got = project({"losses.py": LOSS + OTHER, "train.py": line + "\n"}, "train.py")
    assert got == {"grpo_loss": (Role.LOSS, "losses.py")}


def test_names_and_files_that_play_no_part_are_left(project):
    lines = "from losses import helper, missing\nfrom numpy import log\nimport losses\n"
    assert project({"losses.py": LOSS + OTHER, "train.py": lines}, "train.py") == {}


def test_an_alias_is_the_name(project):
    files = {"losses.py": LOSS, "train.py": "from losses import grpo_loss as objective\n"}
    assert project(files, "train.py") == {"objective": (Role.LOSS, "losses.py")}


def test_packages_up_down_and_by_their_own_name(project):
    files = {
        "pkg/__init__.py": "", "pkg/algo/__init__.py": "from .losses import grpo_loss\n",
        "pkg/algo/losses.py": LOSS, "pkg/stats.py": ADVANTAGES,
        "pkg/run/__init__.py": "",
        "pkg/run/train.py": "from ..algo import grpo_loss\nfrom pkg.stats import *\n"
        "from pkg.stats import group_advantages\n",
    }  # fmt: skip
    assert project(files, "pkg/run/train.py") == {
        "grpo_loss": (Role.LOSS, "pkg/algo/losses.py"),
        "group_advantages": (Role.ADVANTAGES, "pkg/stats.py"),
    }


def test_a_circle_of_imports_ends(project):
    files = {"a.py": "from b import grpo_loss\n", "b.py": "from a import grpo_loss\n"}
    assert project(files, "a.py") == {}


def test_a_file_that_can_not_be_read_is_no_home(project):
    files = {"losses.py": LOSS + "def (", "train.py": "from losses import grpo_loss\n"}
    assert project(files, "train.py") == {}


def test_a_change_of_the_file_is_seen(project, tmp_path):
    files = {"losses.py": LOSS, "train.py": "from losses import grpo_loss\n"}
    assert project(files, "train.py") != {}
    assert project({"losses.py": OTHER}, "train.py") == {}


def test_a_loop_is_one_that_calls_an_imported_loss(project, tmp_path):
    loop = "def fit(steps=3):\n    for _ in range(steps):\n        grpo_loss(1, 2, 3, 4)\n"
    text = "from losses import grpo_loss\n" + loop
    project({"losses.py": LOSS, "train.py": text}, "train.py")
    script = read(str(tmp_path / "train.py"))
    assert [(t.role, t.name) for t in script.targets] == [(Role.TRAIN, "fit")]
    assert [t.name for t in script.parts(Role.LOSS)] == ["grpo_loss"]
    assert script.of(Role.LOSS) == [], "it is judged at its own file"
    assert script.homes == (str(tmp_path / "losses.py"),)
