"""A healthy script and what must be said of it."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Variant:
    """A script, and for each of its functions the coordinates that must be reported."""

    name: str
    source: str
    functions: dict[str, dict[str, str | float]]
    recipe: str | None = None
    """The recipe of its loss; None where it has no loss."""
    absent: tuple[str, ...] = ()
    """Coordinates that no function may report."""

    @property
    def text(self) -> str:
        """The script."""
        return dedent(self.source).lstrip("\n")
