"""The real code of RL frameworks, taken from their published wheels for as long as a test runs.

`wheel` finds or downloads a wheel; `extract` executes single definitions of one of its modules;
`excerpt` executes a run of statements out of the middle of a function. A framework is never
imported or installed, and nothing of it is written anywhere but into the cache folder:
the environment variable RLPROOF_WHEELS, or ~/.cache/rlproof/wheels.

    trl = wheel("trl", "1.16.0")
    code = extract(trl, "trl/trainer/utils.py", ["nanstd", "Cls.method", "CONST"], {"torch": torch})
    code.nanstd(x)
    code.method(fake_self, x)   # a method is a plain function of `self`
"""

from __future__ import annotations
import __future__

import ast
import os
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest

_SECONDS = 180  # for one download


def folder() -> Path:
    """The cache folder of the wheels."""
    given = os.environ.get("RLPROOF_WHEELS")
    return Path(given) if given else Path.home() / ".cache" / "rlproof" / "wheels"


def wheel(name: str, version: str) -> Path:
    """The wheel of a package, downloaded once; skips the test where that is impossible.

    Args:
        name: as on the package index, such as `liger-kernel`.
        version: exact, such as `0.8.5`.
    """
    found = _found_or_fault(name, version)
    if isinstance(found, str):
        pytest.skip(f"no wheel of {name}=={version}: {found}")
    return found


def extract(
    archive: Path,
    module: str,
    names: Iterable[str],
    namespace: Mapping[str, Any],
    *,
    decorators: bool = False,
) -> SimpleNamespace:
    """Some definitions of a module, executed without the rest of it.

    Args:
        archive: a wheel, from `wheel`.
        module: path of the module in it, such as `trl/trainer/utils.py`.
        names: functions, classes or constants, in the order they need each other;
            `Class.method` and `outer.inner` reach inside, and the result has the last part.
        namespace: what the code finds as its globals: torch, stand-ins for config types and so
            on. The definitions see each other too. It is not changed.
        decorators: whether decorators are executed; otherwise they are left out.

    Annotations are never evaluated.

    Raises:
        LookupError: the module has no such definition.
    """
    tree = _tree(archive, module)
    names = list(names)
    picked = [_find(tree, name, f"{archive.name}:{module}") for name in names]
    if not decorators:
        picked = [_bare(node) for node in picked]
    scope = {**namespace, "__name__": __name__}
    _execute(picked, f"{archive.name}/{module}", scope)
    return SimpleNamespace(**{last: scope[last] for last in (n.split(".")[-1] for n in names)})


@dataclass(frozen=True)
class Excerpt:
    """Statements of a function: local variables by keyword in, all local variables out."""

    statements: list[ast.stmt]
    filename: str
    namespace: Mapping[str, Any]

    def __call__(self, /, **variables: Any) -> SimpleNamespace:
        scope = {**self.namespace, **variables}
        before = set(scope)
        _execute(self.statements, self.filename, scope)
        return SimpleNamespace(
            **{k: v for k, v in scope.items() if k in variables or k not in before}
        )


def excerpt(
    archive: Path, module: str, function: str, first: str, last: str, namespace: Mapping[str, Any]
) -> Excerpt:
    """The statements of a function from one whose code begins with `first` to one with `last`.

    Both are statements of the same block, compared as `ast.unparse` writes them (normalised
    quotes and spaces).

    Raises:
        LookupError: there is no such run of statements.
    """
    outer = _find(_tree(archive, module), function, f"{archive.name}:{module}")
    for node in ast.walk(outer):
        for _, block in ast.iter_fields(node):
            picked = _between(block, first, last) if isinstance(block, list) else None
            if picked:
                return Excerpt(picked, f"{archive.name}/{module}", namespace)
    raise LookupError(f"{archive.name}:{module}: {function} has no {first!r} ... {last!r}")


def source(archive: Path, module: str, names: Iterable[str]) -> str:
    """Definitions of a module as text, without their decorators; names as in `extract`."""
    tree = _tree(archive, module)
    found = [_bare(_find(tree, name, f"{archive.name}:{module}")) for name in names]
    return "\n\n\n".join(ast.unparse(node) for node in found)


def source_of(definition: Callable[..., Any]) -> str:
    """The text of a function or class that `extract` gave, without its decorators."""
    inside = [one for one in vars(definition).values() if isinstance(one, FunctionType)]
    code = (inside[0] if isinstance(definition, type) else definition).__code__  # type: ignore[attr-defined]
    name, _, module = code.co_filename.partition("/")
    tree = _tree(folder() / name, module)
    if isinstance(definition, type):
        return ast.unparse(_bare(_find(tree, definition.__name__, code.co_filename)))
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    return ast.unparse(_bare(next(n for n in functions if n.lineno == code.co_firstlineno)))


@cache
def _found_or_fault(name: str, version: str) -> Path | str:
    """The wheel, or why there is none. Asked once a run."""
    pattern = f"{name.replace('-', '_')}-{version}-*.whl"
    there = sorted(folder().glob(pattern))
    if there:
        return there[0]
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder()) as scratch:
            _download(f"{name}=={version}", scratch)
            for file in sorted(Path(scratch).glob(pattern)):
                return file.replace(folder() / file.name)
    except subprocess.CalledProcessError as failed:
        lines = failed.stderr.strip().splitlines() or ["pip download failed"]
        return lines[-1]
    except (OSError, subprocess.TimeoutExpired) as failed:
        return str(failed)
    return "the index has no wheel for this machine"


def _download(requirement: str, where: str) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", ":none:", "--ignore-requires-python", "-d", where, requirement]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)


@cache
def _tree(archive: Path, module: str) -> ast.Module:
    with zipfile.ZipFile(archive) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as invalid escapes in strings
        return ast.parse(opened.read(module))


def _find(tree: ast.AST, dotted: str, place: str) -> Any:
    """The definition of a dotted name; the last one where there are several."""
    node = tree
    for part in dotted.split("."):
        inside = [one for one in _statements(node) if part in _names(one)]
        if not inside:
            raise LookupError(f"{place} has no {dotted}")
        node = inside[-1]
    return node


def _statements(node: ast.AST) -> Iterable[ast.stmt]:
    """Statements of a body, those under `if`, `try` and `with` too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
            if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _statements(child)
        elif isinstance(child, ast.ExceptHandler):
            yield from _statements(child)


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _bare(node: Any) -> Any:
    """A copy without the decorators of a function or class; those of methods stay."""
    if not getattr(node, "decorator_list", None):
        return node
    kept = {name: getattr(node, name, None) for name in node._fields}
    return ast.copy_location(type(node)(**{**kept, "decorator_list": []}), node)


def _between(block: list[Any], first: str, last: str) -> list[ast.stmt] | None:
    if not all(isinstance(one, ast.stmt) for one in block):
        return None
    text = [ast.unparse(one) for one in block]
    starts = [at for at, one in enumerate(text) if one.startswith(first)]
    after = min(starts, default=0)
    ends = [at for at, one in enumerate(text) if at >= after and one.startswith(last)]
    return block[starts[0] : ends[0] + 1] if starts and ends else None


def _execute(nodes: list[Any], filename: str, scope: dict[str, Any]) -> None:
    flags = __future__.annotations.compiler_flag
    tree = ast.fix_missing_locations(ast.Module(body=nodes, type_ignores=[]))
    exec(compile(tree, filename, "exec", flags=flags, dont_inherit=True), scope)
