"""Write a report to a file: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from rlproof.errors import ConfigError
from rlproof.read.source import shown


def write_atomically(path: str, text: str) -> None:
    """Write beside the target, then rename over it.

    Raises:
        ConfigError: the file can't be written; an existing one is untouched.
    """
    folder = os.path.dirname(os.path.abspath(path))
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".rlproof-")
        # a path in the report may hold bytes that are no text
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise ConfigError(f"-o {shown(path)}: can't be written ({error.strerror})") from None
    finally:
        with suppress(OSError):  # after the rename there is none
            os.unlink(temporary)
