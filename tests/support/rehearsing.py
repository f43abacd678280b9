"""One identity asked of a script given as text."""

from __future__ import annotations

from pathlib import Path

from rlproof.judge.rehearsals.model import Rehearsed
from rlproof.judge.rehearsals.registry import rehearsed
from rlproof.read.script import read


def rehearse(folder: Path, text: str, code: str, name: str, seconds: float = 30.0) -> Rehearsed:
    """What executing the function with stand-ins says of the identity behind a code."""
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    return rehearsed(read(str(path)), code, name, seconds)
