"""`rlproof demo`: a broken trainer that seems to learn, its faults proved, its repair verified."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from rlproof.bind.sandbox import Sandbox
from rlproof.errors import SandboxError
from rlproof.faults.registry import catalogue
from rlproof.judge.check import check
from rlproof.judge.findings import FileReport, FixStatus
from rlproof.read.script import read
from rlproof.read.source import Source
from rlproof.repair import fix
from rlproof.report import text

_LAST = 10
_NAME = "broken_trainer.py"


def run(width: int, echo: Callable[[str], None]) -> int:
    """Print the demonstration; 0 if it showed what it promises, 1 if not."""
    script = read(str(example(_NAME)))
    first, last = reward_curve(script.source)
    echo(
        f"{_NAME} trains: its reward rises from {first:.2f} to {last:.2f} in 40 steps, so a "
        "look at the curve\nsays that all is well. `rlproof check` executes its mathematics:\n\n"
    )
    report = check(script)
    path = script.source.path
    shown = text.full([fix.suggest(script, report)], {path: script.source.lines}, width)
    echo(shown.replace(path, _NAME))
    report = fix.repair(script, report, frozenset(catalogue()), offers=False)
    repair = report.repair
    assert repair is not None
    source = Source(path, repair.text, ast.parse(repair.text))
    first, last = reward_curve(source)
    echo(
        "\n`rlproof check --diff` looks for the smallest set of edits after which nothing is "
        f"wrong; with it, the\nreward goes from {first:.2f} to {last:.2f}:\n"
    )
    name = {"a/": f"a/{_NAME}", "b/": f"b/{_NAME}"}
    lines = repair.patch.split("\n")
    lines[:2] = [f"--- {name['a/']}", f"+++ {name['b/']}"]
    patch = replace(repair, patch="\n".join(lines))
    echo(text.patched(replace(report, path=_NAME, repair=patch)))
    echo("\nNext: `rlproof check YOUR_SCRIPT.py`, or `rlproof explain SUR004` for one fault.\n")
    return 0 if _is_as_promised(report) else 1


def _is_as_promised(report: FileReport) -> bool:
    verified = report.repair is not None and report.repair.status is FixStatus.VERIFIED
    return len({f.code for f in report.findings}) >= 9 and verified


def example(name: str) -> Path:
    """An example script: inside the installed package, or in the repository.

    Raises:
        SandboxError: the installation lacks it.
    """
    here = Path(__file__).parent
    for folder in (here / "examples", here.parents[1] / "examples"):
        if (folder / name).is_file():
            return folder / name
    raise SandboxError(f"the example {name} is missing from this installation; reinstall rlproof")


def reward_curve(source: Source) -> tuple[float, float]:
    """Mean reward of the first step and of the last ten, from a run of the script's `train`."""
    with Sandbox(source) as sandbox:
        answer = sandbox.call([{"function": "train", "arguments": {}, "want": "plain"}])[0]
    rewards = [step["reward"] for step in answer["value"][1]]
    return rewards[0], sum(rewards[-_LAST:]) / _LAST
