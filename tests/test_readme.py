"""What the README and its neighbours promise, compared with what is there."""

import re
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rlproof.cli import main
from rlproof.faults.registry import catalogue
from rlproof.repair.candidates import MAKERS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
NUMBERS = {"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13}


def blocks(kind):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [body for language, body in fenced if language == kind]


@pytest.fixture(scope="module")
def demo():
    """The demonstration's output at the width of the README, 100 columns."""
    result = CliRunner().invoke(main, ["demo"], env={"COLUMNS": "100", "NO_COLOR": "1"})
    assert result.exit_code == 0
    return click.unstyle(result.output)


def test_readme_is_short():
    assert len(README.splitlines()) < 120


def test_ci_runs_the_two_blocks_of_the_readme_word_for_word():
    """CI's own function takes them out; it is run here, without what follows it."""
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    function = re.search(
        r"^readme\(\) \{.*?^[^\n]*README\.md; \}$", script, re.MULTILINE | re.DOTALL
    )
    installing = [block for block in blocks("sh") if ".venv" in block]
    assert len(installing) == 2
    for number, block in enumerate(installing, 1):
        command = f"{function[0]}\nreadme {number}"
        got = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, check=True)
        assert got.stdout.decode() == block
        assert f'eval "$(readme {number})"' in script


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8"))
    for link in links:
        if not re.match(r"[a-z]+:", link):
            assert (page.parent / link.partition("#")[0]).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_test_files_exist(page):
    for name in re.findall(r"`(tests/[\w/]+\.py)`", page.read_text("utf-8")):
        assert (ROOT / name).exists(), name


def test_finding_of_the_readme_is_what_the_demo_prints(demo):
    shown = next(b for b in blocks("") if b.startswith("broken_trainer.py:50:13: SUR004"))
    assert shown.rstrip("\n") + "\n" in demo + "\n"


def test_numbers_of_the_demo(demo):
    """`nine faults`, `from 0.12 to 0.90` and `the other eight`."""
    claimed = re.search(
        r"with (\w+) faults whose reward rises.*?from ([\d.]+) to ([\d.]+)", README, re.DOTALL
    )
    codes = set(re.findall(r"^broken_trainer\.py:\d+:\d+: ([A-Z]{3}\d{3})", demo, re.MULTILINE))
    assert len(codes) == NUMBERS[claimed[1]]
    assert f"rises from {claimed[2]} to {claimed[3]}" in demo
    assert NUMBERS[re.search(r"the other (\w+) faults", README)[1]] == len(codes) - 1


def test_commands_of_the_readme_exist():
    for line in "".join(blocks("sh")).splitlines():
        for command in re.findall(r"(?:^|/)rlproof (\w+)", line):
            assert command in main.commands


def test_options_of_the_readme_exist():
    check = main.commands["check"]
    known = {name for option in check.params for name in option.opts}
    lines = [
        line for line in "".join(blocks("sh")).splitlines() if line.startswith("rlproof check")
    ]
    used = {word for line in lines for word in line.split("#")[0].split() if word.startswith("-")}
    assert used <= known


def test_size_of_the_catalogue_in_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert int(re.search(r"catalogue of (\d+) faults", changelog)[1]) == len(catalogue())
    edits = re.search(r"repairs for (\d+) of the faults", changelog)[1]
    assert int(edits) == len(MAKERS)
