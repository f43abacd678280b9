"""Scripts of a size and shape that people do not write, and that must not stop a check."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rlproof.cli import main
from rlproof.faults.page import page
from tests.fuzz.targets import held
from tests.support.sampling import one_in

FAULTY = page("SUR004").planted
"""A loss with one fault: whatever stands around it, that is what must be found."""
HEAD = "def grpo_loss(new_logps, old_logps, advantages, mask):\n    x = 0\n"
TAIL = "    return -sum(min(a, b) for a, b in zip(new_logps, advantages)) + x\n"


def checked(path: Path, *options: str) -> Result:
    command = ["check", "--format", "json", *options, str(path)]
    result = CliRunner().invoke(main, command)
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert "internal" not in result.stderr
    return result


def codes(result: Result) -> list[str]:
    files = json.loads(result.stdout)["files"]
    return [f["code"] for file in files for f in file["findings"] if f["severity"] == "error"]


AROUND: dict[str, Callable[[str], str]] = {
    "windows": lambda text: "\ufeff" + text.replace("\n", "\r\n"),
    "10,000 lines": lambda text: text + "".join(f"x{i} = {i}\n" for i in range(10_000)),
    "2,500 functions": lambda text: text + "".join(
        f"def f{i}(a, b):\n    c = a + b\n    return c * {i}\n\n" for i in range(2_500)),
    "names of many scripts": lambda text: "变量 = 1\nпеременная = 2\nﬁ = 3\nµ = 4\n" + text.replace(
        "ratio", "比率"),
    "a line of 200 kB": lambda text: text + "x = '" + "é" * 200_000 + "'\n",
}  # fmt: skip


@pytest.mark.parametrize("name", one_in(3, AROUND))
def test_what_stands_around_a_fault_hides_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(FAULTY, "utf-8")
    (tmp_path / "t.py").write_text(AROUND[name](FAULTY), "utf-8", newline="")
    plain = codes(checked(tmp_path / "plain.py"))
    assert codes(checked(tmp_path / "t.py")) == plain
    assert "SUR004" in plain


def long_function(count: int) -> str:
    """A loss of so many statements, each of which needs the one before."""
    body = (f"    x{i} = new_logps[0][0] * {i} + x{i - 1}\n" for i in range(1, count))
    return HEAD.replace("x =", "x0 =") + "".join(body) + TAIL.replace(" x\n", f" x{count - 1}\n")


def loop_of_many_updates(count: int) -> str:
    """A training loop that is written out."""
    steps = (f"    loss = grpo_loss(policy.new, policy.old, {i})\n    loss.backward()\n"
             "    optimizer.step()\n" for i in range(count))  # fmt: skip
    return "def train(policy, optimizer):\n" + "".join(steps)


def chain(count: int) -> str:
    """`elif` after `elif`, which is one `if` inside of the other."""
    arms = "".join(f"    elif x == {i}:\n        x = {i}\n" for i in range(1, count))
    return HEAD + "    if x == 0:\n        pass\n" + arms + TAIL


LONG = {
    "a function of 5,000 lines": long_function(5_000),
    "1,000 updates written out": loop_of_many_updates(1_000),
    "300 losses": "".join(FAULTY.replace("def grpo_loss", f"def grpo_loss{i}") for i in range(300)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_long_scripts_end(name: str, tmp_path: Path) -> None:
    """The time of each grew with the square of its length once, or could."""
    assert held("script", LONG[name].encode(), tmp_path, 60) == ""


@pytest.mark.slow
def test_a_function_of_5000_lines_is_executed(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text(long_function(5_000))
    assert checked(tmp_path / "t.py").exit_code in (0, 1, 5)


DEEP = {
    "attributes": HEAD + "    x = new_logps" + ".a" * 1000 + "\n" + TAIL,
    "calls": HEAD + "    x = new_logps" + ".a()" * 1000 + "\n" + TAIL,
    "lambdas": HEAD + "    x = " + "lambda: " * 1000 + "1\n" + TAIL,
    "signs": HEAD + "    x = " + "-" * 1000 + "1\n" + TAIL,
    "sums": HEAD + "    x = " + "1 + " * 1000 + "1\n" + TAIL,
    "brackets": HEAD + "    x = " + "(" * 1000 + "1" + ")" * 1000 + "\n" + TAIL,
    "blocks": HEAD + "".join(f"    {' ' * i}if x:\n" for i in range(1000)) + TAIL,
    "branches": chain(1000),
    "functions": "".join(f"{' ' * i}def loss{i}(new_logps, mask):\n" for i in range(90))
    + " " * 90 + "return 1\n" + HEAD + TAIL,
    "parameters": f"def grpo_loss({', '.join(f'a{i}' for i in range(1000))}):\n    return 1\n",
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_nothing_is_too_deep_to_be_told(name: str, tmp_path: Path) -> None:
    held("script", DEEP[name].encode(), tmp_path)


def test_one_deep_script_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "deep.py").write_text(DEEP["attributes"])
    (tmp_path / "faulty.py").write_text(FAULTY)
    result = checked(tmp_path, "--jobs", "1")
    assert result.exit_code == 2
    assert "deep.py: nested too deeply to be analysed" in result.stderr
    assert "SUR004" in codes(result)


@pytest.mark.parametrize("options", [("--no-run",), ()], ids=["read", "executed"])
def test_files_that_import_each_other(options: tuple[str, ...], tmp_path: Path) -> None:
    """Names are handed on in a circle, and one of them is the loss."""
    (tmp_path / "a.py").write_text("from b import other, grpo_loss\nfrom c import missing\n")
    (tmp_path / "b.py").write_text("from a import grpo_loss as other\nfrom c import grpo_loss\n")
    (tmp_path / "c.py").write_text("import a, b, c\nfrom a import missing\n" + FAULTY)
    for name in ("a.py", "b.py", "c.py"):
        result = checked(tmp_path / name, *options)
        assert result.exit_code in (0, 1, 5)
    if not options:
        (tmp_path / "c.py").write_text("import a\n" + FAULTY)
        (tmp_path / "a.py").write_text("import c\n")
        assert "SUR004" in codes(checked(tmp_path / "c.py"))
