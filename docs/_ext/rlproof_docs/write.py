"""Generated pages on disk: written only if they changed, removed if nothing generates them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

GENERATED = ("_generated", "reference/faults", "reference/recipes", "reference/claims")
"""Folders below docs/ that hold nothing but generated Markdown; git ignores them."""


def write(root: Path, pages: Iterable[tuple[str, str]]) -> int:
    """Bring the generated folders up to date.

    Returns:
        How many pages there are.

    Raises:
        ValueError: a page lies outside the generated folders, or two have one path.
    """
    wanted: dict[str, str] = {}
    for path, text in pages:
        if path in wanted or not path.startswith(tuple(f"{folder}/" for folder in GENERATED)):
            raise ValueError(f"{path} can't be a generated page")
        wanted[path] = text
    for folder in GENERATED:
        for old in (root / folder).glob("*.md"):
            if old.relative_to(root).as_posix() not in wanted:
                old.unlink()
    for path, text in wanted.items():
        _write(root / path, text)
    return len(wanted)


def _write(file: Path, text: str) -> None:
    if not file.is_file() or file.read_text("utf-8") != text:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
