"""Python source for scripts: functions of wheels, helpers of these tests, options as literals."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from textwrap import dedent, indent
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

from tests.conformance.wheels import Excerpt, source_of

HEAD = """
import collections
import functools
import itertools
import math
import os
import sys
from collections import defaultdict
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any, Optional

import numpy as np
import torch

Wide = wide = nullcontext
"""
_PLAIN = (bool, int, float, str, type(None))
_PARTS = """
class {name}:
{body}
"""


def literal(value: Any) -> str:
    """Python source of options: plain values, containers, namespaces, config classes."""
    if is_dataclass(value) and not isinstance(value, type):
        value = SimpleNamespace(**{f.name: getattr(value, f.name) for f in fields(value)})
    if isinstance(value, SimpleNamespace):
        inner = ", ".join(f"{k}={literal(v)}" for k, v in vars(value).items())
        return f"Config({inner})"
    if isinstance(value, dict):
        inner = ", ".join(f"{k!r}: {literal(v)}" for k, v in value.items())
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        inner = "".join(f"{literal(v)}, " for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return repr(value)


CONFIG = """
class Config(SimpleNamespace):
    def get(self, name, default=None):
        return getattr(self, name, default)
"""


def helpers(*functions: Callable[..., Any]) -> str:
    """The source of functions of this test suite."""
    return "\n\n\n".join(dedent(inspect.getsource(function)) for function in functions)


def wheel_functions(**roots: Any) -> str:
    """Functions of a wheel under other names, with everything of the wheel that they use."""
    needed: dict[str, str] = {}
    for root in roots.values():
        _collect(root, needed)
    named = [_renamed(source_of(root), name) for name, root in roots.items() if name not in needed]
    return "\n\n\n".join([*needed.values(), *named])


def run_of(name: str, excerpt: Excerpt, *parameters: str) -> str:
    """Statements out of a function, as one that takes locals and gives all of them back."""
    body = "\n".join(ast.unparse(node) for node in excerpt.statements)
    lines = indent(f"{body}\nreturn SimpleNamespace(**locals())", "    ")
    return f"def {name}(*, {', '.join(parameters)}):\n{lines}"


def needed_by(excerpt: Excerpt) -> str:
    """What statements out of a function use of their wheel."""
    needed: dict[str, str] = {}
    for node in excerpt.statements:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name):
                _add(inner.id, excerpt.namespace, needed)
    return "\n\n\n".join(needed.values())


def _collect(definition: Any, needed: dict[str, str]) -> None:
    for function in _functions(definition):
        for name in _names(function.__code__):
            _add(name, function.__globals__, needed)


def _add(name: str, scope: Mapping[str, Any], needed: dict[str, str]) -> None:
    value = scope.get(name)
    if name in needed or name not in scope or name.startswith("__"):
        return
    if _is_of_wheel(value):
        needed[name] = ""  # not again
        _collect(value, needed)
        del needed[name]
        needed[name] = source_of(value)
    elif isinstance(value, SimpleNamespace):
        parts = {k: v for k, v in vars(value).items() if _is_of_wheel(v)}
        if not parts:
            return
        for inner in parts:
            _add(inner, parts, needed)
        body = "\n".join(f"@staticmethod\n{source_of(part)}" for part in parts.values())
        needed[name] = _PARTS.format(name=name, body=indent(body, "    "))
    elif isinstance(value, _PLAIN) or _is_plain_container(value):
        needed[name] = f"{name} = {value!r}"


def _is_of_wheel(value: Any) -> bool:
    """Whether it is code of a wheel; options come as literals, not as the classes they have."""
    return not is_dataclass(value) and any(
        ".whl/" in one.__code__.co_filename for one in _functions(value)
    )


def _functions(value: Any) -> list[FunctionType]:
    """A function as it is, or those of a class."""
    parts = vars(value).values() if isinstance(value, type) else [value]
    parts = [getattr(part, "__func__", part) for part in parts]
    return [part for part in parts if isinstance(part, FunctionType)]


def _is_plain_container(value: Any) -> bool:
    if isinstance(value, dict):
        value = [*value, *value.values()]
    sequence = isinstance(value, list | tuple | set)
    return sequence and all(isinstance(one, _PLAIN) for one in value)


def _names(code: CodeType) -> list[str]:
    """Global names that a function uses, those of functions inside it too."""
    inner = [
        one for const in code.co_consts if isinstance(const, CodeType) for one in _names(const)
    ]
    return [*code.co_names, *inner]


def _renamed(text: str, name: str) -> str:
    return re.sub(r"^def \w+", f"def {name}", text, count=1)
