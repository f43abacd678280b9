"""The comments of a source: what looks like one inside a string is none."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator

MARK = "rlproof:"
"""What every comment to rlproof holds."""


def comments(text: str) -> Iterator[tokenize.TokenInfo]:
    """All comments of a text that is valid Python; none where no comment can be to rlproof."""
    if MARK not in text:
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token


def stands_alone(token: tokenize.TokenInfo) -> bool:
    """Whether no code stands before a comment on its line."""
    return token.line.lstrip().startswith("#")
