"""Outlined functions on their way to the child process."""

from __future__ import annotations

import ast
import base64
import pickle
from collections.abc import Mapping

from rlproof.read.targets import Script


def functions(script: Script) -> dict[str, ast.AST]:
    """The syntax tree of every outlined function, by the name to call it by."""
    return {t.entry: t.node for t in script.targets if t.origin and not t.origin.reason}


def packed(nodes: Mapping[str, ast.AST]) -> dict[str, str]:
    """Trees as text, with every line and column; those too deep to write are left out."""
    texts: dict[str, str] = {}
    for entry, node in nodes.items():
        try:
            texts[entry] = base64.b64encode(pickle.dumps(node)).decode("ascii")
        except RecursionError:
            continue
    return texts
