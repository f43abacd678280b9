"""Everything that reads a file of somebody else's, each as one function of a path.

What a target may do with any bytes at all: end normally, or raise an `RlproofError`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from rlproof.errors import RlproofError
from tests.fuzz.watching import SECONDS, contents, watched

STYLES = ("full", "concise", "json", "github", "sarif", "junit", "html")


def check(path: str) -> None:
    """A script or a notebook as `check --no-run` reads it, in every format of the report.

    What the sandbox is sent and what a cache depends on are made as well; nothing is executed.
    """
    from rlproof.bind import outlined
    from rlproof.checks import check_paths
    from rlproof.options import Options
    from rlproof.read.dependencies import dependencies
    from rlproof.read.script import read

    options = Options.resolve((), (), None, False, None, "json")
    outcome = check_paths((path,), options)
    for style in STYLES:
        outcome.render(style, 80).encode("utf-8")
    dependencies(path, {})
    if outcome.errors:
        raise outcome.error()
    outlined.packed(outlined.functions(read(path)))


def inspect(path: str) -> None:
    """A log or dump, as text and as JSON; in half of them declared facts wake more rules."""
    from rlproof.watch.command import inspect_path, render

    facts = ("objective=grpo", "group_size=4", "updates=2", "beta=0.04")
    inspection = inspect_path(path, facts if crc32(Path(path).read_bytes()) % 2 else ())
    for style in ("text", "json"):
        render(inspection, style, 80).encode("utf-8")


def follow(path: str) -> None:
    """A log that is followed and does not grow."""
    from rlproof.watch.command import follow_path

    follow_path(path, (), 0.0, lambda text: None, 80)


def run_toml(path: str) -> None:
    """The settings of a training run."""
    from rlproof.train.config import load

    load(path).resolved()


def project(path: str) -> None:
    """The settings of a project."""
    from rlproof.config import load

    load(Path(path).parent)


def baseline(path: str) -> None:
    """A file of known findings, applied to nothing."""
    from rlproof.baseline import load

    load(path).applied((), {}, frozenset({"SUR004", "MSK001"}), run=True)


def stored(path: str) -> None:
    """An entry of the cache behind its checksum: no stored value is no error of the user."""
    from rlproof.stored import NotStorableError, loads

    try:
        loads(Path(path).read_bytes())
    except NotStorableError:
        return


def prompts(path: str) -> None:
    """The prompts of a training run."""
    from rlproof.train.config import Data
    from rlproof.train.data import rows_of

    rows_of(Data(path=path))


@dataclass(frozen=True)
class Target:
    """A reader, and the name of the file that it is given."""

    file: str
    run: Callable[[str], None]


TARGETS = {
    "script": Target("train.py", check),
    "notebook": Target("train.ipynb", check),
    "lines": Target("run.jsonl", inspect),
    "record": Target("steps.rlproof.jsonl", inspect),
    "table": Target("run.csv", inspect),
    "console": Target("run.log", inspect),
    "followed": Target("run.log", follow),
    "state": Target("trainer_state.json", inspect),
    "parquet": Target("run.parquet", inspect),
    "events": Target("events.out.tfevents.1", inspect),
    "wandb": Target("run-1.wandb", inspect),
    "trackio": Target("project.db", inspect),
    "run_toml": Target("run.toml", run_toml),
    "project": Target("pyproject.toml", project),
    "baseline": Target("known.json", baseline),
    "stored": Target("entry", stored),
    "prompts": Target("prompts.jsonl", prompts),
}
PACKAGES = {"parquet": "pyarrow.parquet", "events": "tensorboard", "wandb": "wandb"}


def held(name: str, raw: bytes, folder: Path, seconds: float = SECONDS) -> str:
    """Give bytes to a target. Returns what the user would be told, or nothing.

    Raises:
        AssertionError: it did something that no input may make it do.
        Hung: it took too long.
        Exception: whatever else it raised, which is a fault of rlproof.
    """
    target = TARGETS[name]
    path = folder / target.file
    path.write_bytes(raw)
    before, told = contents(folder), ""
    with warnings.catch_warnings(), watched(seconds) as seen:
        warnings.simplefilter("error")
        try:
            target.run(str(path))
        except RlproofError as error:
            told = str(error)
    assert not seen, seen
    assert contents(folder) == before, "a file was written"
    return told
