"""The parent's side of the child process: start, ask, time out, restart."""

from __future__ import annotations

import ast
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from rlproof.bind.children import Child, cold
from rlproof.bind.outlined import packed
from rlproof.read.source import Source

Answer = dict[str, Any]
_LONGEST = 200_000_000  # bytes of one answer
_LOAD_SECONDS = 120.0  # importing torch from a cold disk takes tens of seconds
_LONGEST_WAIT = 86_400.0  # timers of the system take no infinity
DEFAULT_SECONDS = 10.0


class ChildDiedError(RuntimeError):
    """The script's function hung, crashed the interpreter, or ended the process."""


class Sandbox:
    """Runs the functions of one script in a child process. Use as a context manager."""

    def __init__(
        self,
        source: Source,
        seconds: float = DEFAULT_SECONDS,
        outlined: Mapping[str, ast.AST] | None = None,
        begin: Callable[[], Child] | None = None,
    ) -> None:
        self._begin = begin
        self.source = source
        self.outlined = packed(outlined or {})
        self.seconds = seconds if seconds < _LONGEST_WAIT else _LONGEST_WAIT  # not-a-number too
        self.reasons: dict[str, str] = {}
        self._child: Child | None = None

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._kill()

    def call(self, calls: list[Answer]) -> list[Answer]:
        """Perform several calls; one answer each.

        Raises:
            ChildDiedError: the child hung or died; the next call starts a fresh one.
        """
        answers = self._ask({"op": "call", "calls": calls})
        whole = isinstance(answers, list) and len(answers) == len(calls)
        if not whole or not all(isinstance(answer, dict) for answer in answers):
            raise ChildDiedError(self._spoilt())
        return list(answers)

    def state(self, request: Answer) -> Answer:
        """One call, with what its arguments hold afterwards."""
        return self._one({"op": "state", **request})

    def record(self, request: Answer) -> Answer:
        """Run a training function with its parts recorded."""
        return self._one({"op": "record", **request})

    def rehearse(self, request: Answer) -> Answer:
        """Run functions with stand-ins for their parameters."""
        return self._one({"op": "rehearse", **request})

    def load(self) -> dict[str, str]:
        """Start the child if needed. Returns why some names of the script are unusable."""
        if self._child is None:
            self._start()
        return self.reasons

    def _start(self) -> None:
        self._child = (self._begin or cold)()
        request = {
            "op": "load",
            "path": self.source.path,
            "text": self.source.text,
            "seconds": self.seconds,
            "outlined": self.outlined,
        }
        self.reasons = self._exchange(request, max(_LOAD_SECONDS, self.seconds))["reasons"]

    def _ask(self, request: Answer) -> Any:
        self.load()
        return self._exchange(request, self.seconds)

    def _one(self, request: Answer) -> Answer:
        answer = self._ask(request)
        if not isinstance(answer, dict):
            raise ChildDiedError(self._spoilt())
        return answer

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
        try:
            return json.loads(self._line(child.stdout.fileno(), seconds))
        except ValueError:
            raise ChildDiedError(self._spoilt()) from None

    def _line(self, descriptor: int, seconds: float) -> bytes:
        """One answer, or the reason there is none."""
        deadline = time.monotonic() + seconds
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left < 0 or not selector.select(left):
                    self._kill()
                    raise ChildDiedError(f"did not finish within {seconds:g} s")
                if len(received) > _LONGEST:
                    raise ChildDiedError(self._spoilt())
                chunk = os.read(descriptor, 1 << 20)
                if not chunk:
                    raise ChildDiedError(self._epitaph())
                received += chunk
        return bytes(received)

    def _epitaph(self) -> str:
        code = self._kill(patience=1.0)
        if code is None:
            return "closed its connection to rlproof"
        if code == -signal.SIGALRM:
            return f"did not finish within {self.seconds:g} s"
        if code < 0:
            known = [s.name for s in signal.Signals if s == -code]
            return f"crashed the interpreter ({known[0] if known else f'signal {-code}'})"
        return f"ended the process (exit status {code})"

    def _spoilt(self) -> str:
        self._kill()
        return "wrote to files that are not its own, so its answer is lost"

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
