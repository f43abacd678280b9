"""One thread for work that would keep the server from answering."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

Job = Callable[[], None]


class Worker:
    """Does one job after the other. It never outlives the server: a daemon thread.

    A pool of `concurrent.futures` would let the interpreter wait for what is being done at the
    end. Children of the sandbox end with the thread that started them, so it lives on.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def submit(self, job: Job) -> None:
        """Have a job done after those before it; it may not raise."""
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._jobs.get()()
