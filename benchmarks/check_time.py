"""Where the time of a check goes, as seconds and as shares of one run.

    python benchmarks/check_time.py [SCRIPT]

Prints the best of several runs: the whole command, starting Python with the command line alone,
loading the script in the child, the probes of losses, advantages and metrics, and the recorded
runs of the training loop.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rlproof.bind.sandbox import Sandbox
from rlproof.judge.check import check
from rlproof.probe import loop
from rlproof.read.script import read

EXAMPLE = Path(__file__).parents[1] / "examples" / "broken_trainer.py"
ROUNDS = 5


def best(action: Callable[[], object]) -> float:
    """The shortest of several runs, in seconds."""

    def once() -> float:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    return min(once() for _ in range(ROUNDS))


def command(*arguments: str) -> Callable[[], object]:
    line = [sys.executable, "-m", "rlproof", *arguments]
    return lambda: subprocess.run(line, check=False, stdout=subprocess.DEVNULL)


def loading(path: str) -> None:
    with Sandbox(read(path).source) as sandbox:
        sandbox.load()


def recorded(path: str) -> tuple[float, float]:
    """Seconds of one check inside this process: in the loop recorder, and in all."""
    spent = 0.0
    original = loop.Recorder.observe

    def timed(self: loop.Recorder) -> loop.LoopObservation:
        nonlocal spent
        start = time.perf_counter()
        result = original(self)
        spent += time.perf_counter() - start
        return result

    loop.Recorder.observe = timed  # type: ignore[method-assign]
    try:
        start = time.perf_counter()
        check(read(path))
        return spent, time.perf_counter() - start
    finally:
        loop.Recorder.observe = original  # type: ignore[method-assign]


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else str(EXAMPLE)
    whole = best(command("check", path))
    start_up = best(command("--help"))
    child = best(lambda: loading(path))
    runs = [recorded(path) for _ in range(ROUNDS)]
    loops, inside = min(runs, key=lambda pair: pair[1])
    rows = [
        ("rlproof check", whole),
        ("rlproof --help", start_up),
        ("child start and load", child),
        ("probes (no loop)", inside - loops - child),
        ("recorded loop", loops),
    ]
    for name, seconds in rows:
        print(f"{name:<22} {seconds:7.3f} s {seconds / whole:6.0%} of the check")


if __name__ == "__main__":
    main()
