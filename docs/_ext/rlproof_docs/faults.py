"""A page per fault, from its own page and its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rlproof.faults.model import Fault
from rlproof.faults.page import page
from rlproof.faults.registry import catalogue
from rlproof_docs.text import link_words, plain, table

_LABEL = "fault-"
_VIEWS = {
    "C": "by executing it on designed inputs",
    "S": "in the source",
    "R": "in a recorded run of the loop",
    "M": "in logged metrics",
    "D": "in a dump of rollouts",
}
FAMILIES = {
    "ADV": "Advantages",
    "SUR": "Ratio, clip and surrogate",
    "KLD": "Divergence",
    "AGG": "Aggregation",
    "MSK": "Masks and padding",
    "DAT": "Data that belong together",
    "LGP": "Log-probabilities",
    "SMP": "Sampling",
    "RWD": "Reward functions",
    "LOP": "The loop",
    "MET": "Metrics",
    "OBJ": "The objective as a whole",
}


def pages() -> Iterator[tuple[str, str]]:
    """Path and text of every fault's page, and of the table of all of them."""
    for fault in catalogue().values():
        yield f"reference/faults/{fault.code.lower()}.md", fault_page(fault)
    yield "_generated/faults.md", overview()


def fault_page(fault: Fault) -> str:
    """One page: the label, the title, what is known about the fault, and its text."""
    text = page(fault.code).markdown
    head, _, body = text.partition("\n")
    return f"({_LABEL}{fault.code.lower()})=\n{head}\n\n{_facts(fault)}\n{_links(fault.code, body)}"


def _facts(fault: Fault) -> str:
    views = ", ".join(_VIEWS[view] for view in fault.views)
    rows = [
        ("Severity", f"**{fault.severity}**"),
        ("In short", plain(fault.summary)),
        ("What to do", plain(fault.remedy)),
        ("How it is found", views),
        *_coordinate(fault),
        ("On the command line", f"`rlproof explain {fault.code}`"),
    ]
    return table(("", ""), rows)


def _coordinate(fault: Fault) -> Iterator[tuple[str, str]]:
    """A fault that is a value of an axis says which, and what it stands in for."""
    if fault.plant:
        wrong, right = fault.plant.value, fault.plant.instead
        yield "Coordinate", f"`{fault.plant.axis}` = `{wrong}` instead of `{right}`"


def _links(own: str, body: str) -> str:
    """Codes of other faults become links."""
    others = "|".join(code for code in catalogue() if code != own)
    return link_words(body, re.compile(rf"\b(?:{others})\b"), _LABEL)


def overview() -> str:
    """All faults, family by family."""
    parts = []
    for family, title in _families().items():
        rows = [
            (_link(fault), fault.name, fault.severity, plain(fault.summary))
            for code, fault in catalogue().items()
            if code.startswith(family)
        ]
        parts.append(f"## {title}\n\n{table(('code', 'name', 'severity', 'what'), rows)}")
    return "\n".join(parts)


def _link(fault: Fault) -> str:
    return f"[{fault.code}](#{_LABEL}{fault.code.lower()})"


def _families() -> dict[str, str]:
    """Titles by the first three letters, in the order of the loss; unknown ones at the end."""
    found = dict.fromkeys(code[:3] for code in catalogue())
    return {f: FAMILIES.get(f, f) for f in [*FAMILIES, *found] if f in found}
