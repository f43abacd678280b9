"""Bytes of a file to text and syntax tree, or one clear line on why not."""

from __future__ import annotations

import ast
import codecs
import io
import os
import re
import tokenize
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlproof.errors import NothingToCheckError, SourceError

_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages", "build", "dist", "venv"}
_MAX_BYTES = 20_000_000
_MAX_NOTEBOOK = 200_000_000  # pictures among the outputs count
_LONG_NUMBER = re.compile(r"0[xXoObB][0-9a-fA-F_]{3000}")
_MOST_BITS = 13_000
_UNKNOWN_TO_ASCII = bytes(range(128)) + b"?" * 128


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell of a notebook: its number among all cells, and where it lies in the source."""

    number: int
    first: int
    """The line of the joined source that is the cell's first."""
    count: int
    """How many lines it has."""


@dataclass(frozen=True, slots=True)
class Source:
    """One script: its path as given, its text with plain newlines, and its tree."""

    path: str
    text: str
    tree: ast.Module
    cells: tuple[Cell, ...] = ()
    """The cells of a notebook that hold code; a script has none."""

    @property
    def lines(self) -> list[str]:
        """The source lines; line n of a report is `lines[n - 1]`."""
        return self.text.split("\n")


def shown(path: str) -> str:
    """A path on one line of text: line breaks, escapes and stray bytes spelt out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in path)


def load(path: str) -> Source:
    """Read and parse a script without importing it.

    Raises:
        SourceError: missing, unreadable, binary, undecodable, or not valid Python (with line).
        NothingToCheckError: the file is empty.
    """
    raw = _read(path)
    if is_notebook(path):
        from rlproof.read import notebook

        return notebook.load(path, raw)
    return of_text(path, _decode(path, raw))


def of_text(path: str, text: str) -> Source:
    """A script from its text, wherever that comes from.

    Args:
        path: the file that it belongs to; it need not exist.
        text: without a byte-order mark, with newlines of any kind.

    Raises:
        SourceError: not text, or not valid Python (with line).
        NothingToCheckError: it is empty.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text or not _is_text(text):
        raise SourceError(f"{shown(path)}: not Python source (NUL or half a character in it)")
    if not text.strip():
        raise NothingToCheckError(f"{shown(path)}: the file is empty, so there is nothing to check")
    try:
        return Source(path, text, parse(path, text))
    except SyntaxError as error:
        line = error.lineno or 1
        raise SourceError(f"{shown(path)}:{line}: not valid Python: {error.msg}") from None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_notebook(path: str) -> bool:
    """Whether a path is that of a Jupyter notebook, by its ending."""
    return path.lower().endswith(".ipynb")


def cell_at(cells: Sequence[Cell], line: int) -> tuple[int | None, int]:
    """Cell and line within it of a line of the source; no cell where there are none."""
    for cell in cells:
        if cell.first <= line < cell.first + cell.count:
            return cell.number, line - cell.first + 1
    return None, line


def spot(cells: Sequence[Cell], line: int) -> str:
    """A line as people call it: `12`, or `cell 3, line 2`."""
    cell, within = cell_at(cells, line)
    return str(within) if cell is None else f"cell {cell}, line {within}"


