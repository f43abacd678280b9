"""The files that a check of one script may read, each with a digest: what a cache depends on.

The script, and the modules of its project that it or they import anywhere. Places where such a
module could be, and is not, count too: a new file there would be imported.
"""

from __future__ import annotations

import ast
import hashlib
import os
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping

from rlproof.errors import RlproofError
from rlproof.read.imports import folders_of
from rlproof.read.source import load

_DYNAMIC = {
    "__import__", "import_module", "spec_from_file_location", "run_path", "run_module",
    "open", "fdopen", "read_text", "read_bytes", "fromfile", "loadtxt", "genfromtxt", "memmap",
    "getenv", "connect", "urlopen", "check_output", "Popen", "iterdir", "listdir", "scandir",
}  # fmt: skip
"""Names of what reads something that an import statement doesn't name."""
_NAMES = {"exec", "eval"}  # as methods they are others': `model.eval()`
_WRITING = {"w", "a", "x", "wb", "ab", "xb", "wt", "at"}
_MOST = 400

Digests = dict[str, str | None]


def dependencies(path: str, known: Digests) -> Digests | None:
    """Paths with their digests; None for a path that does not exist.

    Args:
        path: the script.
        known: digests that were taken already, of this run; more are added.

    Returns:
        None where what the script reads can't be known from its source.
    """
    found: Digests = {}
    start = os.path.abspath(path)
    left = [start]
    further = [entry for entry in sys.path if entry and not _is_installed(entry)]
    while left:
        here = left.pop()
        if found.get(here) is not None:
            continue
        found[here] = digest(here, known)
        try:
            tree = load(here).tree
        except RlproofError:
            continue
        if len(found) > _MOST or _reads_more(tree):
            return None
        for probe in _probes(tree, here, [os.path.dirname(os.path.realpath(start)), *further]):
            if probe not in found:
                found[probe] = digest(probe, known)
                if found[probe] is not None and probe.endswith(".py"):
                    left.append(probe)
                    del found[probe]
    return found


def digest(path: str, known: Digests) -> str | None:
    """A digest of a file's bytes, `folder` for a folder, None for what can't be read."""
    if path not in known:
        known[path] = _digest(path)
    return known[path]


def _digest(path: str) -> str | None:
    try:
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode):  # opening a pipe would wait for its other end
            return "folder" if stat.S_ISDIR(mode) else "special"
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None


def unchanged(digests: Mapping[str, str | None], known: Digests) -> bool:
    """Whether every file is as it was."""
    return all(digest(path, known) == value for path, value in digests.items())


def _is_installed(entry: str) -> bool:
    """Whether a folder of `sys.path` is Python's own or one of installed packages."""
    real = os.path.realpath(entry)
    own = os.path.realpath(sysconfig.get_path("stdlib"))
    inside = real == own or real.startswith(os.path.join(own, ""))
    return inside or real.endswith(("-packages", ".zip"))


def _reads_more(tree: ast.Module) -> bool:
    written = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call) and _writes(n)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in written:
            if node.id in _DYNAMIC or node.id in _NAMES:
                return True
        elif isinstance(node, ast.Attribute) and id(node) not in written:
            if node.attr in _DYNAMIC or _is_path_or_environment(node):
                return True
    return any(_is_elsewhere(name) for name in _tops(tree))


def _writes(call: ast.Call) -> bool:
    """`open(…, "w")`: nothing is read."""
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    modes = {a.value for a in given if isinstance(a, ast.Constant)} & _WRITING
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    return name == "open" and bool(modes)


def _is_path_or_environment(node: ast.Attribute) -> bool:
    return node.attr in ("environ", "path") and isinstance(node.value, ast.Name) and (
        (node.value.id, node.attr) in {("os", "environ"), ("sys", "path")}
    )  # fmt: skip


def _tops(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def _is_elsewhere(name: str) -> bool:
    """Whether an editable installation finds a module in a folder that is not on `sys.path`."""
    hooks = (f for f in sys.meta_path if getattr(f, "__module__", "").startswith("__editable__"))
    return any(hook.find_spec(name, None) is not None for hook in hooks)


def _probes(tree: ast.Module, path: str, roots: Iterable[str]) -> Iterator[str]:
    """Every place that decides where an import of a file leads."""
    yield from (os.path.join(folder, "__init__.py") for folder in folders_of(path, 0))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                for root in dict.fromkeys([*folders_of(path, 0), *roots]):
                    yield from _places(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            folders = folders_of(path, node.level)
            parts = node.module.split(".") if node.module else []
            for root in folders if node.level else dict.fromkeys([*folders, *roots]):
                yield os.path.join(root, "__init__.py")
                if not parts:
                    for alias in node.names:
                        yield from _places(root, [alias.name])
                elif os.path.lexists(os.path.join(root, parts[0])):
                    for alias in node.names:
                        yield from _places(root, [*parts, alias.name])
                else:
                    yield from _places(root, parts)


def _places(root: str, parts: list[str]) -> Iterator[str]:
    """For `a.b`: a.py, the folder a, a/__init__.py, a/b.py and so on, as far as folders go."""
    stem = root
    for part in parts:
        stem = os.path.join(stem, part)
        yield f"{stem}.py"
        yield stem
        if not os.path.isdir(stem):
            return
        yield os.path.join(stem, "__init__.py")
