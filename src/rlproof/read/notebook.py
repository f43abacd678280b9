"""A Jupyter notebook as one Python source: its code cells joined, magics left out.

Only the cells' sources are read. Outputs are never looked at: they may be of another version
of the code. Formats 3 and 4 of nbformat, as plain JSON.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from rlproof.errors import NothingToCheckError, SourceError
from rlproof.read.source import Cell, Source, parse, shown

_PYTHON_CELLS = {"capture", "memit", "mprun", "prun", "snakeviz", "time", "timeit", "wandb"}
"""Cell magics (`%%time`) whose cell is Python that runs in the notebook's own process."""
_PYTHON = {"python", "ipython", "xpython", "sage"}
_MAGIC = re.compile(r"\s*+(?:[%!?]|[\w.\[\], ]+=\s*(?:!|%\w))|[^#'\"]*\?\??\s*$")
_STRING = re.compile(r"#.*|'''|\"\"\"|\\.|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|[()\[\]{}]")


class _CodeCell(msgspec.Struct):
    """What is read of a cell: format 3 says `input` and `language` where 4 says `source`."""

    cell_type: str = ""
    source: str | list[str] = ""
    input: str | list[str] = ""
    language: str = "python"


class _Worksheet(msgspec.Struct):
    cells: list[_CodeCell] = []


class _Notebook(msgspec.Struct):
    cells: list[_CodeCell] = []
    worksheets: list[_Worksheet] = []
    metadata: Any = None


def load(path: str, raw: bytes) -> Source:
    """The code of a notebook as one source that knows its cells.

    Raises:
        SourceError: broken JSON, or a cell that is not Python (with its line).
        NothingToCheckError: no cell holds code, or it is in another language.
    """
    name = shown(path)
    lines: list[str] = []
    cells: list[Cell] = []
    for number, text in _code_cells(name, raw):
        cleaned = _without_magics(text)
        _check(name, number, cleaned)
        if cleaned.strip():
            added = cleaned.split("\n")
            cells.append(Cell(number, len(lines) + 1, len(added)))
            lines += added
    if not cells:
        raise NothingToCheckError(f"{name}: the notebook holds no Python code to check")
    text = "\n".join(lines) + "\n"
    return Source(path, text, parse(path, text), tuple(cells))


def _code_cells(name: str, raw: bytes) -> Iterator[tuple[int, str]]:
    """Number (among all cells, from 1) and text of each code cell."""
    try:
        book = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"), type=_Notebook)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SourceError(f"{name}: not a notebook that can be read ({error})") from None
    language = _language(book.metadata)
    if language not in _PYTHON:
        message = f"a notebook in {shown(language)}; only Python can be checked"
        raise NothingToCheckError(f"{name}: {message}")
    cells = book.cells or [cell for sheet in book.worksheets for cell in sheet.cells]
    for number, cell in enumerate(cells, 1):
        if cell.cell_type == "code" and cell.language in _PYTHON:
            source = cell.source or cell.input
            text = source if isinstance(source, str) else "".join(source)
            yield number, text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def _language(metadata: Any) -> str:
    """The language that the notebook says it is in; Python where it says nothing."""
    found: Any = "python"
    for table, key in (("kernelspec", "language"), ("language_info", "name")):
        inner = metadata.get(table) if isinstance(metadata, dict) else None
        found = (inner.get(key) if isinstance(inner, dict) else None) or found
    return str(found).lower()


def _check(name: str, number: int, text: str) -> None:
    """Each cell must be Python by itself, so that none can swallow the next one."""
    if "\0" in text:
        raise SourceError(f"{name}: cell {number} holds a NUL character, so it is not Python")
    try:
        parse(name, text)
    except SyntaxError as error:
        message = f"cell {number}, line {error.lineno or 1}: not valid Python: {error.msg}"
        raise SourceError(f"{name}: {message}") from None


def _without_magics(text: str) -> str:
    """The cell with every magic turned into a `pass` that quotes it; lines keep their numbers."""
    head, *rest = text.split("\n")
    if found := re.match(r"\s*%%\s*(\w+)", head):
        if found[1] not in _PYTHON_CELLS:
            return ""
        text = "\n".join([_passed(head), *rest])
    return text if is_python(text) else "\n".join(_cleaned(text.split("\n")))


def is_python(text: str) -> bool:
    """Whether a text can be parsed."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _cleaned(lines: list[str]) -> Iterator[str]:
    """A magic can only start a statement: never inside brackets or a long string."""
    depth, quote, goes_on, magic = 0, "", False, False
    for line in lines:
        continued = goes_on
        goes_on = line.endswith("\\")
        if magic and continued:
            yield f"# {_bare(line)}"
            continue
        magic = not (depth or quote or continued) and bool(_MAGIC.match(line))
        if not magic:
            depth, quote = _scan(line, depth, quote)
        yield _passed(line) if magic else line


def _passed(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass  # {_bare(line)}"


def _bare(line: str) -> str:
    return line.removesuffix("\\").strip()


def _scan(line: str, depth: int, quote: str) -> tuple[int, str]:
    """How many brackets are open, and which long string, behind a line."""
    position = 0
    while True:
        if quote:
            end = line.find(quote, position)
            if end < 0:
                return depth, quote
            position, quote = end + 3, ""
        found = _STRING.search(line, position)
        if found is None:
            return depth, quote
        position = found.end()
        if found[0] in ("'''", '"""'):
            quote = found[0]
        elif found[0] in "([{":
            depth += 1
        elif found[0] in ")]}":
            depth = max(0, depth - 1)
