"""What the script's functions may not do: start processes, write files, use the network.

An audit hook refuses these and the refusal is reported. It keeps accidents from happening;
it is no protection against a script written to break out of Python. What the hook can't see,
`landlock` forbids where the system has it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

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
    "socket.gethostbyname": "use the network",
    "socket.sendmsg": "use the network",
    "socket.sendto": "use the network",
    "socket.sethostname": "rename this machine",
    "os.kill": "send a signal",
    "os.killpg": "send a signal",
    "os.remove": "delete a file",
    "os.rename": "rename a file",
    "os.mkdir": "make a folder",
    "os.rmdir": "delete a folder",
    "os.link": "make a link",
    "os.symlink": "make a link",
    "os.truncate": "write a file",
    "os.chmod": "change a file",
    "os.chown": "change a file",
    "os.removexattr": "change a file",
    "os.setxattr": "change a file",
    "os.utime": "change a file",
    "shutil.rmtree": "delete a folder",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MEMORY = 4 << 30  # bytes above what is in use after loading
_CPU_SECONDS = 600


class RefusedError(PermissionError):
    """A function tried something that the sandbox forbids."""


class Guard:
    """Switches the refusals on while the script's own code runs."""

    def __init__(self) -> None:
        self.active = False

    def install(self) -> None:
        """Add the audit hook; it can't be removed again, only idle."""
        tempfile.gettempdir()  # found by trying to write, which libraries do on first use
        sys.addaudithook(self._audit)
        self._refuse_unseen("_posixsubprocess", "fork_exec", "start a process")

    def arm(self) -> None:
        """From here on refuse at any time: the script's threads outlive its calls."""
        self.active = True
        if "torch" in sys.modules:
            self._refuse_unseen("torch._C", "PyTorchFileWriter", "write a file")

    def _refuse_unseen(self, module: str, name: str, what: str) -> None:
        """Wrap a native function that raises no audit event of its own."""
        holder = sys.modules.get(module) or __import__(module)
        original = getattr(holder, name, None)

        def guarded(first: Any, *args: Any, **kwargs: Any) -> Any:
            if self.active and not hasattr(first, "write"):
                _refuse(what)
            return original(first, *args, **kwargs)  # type: ignore[misc]

        if original is not None:
            setattr(holder, name, guarded)

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
            _refuse(_REFUSED[event])
        if event == "open" and _is_write(args):
            _refuse(f"write {args[0]!r}")
        if event == "sqlite3.connect" and args[0] != ":memory:":
            _refuse(f"write {args[0]!r}")


def _refuse(what: str) -> NoReturn:
    raise RefusedError(f"tried to {what}, which the sandbox refuses")


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
        limit = _memory_in_use() + _MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@contextmanager
def brief(seconds: float) -> Iterator[None]:
    """Limits for one definition or constant: past the time, the kernel ends this process.

    A handler in Python would not do: `9**9**9` runs in C and never looks at signals.
    """
    import resource
    import signal

    before = resource.getrlimit(resource.RLIMIT_AS)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_memory_in_use() + _MEMORY, before[1]))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, before)


def _memory_in_use() -> int:
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def end_with_parent() -> None:
    """Have the kernel end this process when the one that started it dies, where it can."""
    with suppress(OSError, AttributeError):
        import ctypes
        import signal

        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)


GUARD = Guard()
