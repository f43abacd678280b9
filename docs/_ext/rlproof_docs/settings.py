"""The settings of `rlproof train`, from the dataclasses that hold them and the texts beneath.

Shapes of a row: setting, default, meaning.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from rlproof.train.config import TrainConfig
from rlproof.train.settings import hints
from rlproof_docs.text import code, plain, table

_TOP = "run"
"""The section whose table says what is required."""


def pages() -> Iterator[tuple[str, str]]:
    """The fragment that reference/train.md includes."""
    yield "_generated/settings.md", document()


def document() -> str:
    """One table a section."""
    parts = []
    for name, kind in sections().items():
        rows = [(code(f"{key}"), default, plain(text)) for key, default, text in settings(kind)]
        head = f"## [{name}]\n\n{plain(inspect.getdoc(kind).split(chr(10) * 2)[0])}\n\n"
        parts.append(head + table(("setting", "default", "meaning"), rows))
    texts = meanings(TrainConfig)
    return "\n".join([*parts, f"## [objective]\n\n{plain(texts['objective'])}\n"])


def sections() -> dict[str, type[Any]]:
    """The sections that are dataclasses, by name."""
    return {name: kind for name, kind in hints(TrainConfig).items() if is_dataclass(kind)}


def settings(kind: type[Any]) -> Iterator[tuple[str, str, str]]:
    """Name, default and meaning of every field."""
    texts = meanings(kind)
    for one in fields(kind):
        needed = one.default is MISSING and one.default_factory is MISSING
        yield one.name, "required" if needed else _default(one.default), texts[one.name]


def _default(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return code(str(value).lower())
    if isinstance(value, str):
        return code(f'"{value}"')
    return code(str(list(value)) if isinstance(value, tuple) else f"{value:g}")


def meanings(kind: type[Any]) -> dict[str, str]:
    """The texts that stand beneath the fields of a class.

    Raises:
        KeyError: a field has none.
    """
    (body,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            if isinstance(field.target, ast.Name) and isinstance(text.value, ast.Constant):
                found[field.target.id] = " ".join(str(text.value.value).split())
    return found
