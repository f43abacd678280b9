"""What the script's functions may not do: start processes, write files, use the network.

An audit hook refuses these and the refusal is reported. It keeps accidents from happening;
it is no protection against a script written to break out of Python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_REFUSED = {
    "os.fork": "start a process",
    "os.forkpty": "start a process",
    "os.posix_spawn": "start a process",
    "os.spawn": "start a process",
    "os.exec": "start a process",
    "os.system": "start a process",
    "subprocess.Popen": "start a process",
    "socket.connect": "use the network",
    "socket.bind": "use the network",
    "socket.getaddrinfo": "use the network",
    "os.kill": "send a signal",
    "os.remove": "delete a file",
    "os.rename": "rename a file",
    "os.mkdir": "make a folder",
    "os.rmdir": "delete a folder",
    "os.link": "make a link",
    "os.symlink": "make a link",
    "os.truncate": "write a file",
    "os.chmod": "change a file",
    "shutil.rmtree": "delete a folder",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MEMORY = 4 << 30  # bytes above what is in use after loading
_CPU_SECONDS = 600


class Refused(PermissionError):
    """A function tried something that the sandbox forbids."""


class Guard:
    """Switches the refusals on while the script's own code runs."""

    def __init__(self) -> None:
        self.active = False

    def install(self) -> None:
        """Add the audit hook; it can't be removed again, only idle."""
        sys.addaudithook(self._audit)

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Refuse side effects inside this block."""
        yield from self._set(True)

    @contextmanager
    def relaxed(self) -> Iterator[None]:
        """Let installed packages be imported inside this block."""
        yield from self._set(False)

    def _set(self, value: bool) -> Iterator[None]:
        before, self.active = self.active, value
        try:
            yield
        finally:
            self.active = before

    def _audit(self, event: str, args: tuple[object, ...]) -> None:
        if not self.active:
            return
        if event in _REFUSED:
            raise Refused(f"tried to {_REFUSED[event]}, which the sandbox refuses")
        if event == "open" and _is_write(args):
            raise Refused(f"tried to write {args[0]!r}, which the sandbox refuses")


def _is_write(args: tuple[object, ...]) -> bool:
    path, mode, flags = args
    if path == os.devnull:
        return False
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITES)


def limit_resources() -> None:
    """Cap memory, CPU time, core dumps and file sizes of this process, where the system can."""
    with suppress(ImportError, OSError, ValueError):
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
        with open("/proc/self/statm", encoding="ascii") as file:
            in_use = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (in_use + _MEMORY, in_use + _MEMORY))


GUARD = Guard()
