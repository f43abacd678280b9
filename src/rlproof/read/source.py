"""Bytes of a file to text and syntax tree, or one clear line on why not."""

from __future__ import annotations

import ast
import io
import os
import tokenize
import warnings
from dataclasses import dataclass
from pathlib import Path

from rlproof.errors import NothingToCheckError, SourceError

_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv"}
_MAX_BYTES = 20_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """One script: its path as given, its text with plain newlines, and its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> list[str]:
        """The source lines; line n of a report is `lines[n - 1]`."""
        return self.text.split("\n")


def load(path: str) -> Source:
    """Read and parse a script without importing it.

    Raises:
        SourceError: missing, unreadable, binary, undecodable, or not valid Python (with line).
        NothingToCheckError: the file is empty.
    """
    text = _decode(path, _read(path))
    if not text.strip():
        raise NothingToCheckError(f"{path}: the file is empty, so there is nothing to check")
    return Source(path, text, _parse(path, text))


def expand(paths: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Files to check, sorted, each with whether the user named it (else found in a folder).

    Raises:
        NothingToCheckError: a folder holds no Python file.
    """
    found: dict[str, bool] = {}
    for path in paths:
        if os.path.isdir(path):
            inside = sorted(_python_files(path))
            if not inside:
                raise NothingToCheckError(f"{path}: the folder holds no Python file (*.py)")
            for name in inside:
                found.setdefault(name, False)
        else:
            found[path] = True
    return list(found.items())


def _python_files(folder: str) -> list[str]:
    names: list[str] = []
    for here, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not (Path(here) / name / "pyvenv.cfg").exists()
        ]
        names += [os.path.join(here, name) for name in files if name.endswith(".py")]
    return names


def _read(path: str) -> bytes:
    try:
        if os.path.getsize(path) > _MAX_BYTES:
            raise SourceError(f"{path}: larger than {_MAX_BYTES // 10**6} MB, not a script")
        if not os.path.isfile(path):
            raise SourceError(f"{path}: not a regular file; give a Python script or a folder")
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise SourceError(f"{path}: no such file; check the path") from None
    except OSError as error:
        raise SourceError(f"{path}: can't be read ({error.strerror})") from None
    except ValueError as error:  # a path with a NUL byte
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{path!r}: not a usable path ({error})") from None


def _decode(path: str, raw: bytes) -> str:
    if b"\0" in raw:
        raise SourceError(f"{path}: a binary file (it holds NUL bytes), not Python source")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        text = raw.decode(encoding)
    except SyntaxError as error:
        raise SourceError(f"{path}:1: {error.msg}; save it as UTF-8 or fix the cookie") from None
    except (UnicodeDecodeError, LookupError) as error:
        line = raw.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise SourceError(f"{path}:{line}: not valid {encoding} text; save it as UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _parse(path: str, text: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line = error.lineno or 1
        raise SourceError(f"{path}:{line}: not valid Python: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise SourceError(f"{path}: nested too deeply for Python's parser") from None
