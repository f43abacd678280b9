"""A process that has imported a script's libraries and forks children that then need not.

`python -P -m rlproof.bind.child.zygote SOCKET MODULE…`. Each message on the socket is the
folder in which a child starts and brings three descriptors: its requests, its answers, and where
its exit status goes. A forked child does what a started one does, with the same limits; a keeper
between the two waits for its end.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import suppress
from typing import NoReturn

STATUS_BYTES = 4
PATH_BYTES = 4096


def _main(descriptor: int, modules: list[str]) -> None:
    from rlproof.bind.child import arrays, calls, guard, landlock, load, outlined, trace

    del arrays, calls, landlock, load, outlined, trace  # what they import is there for all
    for name in modules:
        with suppress(ImportError):
            __import__(name)
    guard.end_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how the keepers end
    parent = socket.socket(fileno=descriptor)
    sys.argv[1:] = []
    while True:
        folder, given, _, _ = socket.recv_fds(parent, PATH_BYTES, 3)
        if not folder:
            return
        own = os.getpid()
        keeper = os.fork()
        if keeper == 0:
            parent.close()
            _keep(folder, given, own)
        for one in given:
            os.close(one)
        parent.sendall(keeper.to_bytes(STATUS_BYTES, "big"))


def _keep(folder: bytes, given: list[int], parent: int) -> NoReturn:
    """Fork the child and hand on how it ended. Both are one group, so that both can be killed."""
    from rlproof.bind.child.guard import end_with_parent

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    end_with_parent()
    if os.getppid() != parent:  # it died before it could be followed
        os._exit(1)
    os.setsid()
    child = os.fork()
    if child == 0:
        os.close(given[2])
        os.chdir(folder)
        _become_child(given[:2])
    for one in given[:2]:
        os.close(one)
    _, status = os.waitpid(child, 0)
    os.write(given[2], os.waitstatus_to_exitcode(status).to_bytes(STATUS_BYTES, "big", signed=True))
    os._exit(0)


def _become_child(given: list[int]) -> NoReturn:
    from rlproof.bind.child.__main__ import serve

    for target, one in enumerate(given):
        os.dup2(one, target)
        os.close(one)
    status = 1
    try:
        serve()
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    finally:
        os._exit(status & 0xFF)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
