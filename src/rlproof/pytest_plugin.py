"""The pytest plugin: `pytest --rlproof train.py`, or `rlproof_files` in the settings.

One test for each function with a role. Nothing of rlproof is imported unless a script is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--rlproof`, `--rlproof-objective` and their settings."""
    group = parser.getgroup("rlproof", "faults of GRPO training scripts")
    group.addoption(
        "--rlproof", action="append", default=[], metavar="PATH", dest="rlproof",
        help="Check this training script as well: one test for each function with a role.",
    )  # fmt: skip
    group.addoption(
        "--rlproof-objective", metavar="NAME", dest="rlproof_objective",
        help="The recipe that is meant (default: what the script or the project declares).",
    )  # fmt: skip
    parser.addini("rlproof_files", "Training scripts that rlproof checks.", "args", [])


@pytest.hookimpl(tryfirst=True)  # before -k and -m choose
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the tests of the scripts that were named; a script is never imported."""
    for path in _paths(config):
        file = RlproofFile.from_parent(session, path=path)
        items += file.collect()


def _paths(config: pytest.Config) -> list[Path]:
    """The scripts that were named, each once: settings are relative to their file."""
    home = config.inipath.parent if config.inipath else config.rootpath
    named = [config.invocation_params.dir / path for path in config.getoption("rlproof")]
    named += [home / path for path in config.getini("rlproof_files")]
    return list(dict.fromkeys(path.absolute() for path in named))


class RlproofFile(pytest.File):
    """One training script."""

    def collect(self) -> Iterator[pytest.Item]:
        """A test for each function with a role, and one for the rest of the file.

        Raises:
            pytest.UsageError: the script can't be read, or nothing in it is recognised.
        """
        from rlproof.errors import RlproofError
        from rlproof.testing import listed, trainer_checks

        objective = self.config.getoption("rlproof_objective") or "auto"
        try:
            lines = dict(listed(str(self.path)))
            checks = list(trainer_checks(str(self.path), objective=objective))
        except RlproofError as error:
            raise pytest.UsageError(f"rlproof: {error}") from None
        for name, check in checks:
            yield RlproofItem.from_parent(
                self, name=f"rlproof[{name}]", check=check, line=lines[name]
            )


class RlproofItem(pytest.Item):
    """The check of one function."""

    def __init__(self, *, check: Callable[[], None], line: int, **more: Any) -> None:
        super().__init__(**more)
        self.check, self.line = check, line
        self.add_marker("rlproof")

    def runtest(self) -> None:
        """Run the script's check, if that was not done, and raise this function's findings."""
        self.check()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The findings alone: where in rlproof they were raised helps nobody."""
        from rlproof.errors import RlproofError

        if isinstance(excinfo.value, AssertionError | RlproofError):
            return str(excinfo.value).strip("\n")
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the function is defined; lines count from 0 here."""
        return self.path, self.line - 1, self.name


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known: `-m rlproof` chooses these tests, `-m 'not rlproof'` the others."""
    config.addinivalue_line("markers", "rlproof: a function of a training script, checked")
