"""Options of a check: the command line over pyproject.toml over defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rlproof.bind.sandbox import DEFAULT_SECONDS
from rlproof.config import folder_of
from rlproof.config import load as load_config
from rlproof.errors import ConfigError
from rlproof.faults.registry import catalogue, matching

STYLES = ("full", "concise", "json", "html", "github", "sarif", "junit")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one run, command line over pyproject.toml over defaults.

    A recipe that a script declares in a comment stands between the first two.
    """

    codes: frozenset[str]
    objective: str | None
    """The recipe that the command line declares, for every script."""
    default: str | None
    """The project's, for scripts that declare none themselves."""
    run: bool
    seconds: float
    style: str
    roles: Mapping[str, str] = field(default_factory=dict)
    fix: bool = False
    """Write verified repairs."""
    diff: bool = False
    """Verify repairs and show them."""
    baseline: str | None = None
    """A file of known findings."""
    jobs: int = 1
    """How many files are checked at once."""
    named: frozenset[str] = frozenset()
    """Codes that are selected one by one: their notes are repaired too."""
    cache: str | None = None
    """The folder of what is known of files from earlier checks."""

    @classmethod
    def resolve(
        cls,
        select: tuple[str, ...],
        ignore: tuple[str, ...],
        objective: str | None,
        run: bool,
        timeout: float | None,
        style: str | None,
        *,
        fix: bool = False,
        diff: bool = False,
        baseline: str | None = None,
        jobs: int | None = 1,
        cache: bool = False,
        start: Path | None = None,
    ) -> Options:
        """Merge the command line with the project's settings.

        `jobs` is the number of CPUs where it is None. `start` is the folder whose nearest
        pyproject.toml, upwards, has the settings; None is the working folder.

        Raises:
            ConfigError: an unknown code, recipe, format or setting, or a repair without a run.
        """
        if (fix or diff) and not run:
            raise ConfigError("--fix and --diff run what they repair; leave --no-run out")
        config = load_config(start or Path.cwd())
        chosen = style or config.format or "full"
        if chosen not in STYLES:
            raise ConfigError(f"format {chosen!r} is unknown; expected one of {', '.join(STYLES)}")
        return cls(
            codes=_codes(select or config.select, ignore or config.ignore),
            named=_named(select or config.select),
            objective=objective,
            default=config.objective,
            run=run,
            seconds=timeout or config.timeout or DEFAULT_SECONDS,
            style=chosen,
            roles=config.roles,
            fix=fix,
            diff=diff,
            baseline=baseline or config.baseline,
            jobs=jobs or cpus(),
            cache=_cache_folder() if cache else None,
        )


def _codes(select: tuple[str, ...], ignore: tuple[str, ...]) -> frozenset[str]:
    def all_of(names: tuple[str, ...]) -> set[str]:
        parts = [part for name in names for part in name.split(",")]
        try:
            return {code for part in parts for code in matching(part)}
        except KeyError as error:
            raise ConfigError(str(error.args[0])) from None

    chosen = all_of(select) if select else set(catalogue())
    return frozenset(chosen - all_of(ignore))


def _named(select: tuple[str, ...]) -> frozenset[str]:
    """What is selected by its own code or name, not by that of a family."""
    parts = {part.strip().lower() for name in select for part in name.split(",")}
    return frozenset(f.code for f in catalogue().values() if {f.code.lower(), f.name} & parts)


def cpus() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cache_folder() -> str | None:
    """`RLPROOF_CACHE_DIR` (empty for none), or a folder beside pyproject.toml, or here."""
    chosen = os.environ.get("RLPROOF_CACHE_DIR")
    if chosen is not None:
        return chosen or None
    return str((folder_of(Path.cwd()) or Path.cwd()) / ".rlproof_cache")
