"""What an input may do: no longer than so many seconds, no file written, no process, no unpickling.

Python tells an audit hook of every such step before it is taken. A hook can't be removed, so one is
installed on first use and looks at nothing outside of `watched`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

SECONDS = 10
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink",
            "os.truncate", "os.chmod", "shutil.rmtree"}  # fmt: skip
_OTHERS = {"pickle.find_class", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
           "os.fork", "socket.connect"}  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Hung(BaseException):
    """An input took too long. No `Exception`: code under test may not swallow it."""


class _Hook:
    def __init__(self) -> None:
        self.active = False
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.active:
            return
        if event in _CHANGES | _OTHERS:
            self.seen.append(f"{event} {arguments[:2]!r}"[:200])
        elif event == "open" and _writes(arguments):
            self.seen.append(f"open {arguments[:2]!r}"[:200])


def _writes(arguments: tuple[Any, ...]) -> bool:
    """Whether a file is opened to be changed; Python's own cache of modules is none of ours."""
    path, mode, flags = arguments
    if isinstance(path, str | bytes) and "__pycache__" in os.fsdecode(path):
        return False
    if isinstance(flags, int) and flags & _WRITING:
        return True
    return isinstance(mode, str) and bool(set(mode) & set("wax+"))


_hook: list[_Hook] = []


def _installed() -> _Hook:
    if not _hook:
        _hook.append(_Hook())
        sys.addaudithook(_hook[0])
    return _hook[0]


@contextmanager
def watched(seconds: float = SECONDS) -> Iterator[list[str]]:
    """Ends a block with `Hung` after a while; the list is of what it should not have done."""
    hook = _installed()

    def ended(_signal: int, _frame: FrameType | None) -> None:
        raise Hung(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ended)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    hook.seen, hook.active = [], True
    try:
        yield hook.seen
    finally:
        hook.active = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
