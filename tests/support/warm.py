"""Child processes forked from one that has imported NumPy and torch already.

Importing torch takes a second, and a corpus has hundreds of scripts. What a forked child does
is what a started one does (`rlproof.bind.child.__main__._serve`), with the same limits; only its
exit status is not known here.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import rlproof.bind.sandbox as sandbox

_ZYGOTE = """
import os, signal, socket, sys
for name in ("numpy", "torch"):
    try:
        __import__(name)
    except ImportError:
        pass
from rlproof.bind.child.__main__ import _private_pipes, _serve
import rlproof.bind.child.calls, rlproof.bind.child.guard, rlproof.bind.child.load
import rlproof.bind.child.landlock, rlproof.bind.child.trace
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
parent = socket.socket(fileno=int(sys.argv[1]))
sys.argv[1:] = []
while True:
    message, given, _, _ = socket.recv_fds(parent, 1, 2)
    if not message:
        break
    pid = os.fork()
    if pid == 0:
        parent.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        for target, descriptor in enumerate(given):
            os.dup2(descriptor, target)
            os.close(descriptor)
        try:
            _serve(*_private_pipes())
        finally:
            os._exit(0)
    for descriptor in given:
        os.close(descriptor)
    parent.sendall(pid.to_bytes(4, "big"))
"""


class _Zygote:
    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
        environment |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        environment.setdefault("TORCHINDUCTOR_CACHE_DIR", "/tmp")
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _ZYGOTE, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self.socket = ours
        self.lock = threading.Lock()

    def fork(self) -> WarmChild:
        """A child that waits for requests on its standard input."""
        request_out, request_in = os.pipe()
        answer_out, answer_in = os.pipe()
        with self.lock:
            socket.send_fds(self.socket, [b"f"], [request_out, answer_in])
            pid = int.from_bytes(self.socket.recv(4), "big")
            handle = os.pidfd_open(pid)
        os.close(request_out)
        os.close(answer_in)
        return WarmChild(pid, handle, os.fdopen(request_in, "wb"), os.fdopen(answer_out, "rb"))

    def close(self) -> None:
        self.socket.close()
        self.process.wait(10)


class WarmChild:
    """As much of `subprocess.Popen` as the sandbox uses."""

    def __init__(self, pid: int, handle: int, stdin: Any, stdout: Any) -> None:
        self.pid, self.stdin, self.stdout = pid, stdin, stdout
        self._handle = handle

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; the status is not ours to know."""
        if self._handle >= 0:
            ready, _, _ = select.select([self._handle], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("child", timeout or 0)
            os.close(self._handle)
            self._handle = -1
        return 0


@contextmanager
def warm_children() -> Iterator[None]:
    """Within, every sandbox gets a forked child."""
    zygote = _Zygote()
    real = sandbox.subprocess
    fake = types.SimpleNamespace(
        Popen=lambda *_, **__: zygote.fork(),
        PIPE=subprocess.PIPE,
        DEVNULL=subprocess.DEVNULL,
        TimeoutExpired=subprocess.TimeoutExpired,
    )
    sandbox.subprocess = fake  # type: ignore[assignment]
    try:
        yield
    finally:
        sandbox.subprocess = real
        zygote.close()
        with suppress(ProcessLookupError):
            os.kill(zygote.process.pid, signal.SIGKILL)
