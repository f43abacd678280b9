"""What an editor sets: `initializationOptions`, or `rlproof` of a changed configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from rlproof.config import LEAST_SECONDS
from rlproof.errors import ConfigError
from rlproof.options import Options

_Seconds = Annotated[float, msgspec.Meta(ge=LEAST_SECONDS)]


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the server; `[tool.rlproof]` of the file's project holds below them."""

    run: bool = False
    """Whether the functions of a script are run; if not, its source alone is read."""
    debounce: Annotated[float, msgspec.Meta(ge=0, le=60_000)] = 500
    """Milliseconds without a change until an edited text is checked."""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    objective: str | None = None
    timeout: _Seconds | None = None
    """Seconds for each function of a script."""

    def options(self, folder: Path) -> Options:
        """The options of a check in a folder.

        Raises:
            ConfigError: a code, a recipe or the project's file is wrong.
        """
        return Options.resolve(
            self.select, self.ignore, self.objective, self.run, self.timeout, "full", start=folder
        )


def settings(given: Any) -> Settings:
    """Settings from an editor's JSON: the table itself, or one that has it under `rlproof`.

    Raises:
        ConfigError: a key is unknown, or a value is none of its kind.
    """
    table = given.get("rlproof", given) if isinstance(given, dict) else given
    if table is None:
        return Settings()
    try:
        return msgspec.convert(table, Settings)
    except msgspec.ValidationError as error:
        known = ", ".join(Settings.__struct_fields__)
        raise ConfigError(f"settings of rlproof: {error}; known: {known}") from None
