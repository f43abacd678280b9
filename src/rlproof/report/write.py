"""Write a report to a file: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from rlproof.errors import ConfigError
from rlproof.read.source import shown


def write_atomically(path: str, text: str | bytes, option: str = "-o") -> None:
    """Write beside the target, then rename over it.

    A device or a pipe is written to, never replaced; a link stays one. `option` named the file.

    Raises:
        ConfigError: the file can't be written; an existing one is untouched.
    """
    target = os.path.realpath(path)
    # a path in it may hold bytes that are no text
    raw = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else text
    try:
        if path.endswith(os.sep) or (os.path.exists(target) and not os.path.isfile(target)):
            with open(path, "wb") as file:
                file.write(raw)
        else:
            _replace(target, raw)
    except OSError as error:
        raise ConfigError(f"{option} {shown(path)}: can't be written ({error.strerror})") from None


def _replace(target: str, raw: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".rlproof-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
        os.chmod(temporary, 0o644)
        os.replace(temporary, target)
    finally:
        with suppress(OSError):  # after the rename there is none
            os.unlink(temporary)
