"""The parent's side of the child process: start, ask, time out, restart."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import TracebackType
from typing import Any

from rlproof.errors import SandboxError
from rlproof.read.source import Source

Answer = dict[str, Any]
_LOAD_SECONDS = 120.0  # importing torch from a cold disk takes tens of seconds
DEFAULT_SECONDS = 10.0


class ChildDiedError(RuntimeError):
    """The script's function hung, crashed the interpreter, or ended the process."""


class Sandbox:
    """Runs the functions of one script in a child process. Use as a context manager."""

    def __init__(self, source: Source, seconds: float = DEFAULT_SECONDS) -> None:
        self.source = source
        self.seconds = seconds
        self.reasons: dict[str, str] = {}
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._kill()

    def call(self, calls: list[Answer]) -> list[Answer]:
        """Perform several calls; one answer each.

        Raises:
            ChildDiedError: the child hung or died; the next call starts a fresh one.
        """
        answers: list[Answer] = self._ask({"op": "call", "calls": calls})
        return answers

    def state(self, request: Answer) -> Answer:
        """One call, with what its arguments hold afterwards."""
        answer: Answer = self._ask({"op": "state", **request})
        return answer

    def record(self, request: Answer) -> Answer:
        """Run a training function with its parts recorded."""
        answer: Answer = self._ask({"op": "record", **request})
        return answer

    def load(self) -> dict[str, str]:
        """Start the child if needed. Returns why some names of the script are unusable."""
        if self._child is None:
            self._start()
        return self.reasons

    def _start(self) -> None:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            environment.setdefault(name, "1")
        try:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "rlproof.bind.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"can't start {sys.executable}: {error.strerror}") from None
        request = {"op": "load", "path": self.source.path, "text": self.source.text}
        self.reasons = self._exchange(request, max(_LOAD_SECONDS, self.seconds))["reasons"]

    def _ask(self, request: Answer) -> Any:
        self.load()
        return self._exchange(request, self.seconds)

    def _exchange(self, request: Answer, seconds: float) -> Any:
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps(request).encode() + b"\n")
            child.stdin.flush()
        except OSError:
            raise ChildDiedError(self._epitaph()) from None
        return json.loads(self._line(child.stdout.fileno(), seconds))

    def _line(self, descriptor: int, seconds: float) -> bytes:
        """One answer, or the reason there is none."""
        deadline = time.monotonic() + seconds
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self._kill()
                    raise ChildDiedError(f"did not finish within {seconds:g} s")
                chunk = os.read(descriptor, 1 << 20)
                if not chunk:
                    raise ChildDiedError(self._epitaph())
                received += chunk
        return bytes(received)

    def _epitaph(self) -> str:
        code = self._kill(patience=1.0)
        if code is not None and code < 0:
            return f"crashed the interpreter ({signal.Signals(-code).name})"
        return f"ended the process (exit status {code})"

    def _kill(self, patience: float = 0.0) -> int | None:
        child, self._child = self._child, None
        if child is None:
            return None
        try:
            code: int | None = child.wait(patience)
        except subprocess.TimeoutExpired:
            code = None
        with suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()
        return code
