"""Checking a script given as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rlproof.judge.check import check
from rlproof.judge.findings import FileReport
from rlproof.read.script import read

_TORCH = re.compile(r"^\s*(import|from) torch\b", re.MULTILINE)


def check_text(folder: Path, text: str, **options: object) -> FileReport:
    """The report on a script with this source; the test is skipped where its library is missing."""
    if _TORCH.search(text):
        pytest.importorskip("torch", reason="torch is not installed")
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    return check(read(str(path)), **options)  # type: ignore[arg-type]


def strong(report: FileReport) -> list[str]:
    """The codes of errors and warnings, sorted."""
    return sorted(f.code for f in report.findings if f.severity != "note")
