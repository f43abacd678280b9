"""Slips of the pen: small changes of a healthy script that plant a fault, by pattern.

Each is applied where its pattern first occurs; a script without it has no such slip.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from tests.support.variants_model import Variant

_RATIO = r"\b(torch|np|math)\.exp\((\w+(?:\[[^\]]*\])*) - (\w*old\w*(?:\[[^\]]*\])*)\)"
_MEAN = r"\((\w+) \* (\w*mask\w*)\)\.sum\(\)"
SLIPS: dict[str, tuple[str, str]] = {
    "larger of two": (r"\b(torch\.|np\.)?min(imum)?\((?=\w[^()]*,)", r"\1max\2("),
    "plus for minus": (r"return -", "return "),
    "added up": (r"total -= min", "total += min"),
    "no exp": (_RATIO, r"(\2 - \3)"),
    "quotient": (_RATIO, r"(\2 / \3)"),
    "upside down": (_RATIO, r"\1.exp(\3 - \2)"),
    "penalty rewarded": (r"\+(=?) (beta|BETA) \*", r"-\1 \2 *"),
    "penalty turned": (r"(ref\w*(?:\[[^\]]*\])*) - (\w*(?:new|logp|cur)\w*(?:\[[^\]]*\])*)", r"\2 - \1"),
    "padding summed": (_MEAN, r"\1.sum()"),
    "padding averaged": (_MEAN + r" / \w*mask\w*\.sum\(\)(\.clamp\(min=1\.?0?\))?", r"\1.mean()"),
    "padding not skipped": (r"\n +if not (\w+(?:\[\w+\])*):\n +continue", ""),
    "no eps": (r"\((\w*(?:std|sigma|sd)\w*(?:\([^()]*\))?) \+ [\w.-]+\)", r"\1"),
    "baseline minus reward": (r"\((r|reward|s|score|x) - (m|mean|mu|baseline)\)", r"(\2 - \1)"),
    "numbers for eps": (r"1 - (\w*eps\w*|clip\w*), 1 \+ (\w*eps\w*|clip\w*)", "0.8, 1.2"),
    "cut off": (r"torch\.exp\((\w+) - ", r"torch.exp(\1.detach() - "),
}  # fmt: skip


def slipped(text: str, *names: str) -> str | None:
    """The script with these slips; None where one has no place in it."""
    for name in names:
        pattern, put = SLIPS[name]
        text, count = re.subn(pattern, put, text, count=1)
        if not count:
            return None
    return text


def planted(variants: tuple[Variant, ...], size: int) -> Iterator[tuple[str, str]]:
    """Every script with every set of so many slips: its name and text."""
    for variant in variants:
        for names in combinations(SLIPS, size):
            text = slipped(variant.text, *names)
            if text is not None and text != variant.text:
                yield f"{variant.name}: {', '.join(names)}", text
