"""A path to a `Script`: source, targets and declared objective. Never imports the file."""

from __future__ import annotations

import re

from rlproof.read.roles import recognise
from rlproof.read.source import load
from rlproof.read.targets import Script

_DIRECTIVE = re.compile(r"^\s*#\s*rlproof:\s*objective\s*=\s*([\w.-]+)\s*$", re.MULTILINE)


def read(path: str) -> Script:
    """Read one script.

    Raises:
        SourceError, NothingToCheckError: see `rlproof.read.source.load`.
    """
    source = load(path)
    declared = _DIRECTIVE.search(source.text)
    return Script(source, recognise(source.tree), declared[1] if declared else None)
