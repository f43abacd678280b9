"""Commands that pages show: run while the site is built, in a folder with the example in it."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
COLUMNS = 88
_SECONDS = 120
_CUT = "⋮"


class UnexpectedError(RuntimeError):
    """A command or an edit does not do what its page says."""


def prepare(folder: Path) -> None:
    """What a page's commands find: the broken trainer and the scripts of docs/examples."""
    shutil.copy(ROOT / "examples" / "broken_trainer.py", folder)
    for script in (ROOT / "docs" / "examples").glob("*.py"):
        shutil.copy(script, folder)


def run(command: str, folder: Path, exit_code: int = 0) -> str:
    """What a command prints, errors included.

    Raises:
        UnexpectedError: another exit code, or it takes too long.
    """
    scripts = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": scripts + os.pathsep + os.environ.get("PATH", ""),
        "COLUMNS": str(COLUMNS),
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_SECONDS,
        check=False,
    )
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode != exit_code:
        raise UnexpectedError(
            f"`{command}` exits with {done.returncode}, the page says {exit_code}:\n{output}"
        )
    return output


def only(output: str, wanted: list[str]) -> str:
    """The paragraphs of an output in which one of the patterns is found, cuts marked.

    Raises:
        UnexpectedError: a pattern is found nowhere.
    """
    paragraphs = [p for p in re.split(r"\n{2,}", output.strip("\n")) if p]
    patterns = [re.compile(pattern, re.MULTILINE) for pattern in wanted]
    for pattern in patterns:
        if not any(pattern.search(p) for p in paragraphs):
            raise UnexpectedError(f"nothing in the output matches {pattern.pattern!r}:\n{output}")
    shown: list[str] = []
    for paragraph in paragraphs:
        if any(pattern.search(paragraph) for pattern in patterns):
            shown.append(paragraph)
        elif not shown or shown[-1] != _CUT:
            shown.append(_CUT)
    return "\n\n".join(shown) + "\n"


def expect(output: str, pattern: str) -> None:
    """Hold the prose of a page to what was printed.

    Raises:
        UnexpectedError: the pattern is not found.
    """
    if not re.search(pattern, output, re.MULTILINE):
        raise UnexpectedError(f"the page counts on {pattern!r}, which is not in:\n{output}")


def edit(file: Path, old: str, new: str) -> str:
    """Replace the one occurrence of some lines; the change as a diff.

    Raises:
        UnexpectedError: the lines are not there, or more than once.
    """
    before = file.read_text("utf-8")
    if before.count(old) != 1:
        raise UnexpectedError(f"{file.name} has {before.count(old)} times:\n{old}")
    after = before.replace(old, new)
    file.write_text(after, "utf-8")
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    return "\n".join(line for line in lines if not line.startswith(("---", "+++"))) + "\n"
