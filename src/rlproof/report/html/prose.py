r"""Markdown with formulas between `\(` and `\)`. HTML in it is text."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rlproof.report.html.mathml import mathml

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token


def markdown(text: str) -> Markup:
    """The HTML of CommonMark without raw HTML; links are printed, not followed."""
    return Markup(_parser().render(text))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).disable(
        ["link", "image", "autolink", "reference", "heading", "lheading", "html_block"]
    )
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.add_render_rule("formula", _rendered)
    return parser


def _formula(state: StateInline, silent: bool) -> bool:
    """Take what stands between the two delimiters."""
    if not state.src.startswith(r"\(", state.pos):
        return False
    end = state.src.find(r"\)", state.pos + 2, state.posMax)
    if end < 0:
        return False
    if not silent:
        state.push("formula", "math", 0).content = state.src[state.pos + 2 : end]
    state.pos = end + 2
    return True


def _rendered(
    _self: Any,
    tokens: Sequence[Token],
    index: int,
    _options: Any,
    _env: MutableMapping[str, Any],
) -> str:
    return str(mathml(tokens[index].content, display=False))
