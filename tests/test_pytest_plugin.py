"""The pytest plugin, in runs of pytest of its own (pytester).

`rlproof` need not be installed: the plugin is named with `-p`, as its entry point would load it.
"""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from rlproof.faults.page import page

pytest_plugins = ["pytester"]

INSTALLED = any(one.name == "rlproof" for one in entry_points(group="pytest11"))
LOADED = () if INSTALLED else ("-p", "rlproof.pytest_plugin")  # twice is an error of pytest's
PLUGIN = (*LOADED, "-p", "no:cacheprovider")
BROKEN, RIGHT = page("LOP002").planted, page("LOP002").healthy


@pytest.fixture
def project(pytester):
    """A project with a training script that must never be imported, and a test of its own."""
    (pytester.path / "train.py").write_text(BROKEN + "\nraise RuntimeError\n", encoding="utf-8")
    pytester.makepyfile(test_own="def test_own(): pass")
    return pytester


def test_a_failing_function_is_one_failing_test(project):
    result = project.runpytest_inprocess(*PLUGIN, "--rlproof", "train.py")
    failed = [line for line in result.outlines if line.startswith("FAILED")]
    assert [line.split(" - ")[0] for line in failed] == ["FAILED train.py::rlproof[train train]"]
    result.stdout.fnmatch_lines(["*_ rlproof[[]train train] _*", "train.py:*: LOP002 * in train"])
    result.stdout.no_fnmatch_line("*runtest*")  # no lines of rlproof's own
    assert result.parseoutcomes()["passed"] > 1
    assert result.ret == 1


def test_a_script_without_faults_passes(project):
    (project.path / "train.py").write_text(RIGHT, encoding="utf-8")
    result = project.runpytest_inprocess(*PLUGIN, "--rlproof", "train.py", "-m", "rlproof")
    assert result.ret == 0
    assert result.parseoutcomes()["deselected"] == 1  # the project's own test


def test_settings_name_scripts_relative_to_their_file(project):
    project.makeini("[pytest]\nrlproof_files = train.py\n")
    inner = project.mkdir("inner")
    result = project.runpytest_inprocess(
        *PLUGIN, "--collect-only", "-q", "--rlproof", str(project.path / "train.py"), str(inner)
    )
    found = [line for line in result.outlines if "rlproof[" in line]
    assert "train.py::rlproof[train train]" in found
    assert len(found) == len(set(found))  # named twice, collected once


def test_one_function_can_be_chosen(project):
    result = project.runpytest_inprocess(*PLUGIN, "--rlproof", "train.py", "-k", "grpo_loss")
    assert result.parseoutcomes()["passed"] == 1
    assert result.ret == 0


def test_the_recipe_can_be_given(project):
    result = project.runpytest_inprocess(
        *PLUGIN, "--rlproof", "train.py", "--rlproof-objective", "gspo", "-k", "grpo_loss"
    )
    result.stdout.fnmatch_lines(["*OBJ001*", "*declared recipe (gspo)*"])
    assert result.ret == 1


def test_a_function_that_cannot_be_run_is_skipped(project):
    source = (
        "def policy_loss(logp, old_logp, adv, mask, oracle):\n"
        "    return -(oracle(logp - old_logp) * adv * mask).sum() / mask.sum()\n"
        "def group_advantages(rewards, group_size):\n"
        "    mean = sum(rewards) / len(rewards)\n"
        "    return [r - mean for r in rewards]\n"
    )
    (project.path / "train.py").write_text(source, encoding="utf-8")
    result = project.runpytest_inprocess(*PLUGIN, "--rlproof", "train.py", "-rs", "-m", "rlproof")
    assert result.parseoutcomes()["skipped"] == 1
    result.stdout.fnmatch_lines(["SKIPPED*oracle*"])


@pytest.mark.parametrize(("name", "said"), [("gone.py", "no such file"), ("empty.py", "no GRPO")])
def test_what_cannot_be_collected_is_a_usage_error(project, name, said):
    (project.path / "empty.py").write_text("x = 1\n", encoding="utf-8")
    result = project.runpytest_inprocess(*PLUGIN, "--rlproof", name)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: rlproof: *{said}*"])


PROBE = """
import sys, pytest
before = set(sys.modules)
{use}
new = {{name for name in set(sys.modules) - before if name.startswith("rlproof")}}
heavy = {{"numpy", "torch", "msgspec", "jinja2", "rich", "click"}} & (set(sys.modules) - before)
print(*sorted(new | heavy))
"""


def loaded(use: str) -> set[str]:
    code = PROBE.format(use=use)
    return set(subprocess.check_output([sys.executable, "-c", code], text=True).split())


def test_unused_the_plugin_imports_nothing():
    """Two small modules: the package's own `__init__` and the plugin."""
    assert loaded("import rlproof.pytest_plugin") == {"rlproof", "rlproof.pytest_plugin"}


def test_the_probe_would_notice_more():
    assert loaded("import rlproof.testing") >= {"numpy", "rlproof.checks"}
