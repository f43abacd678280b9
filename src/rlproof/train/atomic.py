"""Folders that are there whole or not at all.

A folder is written beside its place under a name that starts with a dot, synced to the disk, and
renamed. Whatever kills the process in between leaves the older ones as they were.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from rlproof.errors import CheckpointError

Write = Callable[[Path], object]
"""Writes one file, or a folder, at the path given."""
_UNFINISHED, _DROPPED = ".writing-", ".dropped-"


def write_folder(place: Path, contents: Mapping[str, Write]) -> None:
    """Write a folder with all its contents, or leave things as they were.

    A folder that is there already is replaced, after the new one is on the disk.

    Args:
        place: the folder.
        contents: by name; the empty name stands for the folder itself.

    Raises:
        CheckpointError: the disk is full, or anything else went wrong while writing.
    """
    unfinished = place.parent / f"{_UNFINISHED}{place.name}"
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove(unfinished)
        unfinished.mkdir()
        for name, write in contents.items():
            write(unfinished / name)
        _sync_tree(unfinished)
        if place.exists():
            remove_folder(place)
        os.rename(unfinished, place)
        _sync(place.parent)
    except Exception as error:  # safetensors has errors of its own
        _remove(unfinished)
        raise CheckpointError(_said(place, error)) from error


def remove_folder(place: Path) -> None:
    """Remove a folder so that no half of it is ever taken for a whole one."""
    dropped = place.parent / f"{_DROPPED}{place.name}"
    _remove(dropped)
    os.rename(place, dropped)
    _remove(dropped)


def tidy(parent: Path) -> None:
    """Remove what a killed process left unfinished."""
    if parent.is_dir():
        for one in parent.iterdir():
            if one.name.startswith((_UNFINISHED, _DROPPED)):
                _remove(one)


def _said(place: Path, error: Exception) -> str:
    text = str(getattr(error, "strerror", None) or error).split("\n")[0]
    full = "No space left" in str(error) or "quota" in str(error).lower()
    todo = "free some space" if full else "repair the cause"
    kept = sorted(p.name for p in place.parent.glob("step-*")) if place.parent.is_dir() else []
    older = f"{kept[-1]} is as it was" if kept else "no checkpoint was changed"
    return f"{place} could not be written ({text}); {older}: {todo}, then resume"


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _sync_tree(folder: Path) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            _sync(Path(root) / name)
        _sync(Path(root))


def _sync(path: Path) -> None:
    if os.name == "nt" and path.is_dir():
        return  # folders can't be opened there
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
