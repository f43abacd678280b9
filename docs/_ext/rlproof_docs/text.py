"""Markdown parts that every generator uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\`*_\[\]<>#$|~{}!])")
_CODE = re.compile(r"(`[^`]+`)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def plain(text: str) -> str:
    """Text that Markdown shows as it is; what stands between backticks stays code."""
    parts = _CODE.split(text)
    return "".join(
        part if index % 2 else _SPECIAL.sub(r"\\\1", part) for index, part in enumerate(parts)
    )


def code(text: str) -> str:
    """Inline code, also inside a table; empty for nothing."""
    ticks = "``" if "`" in text else "`"
    return f"{ticks}{text}{ticks}" if text else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar inside a cell does not end it."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(_cell, line)) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def fence(kind: str, body: str, *options: str) -> str:
    """A directive or a code block."""
    ticks = "````" if "```" in body else "```"
    head = "".join(f"{option}\n" for option in options)
    return f"{ticks}{kind}\n{head}{body.rstrip()}\n{ticks}\n"


def link_words(markdown: str, pattern: re.Pattern[str], label: str) -> str:
    """Make every match outside code a link to the label `{label}{match}`, in lower case."""
    pieces, end = [], 0
    for block in [*_FENCE.finditer(markdown), None]:
        start = block.start() if block else len(markdown)
        pieces.append(_linked(markdown[end:start], pattern, label))
        if block:
            pieces.append(block[0])
            end = block.end()
    return "".join(pieces)


def _linked(prose: str, pattern: re.Pattern[str], label: str) -> str:
    parts = _CODE.split(prose)
    return "".join(
        part
        if index % 2
        else pattern.sub(lambda match: f"[{match[0]}](#{label}{match[0].lower()})", part)
        for index, part in enumerate(parts)
    )
