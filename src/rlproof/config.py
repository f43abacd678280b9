"""Settings: `[tool.rlproof]` of the nearest pyproject.toml, under the command line's options."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rlproof.errors import ConfigError, quoted

LEAST_SECONDS = 0.01
_EXPECTED = {
    list: "a list of strings",
    str: "a string",
    dict: 'a table of names, such as logp = "new"',
    int: f"a number of seconds, {LEAST_SECONDS} or more",
}


@dataclass(frozen=True, slots=True)
class Config:
    """What a project sets for `rlproof check`."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    objective: str | None = None
    timeout: float | None = None
    format: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    """Names with the part they play, where the names themselves don't say it."""
    baseline: str | None = None
    """A file of known findings; in pyproject.toml from the folder of that."""


_TYPES: dict[str, tuple[type, ...]] = {
    "select": (list,),
    "ignore": (list,),
    "objective": (str,),
    "timeout": (int, float),
    "format": (str,),
    "roles": (dict,),
    "baseline": (str,),
}


def load(start: Path) -> Config:
    """The settings that hold in a folder.

    Raises:
        ConfigError: the file is not valid TOML, or a key or its type is wrong.
    """
    folder = folder_of(start)
    return _parse(folder / "pyproject.toml") if folder else Config()


def folder_of(start: Path) -> Path | None:
    """The nearest folder, upwards, that has a pyproject.toml."""
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file():
            return folder
    return None


def _parse(path: Path) -> Config:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (ValueError, OSError, RecursionError) as error:  # a number may have too many digits
        raise ConfigError(f"{path}: can't be read as TOML ({error})") from None
    tool = document.get("tool", {})
    table = tool.get("rlproof", {}) if isinstance(tool, dict) else tool
    if not isinstance(table, dict):
        raise ConfigError(
            f"{path}: [tool.rlproof] is {quoted(table)}; expected a table of settings"
        )
    known = [field.name for field in fields(Config)]
    for key, value in table.items():
        if key not in known:
            near = get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise ConfigError(f"{path}: [tool.rlproof] has no setting {quoted(key)}; {hint}")
        _check_type(path, key, value)
    settings: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    if "baseline" in settings:
        settings["baseline"] = os.path.join(path.parent, settings["baseline"])
    return Config(**settings)


def _is_time(value: float) -> bool:
    try:
        return float(value) >= LEAST_SECONDS
    except OverflowError:  # a whole number beyond floats
        return False


def _check_type(path: Path, key: str, value: Any) -> None:
    items = list(value.values()) if isinstance(value, dict) else value
    wrong_item = isinstance(items, list) and not all(isinstance(item, str) for item in items)
    wrong_type = not isinstance(value, _TYPES[key]) or isinstance(value, bool)
    if wrong_type or wrong_item or (key == "timeout" and not _is_time(value)):
        expected = _EXPECTED[_TYPES[key][0]]
        raise ConfigError(f"{path}: [tool.rlproof] {key} = {quoted(value)}; expected {expected}")
