"""The healthy code that slips are put into, each text once, and the part of it that is judged."""

from __future__ import annotations

import ast
from pathlib import Path

from benchmarks.public_faults import reading as reports
from tests.cases import reading as cases
from tests.support.variants import VARIANTS

from rlproof.read.script import read


def texts() -> dict[str, str]:
    """By name: the cases' healthy twins, published variants, twins and non-bugs of reports."""
    found = {c.name: "\n".join(c.healthy) for c in cases.every() if c.style != "notebook"}
    found |= {f"variant {v.name}": v.text for v in VARIANTS}
    found |= {e.name: e.twin for e in reports.every() if not e.is_run}
    once: dict[str, str] = {}
    for name, text in found.items():
        once.setdefault(text, name)
    return {name: text for text, name in once.items()}


def judged(path: Path) -> list[ast.AST]:
    """The functions with a role and those of the file that they call, at any depth."""
    script = read(str(path))
    known = {n.name: n for n in ast.walk(script.source.tree) if isinstance(n, ast.FunctionDef)}
    wanted: dict[int, ast.AST] = {}
    todo: list[ast.AST] = [t.node for t in script.targets]
    while todo:
        node = todo.pop()
        if id(node) in wanted:
            continue
        wanted[id(node)] = node
        for call in ast.walk(node):
            if isinstance(call, ast.Call):
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                if name in known:
                    todo.append(known[name])
    return sorted(wanted.values(), key=lambda n: n.lineno)  # type: ignore[attr-defined]
