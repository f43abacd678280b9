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

from rlproof.bind.child.guard import GUARD
from rlproof.bind.child.keep import kept

MODULE = "__rlproof_script__"
_LATE_ANNOTATIONS = future.annotations.compiler_flag


class Missing:
    """Stands for a name that could not be imported or computed; any use says why."""

    def __init__(self, reason: str) -> None:
        object.__setattr__(self, "_reason", reason)

    def _fail(self, *args: object, **kwargs: object) -> NoReturn:
        raise ImportError(object.__getattribute__(self, "_reason"))

    __call__ = __getattr__ = __getitem__ = __iter__ = __bool__ = __len__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _fail
    __mro_entries__ = __float__ = __int__ = __index__ = __neg__ = __lt__ = __gt__ = _fail


def load(path: str, text: str) -> tuple[ModuleType, dict[str, str]]:
    """The script as a module, and the reasons why some of its names are unusable."""
    folder = os.path.dirname(os.path.abspath(path))
    sys.meta_path.append(_LocalFinder(folder))
    module = ModuleType(MODULE)
    module.__file__ = path
    sys.modules[MODULE] = module
    return module, execute(module, ast.parse(text), path)


def execute(module: ModuleType, tree: ast.Module, path: str) -> dict[str, str]:
    """Run what `kept` allows. Returns the reason for each name that could not be had."""
    keep, dropped = kept(tree)
    reasons = {
        name: f"line {node.lineno} defines {name} by running code, which is never executed"
        for node in dropped
        for name in _names(node)
    }
    for name, reason in reasons.items():
        setattr(module, name, Missing(reason))
    for node in keep:
        reason = _run(module, node, path)
        for name in _names(node) if reason else ():
            reasons[name] = reason
            setattr(module, name, Missing(reason))
    return reasons


def _run(module: ModuleType, node: ast.stmt, path: str) -> str:
    """Execute one statement; the reason it failed, or an empty string."""
    is_import = isinstance(node, ast.Import | ast.ImportFrom | ast.Try)
    code = compile(
        ast.Module([node], []), path, "exec", flags=_LATE_ANNOTATIONS, dont_inherit=True
    )
    try:
        with GUARD.relaxed() if is_import else GUARD.strict():
            exec(code, module.__dict__)
    except ImportError as error:
        missing = getattr(error, "name", None)
        return f"needs {missing}, which is not installed" if missing else str(error)
    except BaseException as error:
        return f"line {node.lineno} failed: {type(error).__name__}: {error}"
    return ""


def _names(node: ast.stmt) -> list[str]:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [(a.asname or a.name).split(".")[0] for a in names if a.name != "*"]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign() | ast.AnnAssign() | ast.For() | ast.With():
            stored = (n for n in ast.walk(node) if isinstance(n, ast.Name))
            return [n.id for n in stored if isinstance(n.ctx, ast.Store)]
        case ast.Try(body=body):
            return [name for inner in body for name in _names(inner)]
    return []


class _LocalFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads modules beside the script through the same filter: their top level never runs."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        stem = fullname.rpartition(".")[2]
        for folder in path or [self.folder]:
            for name in (f"{stem}.py", os.path.join(stem, "__init__.py")):
                location = os.path.join(folder, name)
                if os.path.isfile(location):
                    inside = [os.path.dirname(location)] if name != f"{stem}.py" else None
                    return importlib.util.spec_from_file_location(
                        fullname, location, loader=self, submodule_search_locations=inside
                    )
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Use the default module object."""

    def exec_module(self, module: ModuleType) -> None:
        location = str(module.__file__)
        with open(location, "rb") as file:
            execute(module, ast.parse(file.read()), location)
