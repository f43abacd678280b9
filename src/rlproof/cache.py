"""What is known of files from earlier checks: an unchanged file is not executed again.

One entry for each path and each set of settings, in a folder of its own. An entry holds for the
bytes of the file and of every project file that it imports, for this rlproof, this Python and
these installed packages. Whatever can't be read, or is not as it was written, is no entry. What
depends on the clock or on files that no import names is never kept, and no repair is.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

import rlproof
from rlproof.errors import ConfigError, NothingToCheckError
from rlproof.options import Options
from rlproof.read.dependencies import Digests, dependencies, unchanged
from rlproof.report.write import write_atomically
from rlproof.single import Single, examine
from rlproof.stored import NotStorableError, dumps, loads

_HEAD = b"rlproof cache 1\n"
_SUM = 32
_MOST_BYTES = 50_000_000
_CLOCK = re.compile(
    r"did not finish|crashed|ended the process|closed its connection|is lost|[Mm]emory|signal"
)
"""Reasons that another run, on a machine with less to do, may not have."""


@dataclass
class Cache:
    """The entries of one folder, for the settings of one run."""

    folder: str
    settings: bytes
    """All that an entry holds for, but for the files."""
    known: Digests = field(default_factory=dict)
    """Digests of files, each taken once a run."""

    @classmethod
    def of(cls, options: Options) -> Cache | None:
        """The cache that the options name; None for none, and where files are repaired."""
        if options.cache is None or options.fix or options.diff:
            return None
        chosen = [options.objective, options.default, options.run, options.seconds]
        settings = msgspec.json.encode([
            list(map(repr, chosen)), sorted(options.roles.items()), list(_environment()),
        ])  # fmt: skip
        return cls(options.cache, settings)

    def find(self, path: str) -> Single | None:
        """What became of a file, if nothing that it depends on has changed since."""
        try:
            with open(self._entry(path), "rb") as file:
                raw = file.read(_MOST_BYTES)
        except (OSError, ValueError):
            return None
        head, checksum, payload = raw[: len(_HEAD)], raw[len(_HEAD) :][:_SUM], raw[_START:]
        if head != _HEAD or hashlib.sha256(payload).digest() != checksum:
            return None
        try:
            settings, digests, single = loads(payload)
            same = settings == self.settings and unchanged(digests, self.known)
        except (ValueError, TypeError, AttributeError):
            return None
        return single if same and isinstance(single, Single) else None

    def keep(self, path: str, single: Single, digests: Digests | None) -> None:
        """Write an entry, if it is one that can be trusted and the folder takes it."""
        if digests is None or not _is_lasting(single):
            return
        try:
            payload = dumps((self.settings, digests, single))
            if dumps(loads(payload)) != payload:
                return
        except (NotStorableError, ValueError, OverflowError):
            return
        with suppress(OSError, ConfigError):
            self._prepare()
            whole = _HEAD + hashlib.sha256(payload).digest() + payload
            write_atomically(self._entry(path), whole, "--cache")

    def _entry(self, path: str) -> str:
        """Overwritten when the file or the libraries change: a cache grows with paths alone."""
        real = "" if "\0" in path else os.path.realpath(path)
        who = "\0".join([path, real, os.getcwd()]).encode(errors="surrogatepass")
        return os.path.join(self.folder, hashlib.sha256(who + _choice(self.settings)).hexdigest())

    def _prepare(self) -> None:
        if os.path.isdir(self.folder):
            return
        os.makedirs(self.folder)
        for name, text in (
            (".gitignore", "*\n"),
            ("CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n"),
        ):
            Path(self.folder, name).write_text(text, "ascii")


_START = len(_HEAD) + _SUM


def fresh(path: str, options: Options, *, keep: bool) -> tuple[Single, Digests | None]:
    """Check a file, and take digests of what the outcome depends on if it may be kept.

    They are taken before; files that change while they are executed leave no entry.
    """
    digests = dependencies(path, {}) if keep else None
    single = examine(path, options)
    lasting = digests is not None and unchanged(digests, {})
    return single, digests if lasting else None


def _is_lasting(single: Single) -> bool:
    if single.error is not None and type(single.error) is not NothingToCheckError:
        return False
    skipped = single.report.skipped if single.report else ()
    return not any(_CLOCK.search(skip.reason) for skip in skipped)


def _choice(settings: bytes) -> bytes:
    """The part of the settings that a user chooses."""
    chosen: list[Any] = msgspec.json.decode(settings)
    return msgspec.json.encode(chosen[:2])


def _environment() -> Iterator[str]:
    """Versions of all that executes a script."""
    yield from (rlproof.__version__, sys.version, sys.executable, os.environ.get("PYTHONPATH", ""))
    yield _digest_of(_own_files())
    yield _digest_of(_packages())


def _own_files() -> Iterator[tuple[str, int, int]]:
    """The files of rlproof itself: an installation for development keeps its version."""
    for here, folders, names in os.walk(os.path.dirname(rlproof.__file__)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            path = os.path.join(here, name)
            known = os.stat(path)
            yield path, known.st_mtime_ns, known.st_size


def _packages() -> Iterator[tuple[str, int, int]]:
    """What is installed: the folders of metadata have the versions in their names."""
    for entry in dict.fromkeys(sys.path):
        if not entry.endswith("-packages") or not os.path.isdir(entry):
            continue
        with os.scandir(entry) as found:
            for one in found:
                if one.name.endswith((".dist-info", ".egg-info", ".pth", ".egg-link")):
                    yield one.path, one.stat().st_mtime_ns, 0
                elif not one.name.endswith("__pycache__"):
                    yield one.path, 0, 0


def _digest_of(files: Iterator[tuple[str, int, int]]) -> str:
    return hashlib.sha256(repr(sorted(files)).encode(errors="surrogatepass")).hexdigest()
