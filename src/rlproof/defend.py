"""One run of `defend`: what is defended, in which format, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from rlproof.errors import ConfigError, NothingToCheckError

STYLES = ("text", "html", "md", "json")


@dataclass(frozen=True, slots=True)
class Defended:
    """The report in one format, and whether everything holds."""

    text: str
    exit_code: int


def defend_tiny(only: Sequence[str], full: bool, style: str, width: int) -> Defended:
    """The tiny trainer and the claims; exit code 1 if any number misses.

    Raises:
        ConfigError: `only` names no claim.
    """
    from rlproof.defence.trainer import defend_trainer

    defence = defend_trainer(only)
    if style == "text":
        from rlproof.report.defence.text import render

        text = render(defence, full, width)
    else:
        text = _page(style).trainer(defence)
    return Defended(text, int(not defence.holds))


def defend_path(
    path: str, objective: str | None, seconds: float | None, full: bool, style: str, width: int
) -> Defended:
    """A script; exit code 1 if a line of it can't be defended.

    Raises:
        NothingToCheckError: no function was recognised, or none could be run.
        SourceError: the file can't be read.
        ConfigError: the declared recipe is unknown.
    """
    from rlproof.bind.sandbox import DEFAULT_SECONDS
    from rlproof.config import load
    from rlproof.defence.claims import Computed
    from rlproof.defence.script import defend_script
    from rlproof.lab.claims.registry import find
    from rlproof.read.script import read
    from rlproof.read.source import shown

    if Path(path).is_dir():
        raise ConfigError(f"{shown(path)} is a folder; defend takes one script")
    script, config = read(path), load(Path.cwd())
    if not script.targets:
        raise NothingToCheckError(f"{shown(path)}: no GRPO function recognised")
    defence = defend_script(
        script,
        seconds=seconds or config.timeout or DEFAULT_SECONDS,
        objective=objective,
        default=config.objective,
    )
    claims = [Computed(find(known)) for known in defence.claims]
    if style == "text":
        from rlproof.report.defence.script_text import render

        text = render(defence, claims, full, width)
    else:
        text = _page(style).script(defence, claims, script.source.lines)
    serious = any(str(o.finding.severity) != "note" for o in defence.objections)
    nothing = not defence.parts and not serious
    return Defended(text, NothingToCheckError.exit_code if nothing else int(serious))


def _page(style: str) -> ModuleType:
    """The renderers of one format that is no terminal: `trainer` and `script`."""
    if style == "json":
        from rlproof.report.defence import json

        return json
    if style == "md":
        from rlproof.report.defence import markdown

        return markdown
    from rlproof.report.defence import html

    return html
