"""Seconds to read files, without running anything of them, and the same for each 1,000 lines.

    python benchmarks/read_time.py FILE...

CPU time of this process, the best of several runs, with the files of the project that each one
imports read anew every time. Measured with TRL's `grpo_trainer.py`, verl's `core_algos.py` and
OpenRLHF's `loss.py`, which docs/log.md keeps.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rlproof.read import imports
from rlproof.read.script import read

ROUNDS = 3


def seconds(path: str) -> float:
    """The shortest of several readings of one file."""

    def once() -> float:
        imports.forget()
        start = time.process_time()
        read(path)
        return time.process_time() - start

    return min(once() for _ in range(ROUNDS))


def main(paths: list[str]) -> None:
    for path in paths:
        lines = len(Path(path).read_bytes().splitlines())
        spent = seconds(path)
        print(f"{spent:6.2f} s  {1000 * spent / max(lines, 1):6.2f} s per 1,000 lines  {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
