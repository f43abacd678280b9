"""Functions with a role that a script imports from files of its own project.

Relative imports, and absolute ones that name a file beside the script or in the package that
holds it. A name may be handed on by other files (`__init__.py`) before it is defined.
"""

from __future__ import annotations

import ast
import copy
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from rlproof.errors import RlproofError
from rlproof.read.source import Source, load
from rlproof.read.targets import Target, module_functions

_MOST_HANDOVERS = 4
_MOST_FOLDERS = 20


@dataclass(frozen=True, slots=True)
class Imported:
    """A function as the importing script calls it, and the file that defines it."""

    target: Target
    path: str


def imported(source: Source) -> tuple[Imported, ...]:
    """Every function with a role that the script imports by name from a file of its project."""
    found: dict[str, Imported] = {}
    for local, (path, name) in _names(source.tree, source.path).items():
        if one := _find(path, name, _MOST_HANDOVERS):
            found[local] = replace(one, target=_called(one.target, local))
    return tuple(found.values())


def forget() -> None:
    """Read the files of every project anew."""
    _module.cache_clear()


def _called(target: Target, name: str) -> Target:
    """The same function under the name that an `as` gives it."""
    if target.name == name:
        return target
    node = copy.copy(target.node)
    node.name = name
    return replace(target, node=node)


def _find(path: str, name: str, handovers: int) -> Imported | None:
    """Where a name of a file is defined with a role, perhaps in a file that this one imports."""
    module = _module(os.path.realpath(path), _stamp(path))
    if module is None:
        return None
    tree, targets, functions = module
    if name in functions:
        target = next((t for t in targets if t.name == name), None)
        return Imported(target, path) if target else None
    further = _names(tree, path).get(name) if handovers else None
    return _find(*further, handovers - 1) if further else None


def _stamp(path: str) -> tuple[int, int]:
    try:
        known = os.stat(path)
    except OSError:
        return 0, 0
    return known.st_mtime_ns, known.st_size


@lru_cache(maxsize=256)
def _module(
    path: str, _: tuple[int, int]
) -> tuple[ast.Module, tuple[Target, ...], frozenset[str]] | None:
    """A file's tree, targets and functions; nothing where it can't be read."""
    from rlproof.read.roles import recognise

    try:
        tree = load(path).tree
    except RlproofError:
        return None
    functions = frozenset(node.name for node in module_functions(tree))
    return tree, recognise(tree) if functions else (), functions


def _names(tree: ast.Module, path: str) -> dict[str, tuple[str, str]]:
    """The names that a file imports from files of its project, each with file and name there."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                for folder in folders_of(path, node.level):
                    if file := _file(folder, node.module):
                        found[alias.asname or alias.name] = (file, alias.name)
                        break
    return found


def folders_of(path: str, level: int) -> Iterator[str]:
    """Where the module of an import may lie: for `from ..x` two folders up, else on the way up."""
    folder = os.path.dirname(path)
    for step in range(level or _MOST_FOLDERS):
        if step == level - 1 or not level:
            yield folder
        if not level and not os.path.isfile(os.path.join(folder, "__init__.py")):
            return
        folder = os.path.normpath(os.path.join(folder, os.pardir))


def _file(folder: str, module: str | None) -> str | None:
    stem = os.path.join(folder, *(module or "").split("."))
    for file in (f"{stem}.py" if module else "", os.path.join(stem, "__init__.py")):
        if os.path.isfile(file):
            return os.path.normpath(file)
    return None
