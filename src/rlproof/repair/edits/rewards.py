"""Repairs of reward functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlproof.read.landmarks import called
from rlproof.read.parameters import calls_by_name
from rlproof.repair.edits.model import Edit
from rlproof.repair.edits.site import Site


def last_match(site: Site) -> Iterator[Edit]:
    """`re.search(p, text)` to the last of `re.finditer(p, text)`; None where there is none."""
    for call, name in _searches(site):
        start, stop = site.span(call)
        at = site.span(name)[1]
        found = f"{site.text[start : at - len(name.attr)]}finditer{site.text[at:stop]}"
        yield Edit("read the last answer", (site.put(call, f"([*{found}] or [None])[-1]"),))


def _searches(site: Site) -> Iterator[tuple[ast.Call, ast.Attribute]]:
    """Calls of `….search` in the function of the finding, then in those that it calls."""
    waiting, seen = [site.finding.place.function], set[str]()
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in site.functions:
            continue
        seen.add(name)
        for node in ast.walk(site.functions[name]):
            if isinstance(node, ast.Call) and called(node) == "search" and node.args:
                if isinstance(node.func, ast.Attribute):
                    yield node, node.func
        waiting += calls_by_name(site.functions[name])
