"""Write a report to a file: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from rlproof.errors import ConfigError


def write_atomically(path: str, text: str) -> None:
    """Write beside the target, then rename over it.

    Raises:
        ConfigError: the file can't be written; an existing one is untouched.
    """
    folder = os.path.dirname(os.path.abspath(path))
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".rlproof-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise ConfigError(f"-o {path}: can't be written ({error.strerror})") from None
