"""Many files checked: known ones from the cache, others by helper processes, in order.

The outcome is that of checking one after the other. Repairs are made one after the other: a file
may import one that was repaired before it.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import IO, Any

from rlproof.cache import Cache, fresh
from rlproof.errors import ConfigError, SandboxError
from rlproof.options import Options
from rlproof.read.dependencies import Digests
from rlproof.read.source import shown
from rlproof.single import Single
from rlproof.stored import dumps, loads

_SIZE = struct.Struct(">Q")
_Fresh = tuple[Single, Digests | None]


def examined(paths: Sequence[str], options: Options) -> Iterator[Single]:
    """What became of each file, in order."""
    cache = Cache.of(options)
    found = [cache.find(path) if cache else None for path in paths]
    left = [path for path, single in zip(paths, found, strict=True) if single is None]
    jobs = 1 if options.fix or options.diff else min(options.jobs, (len(left) + 1) // 2)
    new = _shared(left, options, jobs, keep=cache is not None) if jobs > 1 else (
        fresh(path, options, keep=cache is not None) for path in left
    )  # fmt: skip
    for path, known in zip(paths, found, strict=True):
        if known is not None:
            yield known
            continue
        single, digests = next(new)
        if cache:
            cache.keep(path, single, digests)
        yield single


def _shared(paths: Sequence[str], options: Options, jobs: int, *, keep: bool) -> Iterator[_Fresh]:
    """Each file by one of several helpers; the first error of the settings ends the work."""
    team = _Team(paths, options, keep)
    threads = [threading.Thread(target=team.work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    try:
        yield from team.answers()
    finally:
        team.stop()
        for thread in threads:
            thread.join()


class _Team:
    """Work that is left, and answers: shared by the threads that each have a helper."""

    def __init__(self, paths: Sequence[str], options: Options, keep: bool) -> None:
        self._request = {
            "keep": keep,
            "objective": options.objective,
            "default": options.default,
            "run": options.run,
            "seconds": options.seconds,
            "roles": dict(options.roles),
        }
        self._count = len(paths)
        self._left = deque(enumerate(paths))
        self._found: dict[int, _Fresh | Exception] = {}
        self._changed = threading.Condition()
        self._helpers: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def answers(self) -> Iterator[_Fresh]:
        """The answers in order, as soon as they are there."""
        for number in range(self._count):
            with self._changed:
                self._changed.wait_for(lambda: number in self._found)  # noqa: B023
                answer = self._found.pop(number)
            if isinstance(answer, Exception):
                raise answer
            yield answer

    def stop(self) -> None:
        """End the helpers, whatever they are doing."""
        with self._changed:
            self._ended = True
            self._left.clear()
            for helper in self._helpers:
                helper.kill()

    def work(self) -> None:
        """Have a helper check one file after the other; a new one where it dies."""
        helper: subprocess.Popen[bytes] | None = None
        while True:
            try:
                number, path = self._left.popleft()
            except IndexError:
                break
            try:
                helper = helper or self._begun()
                answer = _asked(helper, {**self._request, "path": path})
            except (OSError, EOFError, ValueError):
                if helper:
                    self._end(helper)
                helper = None
                reason = f"{shown(path)}: the process that checked it ended; check it alone"
                answer = Single(error=SandboxError(reason)), None
            self._tell(number, answer)
        if helper:
            self._end(helper)

    def _tell(self, number: int, answer: _Fresh | Exception) -> None:
        with self._changed:
            self._found[number] = answer
            if isinstance(answer, Exception) or isinstance(answer[0].error, ConfigError):
                self._left.clear()  # what is before it in order is at work already
            self._changed.notify_all()

    def _begun(self) -> subprocess.Popen[bytes]:
        with self._changed:
            if self._ended:
                raise EOFError
            helper = subprocess.Popen(
                [sys.executable, "-P", "-m", "rlproof.many"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            self._helpers.add(helper)
            return helper

    def _end(self, helper: subprocess.Popen[bytes]) -> None:
        with self._changed:
            self._helpers.discard(helper)
        for pipe in (helper.stdin, helper.stdout):
            if pipe:
                with suppress(OSError):
                    pipe.close()
        helper.kill()
        helper.wait()


def _asked(helper: subprocess.Popen[bytes], request: dict[str, Any]) -> _Fresh | Exception:
    assert helper.stdin is not None
    assert helper.stdout is not None
    _send(helper.stdin, request)
    return _opened(_received(helper.stdout))


def _opened(answer: dict[str, Any]) -> _Fresh | Exception:
    if raised := answer.get("raised"):
        name, message = raised
        kind = RecursionError if name == "RecursionError" else type(name, (RuntimeError,), {})
        error: Exception = kind(message)
        return error
    return answer["single"], answer["digests"]


def _send(pipe: IO[bytes], message: Any) -> None:
    raw = dumps(message)
    pipe.write(_SIZE.pack(len(raw)) + raw)
    pipe.flush()


def _received(pipe: IO[bytes]) -> Any:
    """The next message.

    Raises:
        EOFError: the other side has ended.
    """
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        raise EOFError
    (size,) = _SIZE.unpack(head)
    raw = pipe.read(size)
    if len(raw) < size:
        raise EOFError
    return loads(raw)


def main() -> None:
    """Answer each request of the input; nothing else is written to the output."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    with suppress(EOFError, KeyboardInterrupt):
        while True:
            _send(answers, _answer(_received(requests)))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    path, keep = request.pop("path"), request.pop("keep")
    options = Options(codes=frozenset(), style="full", **request)
    try:
        single, digests = fresh(path, options, keep=keep)
        dumps(single)
    except Exception as error:
        return {"raised": [type(error).__name__, str(error)]}
    return {"single": single, "digests": digests}


if __name__ == "__main__":
    main()
