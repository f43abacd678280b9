"""Execute a script's imports, definitions and constants, one statement at a time."""

from __future__ import annotations
import __future__ as future

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NoReturn

from rlproof.bind.child.errors import one_line
from rlproof.bind.child.guard import GUARD, brief
from rlproof.bind.child.keep import kept, runs_only_imports

MODULE = "__rlproof_script__"
_PACKAGE = "__rlproof_package__"
_LATE_ANNOTATIONS = future.annotations.compiler_flag


class UnavailableError(ImportError):
    """The script used a name that could not be had here; no fault of the script."""


class Missing:
    """Stands for a name that could not be imported or computed; any use says why."""

    def __init__(self, reason: str) -> None:
        object.__setattr__(self, "_reason", reason)

    def _fail(self, *_: object, **__: object) -> NoReturn:
        raise UnavailableError(object.__getattribute__(self, "_reason"))

    __call__ = __getattr__ = __getitem__ = __iter__ = __bool__ = __len__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _fail
    __torch_function__ = __mro_entries__ = __float__ = __int__ = __index__ = _fail
    __neg__ = __lt__ = __gt__ = _fail


def load(path: str, text: str, seconds: float) -> tuple[ModuleType, dict[str, str]]:
    """The script as a module, and the reasons why some of its names are unusable.

    Every definition and constant has `seconds`; imports have as long as the parent waits.
    """
    folder = os.path.dirname(os.path.realpath(path))
    tree = ast.parse(text)
    finder = _LocalFinder([folder, *_own_entries(folder)], seconds)
    module = ModuleType(MODULE)
    module.__file__ = path
    module.__package__ = finder.enter(_packages(folder, tree))
    sys.meta_path.insert(0, finder)
    sys.modules[MODULE] = module
    return module, execute(module, tree, path, seconds)


def _packages(folder: str, tree: ast.Module) -> list[str]:
    """The folders around a script that make its package, outermost first.

    Those with an `__init__.py`, and as many as its relative imports go up.
    """
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    levels = max((node.level for node in imports), default=0)
    found: list[str] = []
    while len(found) < levels or os.path.isfile(os.path.join(folder, "__init__.py")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return []
        found.insert(0, folder)
        folder = parent
    return found


def _own_entries(folder: str) -> list[str]:
    """Take the entries that hold the script out of `sys.path`: only the filter may load them."""
    installed = [os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, *_site_packages())]

    def holds_script(entry: str) -> bool:
        real = os.path.realpath(entry)
        return _is_inside(folder, real) and not any(_is_inside(real, p) for p in installed)

    own = [entry for entry in sys.path if holds_script(entry)]
    sys.path[:] = [entry for entry in sys.path if entry not in own]
    return [os.path.realpath(entry) for entry in own]


def _site_packages() -> list[str]:
    return [entry for entry in sys.path if os.path.basename(entry).endswith("-packages")]


def _is_inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def execute(module: ModuleType, tree: ast.Module, path: str, seconds: float) -> dict[str, str]:
    """Run what `kept` allows. Returns the reason for each name that could not be had."""
    reasons: dict[str, str] = {}
    for node, runs in kept(tree):
        names, reason = _names(node), ""
        if runs:
            _undecorate(module, node)
            reason = _run(module, node, path, seconds)
            if reason.startswith("needs ") and getattr(node, "decorator_list", []):
                node.decorator_list = []  # type: ignore[attr-defined]
                reason = _run(module, node, path, seconds)  # a registry that is elsewhere
        else:
            names = [name for name in names if not _stays(module, name, node)]
        for name in names:
            dropped = f"line {node.lineno} defines {name} by running code, which is never executed"
            why = reason if runs else dropped
            reasons.pop(name, None)
            if why:
                reasons[name] = why
                setattr(module, name, Missing(why))
    return reasons


