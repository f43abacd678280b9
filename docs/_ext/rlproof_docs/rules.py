"""The rules of `rlproof inspect`: one page of them all, from their own pages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rlproof.faults.registry import catalogue
from rlproof.watch.rules.model import Rule
from rlproof.watch.rules.registry import page, rules
from rlproof_docs.text import link_words, plain, table

FAMILIES = {
    "LOG": "Logged metrics",
    "STP": "Recorded steps",
    "ROL": "Dumps of rollouts",
    "QST": "Questions: what looks wrong and is normal",
}


def pages() -> Iterator[tuple[str, str]]:
    """The fragment that reference/rules.md includes."""
    yield "_generated/rules.md", document()


def document() -> str:
    """Family by family: a table, then every rule's page one level deeper."""
    parts = []
    for family, title in FAMILIES.items():
        own = [rule for code, rule in rules().items() if code.startswith(family)]
        rows = [(_link(rule), rule.name, rule.severity, plain(rule.summary)) for rule in own]
        parts += [f"## {title}\n", table(("code", "name", "severity", "what it says"), rows)]
        parts += [_section(rule) for rule in own]
    return "\n".join(parts)


def _link(rule: Rule) -> str:
    return f"[{rule.code}](#rule-{rule.code.lower()})"


def _section(rule: Rule) -> str:
    head, _, body = page(rule.code).markdown.partition("\n")
    deeper = re.sub(r"^## ", "#### ", body.replace("```jsonl", "```text"), flags=re.MULTILINE)
    known = re.compile(rf"\b(?:{'|'.join(catalogue())})\b")
    faults = ", ".join(rule.faults)
    given = f"Faults that give this: {faults}.\n" if faults else ""
    text = link_words(f"{plain(rule.remedy).capitalize()}. {given}\n{deeper}", known, "fault-")
    return f"(rule-{rule.code.lower()})=\n##{head}\n\n{text}"
