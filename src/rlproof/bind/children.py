"""How a child process begins: started from nothing, or forked from one that is warm.

Importing torch takes seconds, and a search for repairs executes one script many times over.
"""

from __future__ import annotations

import ast
import atexit
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

from rlproof.bind.child.zygote import STATUS_BYTES
from rlproof.errors import SandboxError
from rlproof.read.source import Source

_HEAVY = {"torch"}


class Child(Protocol):
    """As much of `subprocess.Popen` as the sandbox uses."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None

    def wait(self, timeout: float | None = None) -> int:
        """The exit status; raises `subprocess.TimeoutExpired`."""


def cold() -> Child:
    """A child of its own interpreter.

    Raises:
        SandboxError: the system refuses.
    """
    try:
        return subprocess.Popen(
            _python("rlproof.bind.child"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError(f"can't start {sys.executable}: {error.strerror}") from None


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", module, *arguments]  # -P: the folder is no package


def _environment() -> dict[str, str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        environment.setdefault(name, "1")
    # torch makes a cache folder when an optimizer is first used; an existing one suits it
    environment.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.gettempdir())
    return environment


class Warm:
    """Children forked from one process that has the libraries. Use as a context manager.

    Args:
        modules: what it imports first; what is not installed is left out.
    """

    def __init__(self, modules: Sequence[str]) -> None:
        self._modules = modules
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Warm:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if self._socket:
            self._socket.close()
        if self._process:
            self._process.kill()
            self._process.wait()

    def start(self) -> Child:
        """A forked child in the present folder; a cold one where the system can't fork one."""
        with self._lock:
            try:
                return self._forked()
            except (OSError, EOFError):
                return cold()

    def _forked(self) -> Child:
        if self._socket is None:
            self._socket = self._begin()
        folder = os.getcwdb()
        request_out, request_in = os.pipe()
        answer_out, answer_in = os.pipe()
        status_out, status_in = os.pipe()
        try:
            socket.send_fds(self._socket, [folder], [request_out, answer_in, status_in])
            answer = self._socket.recv(STATUS_BYTES, socket.MSG_WAITALL)
            if len(answer) < STATUS_BYTES:
                raise EOFError
        except (OSError, EOFError):
            for one in (request_in, answer_out, status_out):
                os.close(one)
            raise
        finally:
            for one in (request_out, answer_in, status_in):
                os.close(one)
        pid = int.from_bytes(answer, "big")
        return _Forked(pid, os.fdopen(request_in, "wb"), os.fdopen(answer_out, "rb"), status_out)

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                _python("rlproof.bind.child.zygote", str(number), *self._modules),
                pass_fds=[number],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(),
            )
        return ours


class _Forked:
    """A child that is another process's: its end is read from a pipe."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes], status: int) -> None:
        self.pid = pid
        self.stdin: IO[bytes] | None = stdin
        self.stdout: IO[bytes] | None = stdout
        self._status = status
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit status; that of a kill where nobody was left to tell."""
        if self._code is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._status, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired("child", timeout or 0)
            said = os.read(self._status, STATUS_BYTES)
            os.close(self._status)
            self._code = int.from_bytes(said, "big", signed=True) if said else -9
        return self._code


def warm_for(source: Source) -> Warm | None:
    """A warm process for a script that imports something heavy; None where cold starts do."""
    used = _heavy(source)
    return Warm(used) if used else None


def shared_for(source: Source) -> Warm | None:
    """The same, shared by all such scripts of this process until it ends.

    A process of its own after a fork, or where the environment is no longer what it was.
    """
    used = _heavy(source)
    if not used:
        return None
    here = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return _shared(tuple(used), os.getpid(), frozenset(here.items()))


@cache
def _shared(modules: tuple[str, ...], owner: int, _: frozenset[tuple[str, str]]) -> Warm:
    warm = Warm(modules)

    def end() -> None:
        if os.getpid() == owner:
            warm.__exit__(None, None, None)

    atexit.register(end)
    return warm


def _heavy(source: Source) -> list[str]:
    """What a script imports that is worth keeping warm, where children can be forked."""
    folder = Path(source.path).parent
    used = {
        name.split(".")[0]
        for node in ast.walk(source.tree)
        for name in _imports(node)
        if name.split(".")[0] in _HEAVY
    }
    with suppress(OSError, ValueError):
        if any((folder / name).exists() or (folder / f"{name}.py").exists() for name in used):
            return []  # the script's own file of that name comes first
    return sorted(used) if hasattr(socket, "send_fds") else []


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
