"""`check --watch`: a check again whenever a file changes, seen by looking at times and sizes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from rlproof.errors import RlproofError
from rlproof.read.source import expand, is_notebook

PAUSE = 0.4
"""Seconds between two looks."""
_INTERRUPTED = 2
Stamps = dict[str, tuple[int, int]]


def repeat(
    paths: Sequence[str],
    run: Callable[[], tuple[int, Sequence[str]]],
    say: Callable[[str], None],
    *,
    pause: float = PAUSE,
) -> int:
    """Check until the user interrupts; the exit code of the last check that was completed.

    Args:
        paths: files and folders that are checked.
        run: checks them once; its exit code, and further files that it read.
        say: takes a line on what is being done.
        pause: seconds between two looks at the files.
    """
    code = _INTERRUPTED
    watched = list(paths)
    try:
        while True:
            before = stamps(watched)
            code, further = run()
            watched = [*paths, *further]
            seen = stamps(watched)
            if any(seen.get(path) != stamp for path, stamp in before.items()):
                continue  # something changed while the check ran
            say(f"watching {len(seen)} file{'s' * (len(seen) != 1)}; Ctrl-C ends")
            while stamps(watched) == seen:
                time.sleep(pause)
    except KeyboardInterrupt:
        return code


def stamps(paths: Sequence[str]) -> Stamps:
    """Time and size of every file to check, of the Python files beside it and of the settings."""
    found: Stamps = {}
    folders: dict[str, None] = {os.curdir: None}
    for path in paths:
        try:
            files = [name for name, _ in expand((path,))]
        except RlproofError:
            continue  # an empty folder may have files later
        for name in files:
            if stamp := _stamp(name):
                found[name] = stamp
            folders[os.path.dirname(name) or os.curdir] = None
    for folder in folders:
        for name in _beside(folder):
            if stamp := _stamp(name):
                found[name] = stamp
    return found


def _beside(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    chosen = [n for n in names if n.endswith(".py") or is_notebook(n) or n == "pyproject.toml"]
    return [os.path.normpath(os.path.join(folder, name)) for name in chosen]


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        known = os.stat(path)
    except (OSError, ValueError):
        return None
    return known.st_mtime_ns, known.st_size