def _undecorate(module: ModuleType, node: ast.stmt) -> None:
    """Drop decorators that could not be had: what they wrap is worth judging as written."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        node.decorator_list = [d for d in node.decorator_list if not _is_missing(module, d)]


def _is_missing(module: ModuleType, node: ast.expr) -> bool:
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and isinstance(module.__dict__.get(node.id), Missing)


def _stays(module: ModuleType, name: str, dropped: ast.stmt) -> bool:
    """Whether a name keeps its value although a statement that may set it is left out.

    A function that is wrapped later is worth judging as written; a branch may not be taken.
    """
    sets = isinstance(dropped, ast.Assign | ast.AnnAssign | ast.AugAssign)
    return name in module.__dict__ and (not sets or callable(module.__dict__[name]))


def _run(module: ModuleType, node: ast.stmt, path: str, seconds: float) -> str:
    """Execute one statement; the reason it failed, or an empty string."""
    try:
        code = compile(
            ast.Module([node], []), path, "exec", flags=_LATE_ANNOTATIONS, dont_inherit=True
        )
        if runs_only_imports(node):
            with GUARD.relaxed():
                exec(code, module.__dict__)
        elif isinstance(node, ast.Try):
            with GUARD.strict():
                exec(code, module.__dict__)
        else:
            with GUARD.strict(), brief(max(seconds, 1.0)):
                exec(code, module.__dict__)
    except ImportError as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        return f"needs {missing}, which is not installed" if missing else one_line(error)
    except BaseException as error:
        return f"line {node.lineno} failed: {type(error).__name__}: {one_line(error)}"
    return ""


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [(a.asname or a.name).split(".")[0] for a in names if a.name != "*"]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Expr() | ast.Assign() | ast.AnnAssign():
            stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            return [n.id for n in stored if isinstance(n.ctx, ast.Store)]
    bodies = [inner for child in _parts(node) for inner in _names(child)]
    heads = (n for child in ast.iter_child_nodes(node) for n in _head(child))
    return [*bodies, *(n.id for n in heads if isinstance(n.ctx, ast.Store))]


def _parts(node: ast.AST) -> list[ast.stmt]:
    """The statements right inside a compound one, those of its handlers and cases too."""
    found: list[ast.stmt] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            found.append(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            found += _parts(child)
    return found


def _head(node: ast.AST) -> list[ast.Name]:
    """Names in the head of a compound statement: `for x in`, `with … as x`, `if (x := …)`."""
    if isinstance(node, ast.expr | ast.withitem):
        return [n for n in ast.walk(node) if isinstance(n, ast.Name)]
    return []


class _LocalFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads modules beside the script through the same filter: their top level never runs.

    It stands before the usual finders, which would run a submodule of a local package as it
    is; a name that is also installed is theirs, with all that is below it.
    """

    def __init__(self, folders: list[str], seconds: float) -> None:
        self.folders = folders
        self.seconds = seconds
        self.found: set[str] = set()
        self.roots: dict[str, str] = {}

    def enter(self, packages: list[str]) -> str:
        """Make the package of a script importable; its name. An installed one keeps its own."""
        if not packages:
            return ""
        root, *inner = map(os.path.basename, packages)
        name = _PACKAGE if "." in root or _is_installed(root, self) else root
        self.roots[name] = packages[0]
        return ".".join([name, *inner])

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: Any = None,  # noqa: ARG002 (the name is importlib's)
    ) -> importlib.machinery.ModuleSpec | None:
        parent, _, stem = fullname.rpartition(".")
        if fullname in self.roots:
            self.found.add(fullname)
            return self._spec(fullname, self.roots[fullname], package=True)
        if parent not in self.found and (parent or _is_installed(fullname, self)):
            return None
        for folder in self.folders if path is None else path:
            if spec := self._spec(fullname, os.path.join(folder, stem)):
                self.found.add(fullname)
                return spec
        return None

    def _spec(
        self, name: str, stem: str, *, package: bool = False
    ) -> importlib.machinery.ModuleSpec | None:
        """A module, a package, or a folder that is a package by its name alone."""
        for location, inside in ((f"{stem}.py", None), (os.path.join(stem, "__init__.py"), [stem])):
            if os.path.isfile(location) and (inside or not package):
                return importlib.util.spec_from_file_location(
                    name, location, loader=self, submodule_search_locations=inside
                )
        if not os.path.isdir(stem):
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [stem]
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Use the default module object."""

    def exec_module(self, module: ModuleType) -> None:
        location = str(module.__file__)
        with open(location, "rb") as file:
            execute(module, ast.parse(file.read()), location, self.seconds)


def _is_installed(name: str, finder: _LocalFinder) -> bool:
    others = (f for f in sys.meta_path if f is not finder)
    return any(f.find_spec(name, None) is not None for f in others)
