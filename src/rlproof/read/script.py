"""A path to a `Script`: source, targets and declared objective. Never imports the file."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

from rlproof.read.roles import recognise
from rlproof.read.source import Source, load
from rlproof.read.targets import Script

_DIRECTIVE = re.compile(r"#\s*rlproof:\s*objective\s*=\s*([\w.+-]+)\s*")


def read(path: str) -> Script:
    """Read one script.

    Raises:
        SourceError, NothingToCheckError: see `rlproof.read.source.load`.
    """
    return script_of(load(path))


def script_of(source: Source) -> Script:
    """The targets of a source and the objective that its comments declare."""
    return Script(source, recognise(source.tree), next(_declared(source.text), None))


def _declared(text: str) -> Iterator[str]:
    """The recipes that comments on lines of their own declare."""
    if "rlproof:" not in text:
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        alone = token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
        if alone and (found := _DIRECTIVE.fullmatch(token.string)):
            yield found[1]
