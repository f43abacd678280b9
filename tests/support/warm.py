"""Sandboxes get children forked from processes that have imported what the script imports.

Starting an interpreter takes a tenth of a second, importing torch one or two, and the suite runs
thousands of scripts. A forked child does what a started one does: `tests/bind/` compares them, and
tests what a started one refuses.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock

import rlproof.repair.verify as verify
from rlproof.bind.children import Child, Warm, cold
from rlproof.bind.sandbox import Sandbox
from rlproof.read.source import Source

FIRST = {"numpy": ("numpy",), "torch": ("numpy", "torch", "torch._dynamo")}
"""What a process imports before it forks. torch imports `_dynamo` for the first optimizer."""


def heaviest(source: Source) -> str:
    """The library of `FIRST` that a script needs, or nothing; its own file of that name is none."""
    names = {name.split(".")[0] for node in ast.walk(source.tree) for name in imports(node)}
    folder = Path(source.path).resolve().parent
    for library in ("torch", "numpy"):
        own = (folder / library).exists() or (folder / f"{library}.py").exists()
        if library in names and not own:
            return library
    return ""


def imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}


class Pool:
    """One process for each of the libraries, begun when a script first needs it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._warm: dict[str, Warm] = {}
        self._lock = Lock()  # tests may check in threads
        self._environment = environment()
        self.used = True
        """Whether children are forked; they start from nothing otherwise."""

    def child(self, source: Source) -> Child:
        """A child for a script; a cold one where the environment has changed since."""
        if not self.used or environment() != self._environment:
            return cold()
        library = heaviest(source)
        with self._lock:
            if library not in self._warm:
                self._warm[library] = self._stack.enter_context(Warm(FIRST.get(library, ())))
        return self._warm[library].start()

    @contextmanager
    def unused(self) -> Iterator[None]:
        """Within, children start as they do for users."""
        self.used = False
        try:
            yield
        finally:
            self.used = True


@contextmanager
def warm_children() -> Iterator[Pool]:
    """Within, no child is started cold."""
    start, own = Sandbox._start, verify.warm_for
    with ExitStack() as stack:
        pool = Pool(stack)

        def begin(sandbox: Sandbox) -> None:
            sandbox._begin = sandbox._begin or (lambda: pool.child(sandbox.source))
            start(sandbox)

        Sandbox._start = begin  # type: ignore[method-assign]
        verify.warm_for = lambda source: None if pool.used else own(source)
        try:
            yield pool
        finally:
            Sandbox._start, verify.warm_for = start, own  # type: ignore[method-assign]
