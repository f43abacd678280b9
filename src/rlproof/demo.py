"""`rlproof demo`: a broken trainer that seems to learn, its faults proved, its repaired twin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rlproof.bind.sandbox import Sandbox
from rlproof.checks import Options, check_paths
from rlproof.errors import SandboxError
from rlproof.judge.findings import FileReport
from rlproof.read.script import read

_LAST = 10
_NAMES = ("broken_trainer.py", "repaired_trainer.py")


def run(width: int, echo: Callable[[str], None]) -> int:
    """Print the demonstration; 0 if it showed what it promises, 1 if not."""
    broken, repaired = (str(example(name)) for name in _NAMES)
    first, last = reward_curve(broken)
    echo(
        f"{_NAMES[0]} trains: its reward rises from {first:.2f} to {last:.2f} in 40 steps, so a "
        "look at the curve\nsays that all is well. `rlproof check` executes its mathematics:\n\n"
    )
    options = Options.resolve((), (), None, True, None, "full")
    outcome = check_paths((broken,), options)
    echo(outcome.render("full", width).replace(broken, _NAMES[0]))
    twin = check_paths((repaired,), options)
    first, last = reward_curve(repaired)
    echo(
        f"\n{_NAMES[1]} is the same script with these lines repaired: its reward goes from "
        f"{first:.2f} to {last:.2f}.\n"
    )
    echo(twin.render("full", width).replace(repaired, _NAMES[1]))
    echo("\nNext: `rlproof check YOUR_SCRIPT.py`, or `rlproof explain SUR004` for one fault.\n")
    return 0 if _is_as_promised(outcome.reports[0], twin.exit_code) else 1


def _is_as_promised(report: FileReport, twin_exit: int) -> bool:
    return len({f.code for f in report.findings}) >= 9 and twin_exit == 0


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


def reward_curve(path: str) -> tuple[float, float]:
    """Mean reward of the first step and of the last ten, from a run of the script's `train`."""
    with Sandbox(read(path).source) as sandbox:
        answer = sandbox.call([{"function": "train", "arguments": {}, "want": "plain"}])[0]
    rewards = [step["reward"] for step in answer["value"][1]]
    return rewards[0], sum(rewards[-_LAST:]) / _LAST
