"""Repairing a script given as text or as a file."""

from __future__ import annotations

from pathlib import Path

from rlproof.faults.registry import catalogue
from rlproof.judge.check import check
from rlproof.judge.findings import FileReport
from rlproof.read.script import read
from rlproof.repair.fix import repair

EVERY = frozenset(catalogue())


def repair_file(path: Path, **options: object) -> FileReport:
    """What `check --diff` says of a file."""
    script = read(str(path))
    return repair(script, check(script), EVERY, **options)  # type: ignore[arg-type]


def repair_text(folder: Path, text: str, **options: object) -> FileReport:
    """The same for a script with this source."""
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    return repair_file(path, **options)


def run(text: str) -> dict[str, object]:
    """The names that a script defines."""
    namespace: dict[str, object] = {}
    exec(compile(text, "script.py", "exec"), namespace)
    return namespace