def expand(paths: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Files to check, sorted, each with whether the user named it (else found in a folder).

    Raises:
        NothingToCheckError: a folder holds no Python file and no notebook.
        SourceError: a folder can't be listed.
    """
    found: dict[str, bool] = {}
    for path in paths:
        if os.path.isdir(path):
            inside = sorted(_python_files(path))
            if not inside:
                raise NothingToCheckError(
                    f"{shown(path)}: the folder holds no Python file (*.py, *.ipynb)"
                )
            for name in inside:
                found.setdefault(name, False)
        else:
            found[path] = True
    return list(found.items())


def _python_files(folder: str) -> list[str]:
    names: list[str] = []
    for here, folders, files in os.walk(folder, onerror=_refuse_folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not (Path(here) / name / "pyvenv.cfg").exists()
        ]
        names += [
            os.path.join(here, name) for name in files if name.endswith(".py") or is_notebook(name)
        ]
    return names


def _refuse_folder(error: OSError) -> None:
    raise SourceError(f"{shown(error.filename)}: can't be listed ({error.strerror})") from None


def _read(path: str) -> bytes:
    name = shown(path)
    try:
        most = _MAX_NOTEBOOK if is_notebook(path) else _MAX_BYTES
        if os.path.getsize(path) > most:
            raise SourceError(f"{name}: larger than {most // 10**6} MB, not a script")
        if not os.path.isfile(path):
            raise SourceError(f"{name}: not a regular file; give a Python script or a folder")
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise SourceError(f"{name}: no such file; check the path") from None
    except OSError as error:
        raise SourceError(f"{name}: can't be read ({error.strerror})") from None
    except ValueError as error:  # a path with a NUL byte
        if isinstance(error, SourceError):
            raise
        raise SourceError(f"{name}: not a usable path ({error})") from None


def _decode(path: str, raw: bytes) -> str:
    if b"\0" in raw:
        raise SourceError(f"{shown(path)}: a binary file (it holds NUL bytes), not Python source")
    return _text(shown(path), raw)


def _text(name: str, raw: bytes) -> str:
    mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
    raw = raw.removeprefix(mark)
    # bytes of the declared encoding may stand on the line of the cookie
    ascii_only = mark + raw.translate(_UNKNOWN_TO_ASCII)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(ascii_only).readline)
    except SyntaxError as error:
        message = f"{error.msg}; save it as UTF-8 or fix the cookie"
        raise SourceError(f"{name}:{_cookie_line(raw)}: {message}") from None
    except (UnicodeError, LookupError):  # Python 3.14 decodes the line of the cookie
        message = f"not valid {_cookie(raw)} text; save it as UTF-8"
        raise SourceError(f"{name}:{_cookie_line(raw)}: {message}") from None
    encoding = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        text = raw.decode(encoding)
        text.encode()  # `unicode_escape` and its like can make half a character
    except (UnicodeError, LookupError) as error:
        line = _line_of(raw, error.start) if isinstance(error, UnicodeDecodeError) else 1
        raise SourceError(f"{name}:{line}: not valid {encoding} text; save it as UTF-8") from None
    return text


def _cookie(raw: bytes) -> str:
    """The encoding that the cookie names."""
    named = re.search(rb"coding[:=][ \t]*([-\w.]+)", raw)
    return named[1].decode("ascii", "replace") if named else "utf-8"


def _cookie_line(raw: bytes) -> int:
    first = raw.replace(b"\r", b"\n").split(b"\n", 1)[0]
    return 1 if b"coding" in first else 2


def _line_of(raw: bytes, position: int) -> int:
    before = raw[:position].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return before.count(b"\n") + 1


def too_deep(path: str) -> SourceError:
    """The error of a script that no recursive function can follow to its end."""
    return SourceError(f"{shown(path)}: nested too deeply to be analysed; split the expression")


def parse(path: str, text: str) -> ast.Module:
    """The syntax tree.

    Raises:
        SyntaxError: not valid Python.
        SourceError: nested too deeply to be parsed, or with a number too long to be shown.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (RecursionError, MemoryError):
        raise SourceError(f"{shown(path)}: nested too deeply for Python's parser") from None
    if _LONG_NUMBER.search(text):
        _check_numbers(path, tree)
    return tree


def _check_numbers(path: str, tree: ast.Module) -> None:
    """Python reads hexadecimal numbers of any length, and then can't write them in decimal."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            spot = f"{shown(path)}:{getattr(node, 'lineno', 1)}"
            raise SourceError(f"{spot}: a number of more than 4000 digits, expected a script")
