"""LaTeX to MathML that browsers render as it is, checked while it is made."""

from __future__ import annotations

import html
from functools import cache
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from collections.abc import Iterator

_ATTRIBUTES = {
    "accent", "columnalign", "display", "displaystyle", "form", "linethickness", "lspace",
    "mathvariant", "maxsize", "minsize", "movablelimits", "rspace", "scriptlevel", "stretchy",
    "width",
}  # fmt: skip
_PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "mover": 2, "munder": 2, "munderover": 3}
_THIN = "0.17em"


class FormulaError(ValueError):
    """LaTeX that can't be rendered: a command that is unknown, or a stray character."""


@cache
def mathml(latex: str, display: bool = True) -> Markup:
    r"""One `<math>` element.

    Raises:
        FormulaError: something in it would be shown as source text, such as `\foo` or `&`.
    """
    from latex2mathml.converter import convert_to_element

    bare = latex.replace(r"\{", "").replace(r"\}", "")
    if bare.count("{") != bare.count("}"):
        raise FormulaError(f"{latex!r} has braces that don't match")
    try:
        root = convert_to_element(latex, display="block" if display else "inline")
    except Exception as error:
        raise FormulaError(f"{latex!r} is not valid LaTeX: {type(error).__name__}") from None
    root.attrib.pop("xmlns", None)
    return Markup("").join(_serialised(root, latex))


def _serialised(element: Element, latex: str) -> Iterator[Markup]:
    _space_operators(element)
    attributes = Markup("").join(
        Markup(' {}="{}"').format(name, value)
        for name, value in element.attrib.items()
        if name in _ATTRIBUTES
    )
    yield Markup("<{}{}>").format(Markup(element.tag), attributes)
    text = html.unescape(element.text or "")
    if len(element) != _PARTS.get(element.tag, len(element)):
        raise FormulaError(f"{latex!r} lacks a part of its {element.tag}")
    if any(sign in text for sign in "\\&"):
        raise FormulaError(f"{text!r} in {latex!r} is not rendered")
    yield escape(text)
    for child in element:
        yield from _serialised(child, latex)
    yield Markup("</{}>").format(Markup(element.tag))


def _space_operators(parent: Element) -> None:
    """Words such as `clip` and `log` are operators: close to a bracket, apart from the rest."""
    children = list(parent)
    for position, child in enumerate(children):
        word = child.text or ""
        if child.tag not in ("mo", "mi") or not (word.isalpha() and len(word) > 1):
            continue
        child.tag = "mo"
        before = children[position - 1] if position else None
        after = children[position + 1] if position + 1 < len(children) else None
        child.set("lspace", "0" if before is None or before.tag == "mo" else _THIN)
        child.set("rspace", "0" if after is None or _opens(after) else _THIN)


def _opens(element: Element) -> bool:
    first = element if element.tag == "mo" else next(iter(element), None)
    return first is not None and html.unescape(first.text or "") in {"(", "[", "|"}
