"""What a shell is offered, asked as bash, zsh and fish ask."""

import os
import subprocess
import sys

import pytest

from rlproof.faults.registry import catalogue
from rlproof.space.recipes import RECIPES


def offered(line, shell="bash"):
    words = line.split(" ")
    environment = {
        **os.environ,
        "_RLPROOF_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1) if shell != "fish" else words[-1],
    }
    code = "from rlproof.cli import main; main(prog_name='rlproof')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def values(line):
    return [found.partition(",")[2] for found in offered(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rlproof explain SUR00", [c for c in catalogue() if c.startswith("SUR00")]),
        ("rlproof explain optimistic-c", ["optimistic-clip"]),
        ("rlproof check --select KLD01", [c for c in catalogue() if c.startswith("KLD01")]),
        ("rlproof check --ignore SUR001,sur004", ["SUR001,SUR004"]),
        ("rlproof check --objective dap", [name for name in RECIPES if name.startswith("dap")]),
        ("rlproof check --basel", ["--baseline"]),
        ("rlproof ident", ["identify"]),
    ],
)
def test_bash_is_offered(line, expected):
    assert expected
    assert values(line) == expected


def test_rules_of_inspect_have_pages_too():
    assert "STP001" in values("rlproof explain STP00")


def test_zsh_and_fish_get_the_meaning_as_well():
    assert "optimistic-clip: " in " ".join(offered("rlproof explain SUR004", "zsh"))
    assert "optimistic-clip: " in " ".join(offered("rlproof explain SUR004", "fish"))


def test_the_documented_command_prints_a_script():
    environment = {**os.environ, "_RLPROOF_COMPLETE": "zsh_source"}
    code = "from rlproof.cli import main; main(prog_name='rlproof')"
    text = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "#compdef rlproof" in text
