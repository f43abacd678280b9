"""What a search for repairs comes to, script by script."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rlproof.judge.check import check
from rlproof.judge.findings import FileReport
from rlproof.read.script import read
from rlproof.repair.fix import repair
from rlproof.repair.verify import strong
from tests.cases.reading import Case
from tests.support.repairing import EVERY
from tests.support.trainers import LETTERS, trainer


@dataclass(frozen=True)
class Outcome:
    """One script: its errors and warnings, how far the repair came, and why no further."""

    name: str
    codes: tuple[str, ...]
    status: str
    why: str
    cases: int
    checks: int
    seconds: float
    report: FileReport

    @property
    def verified(self) -> bool:
        return self.status == "verified"

    @property
    def several(self) -> bool:
        """Whether it has more than one fault."""
        return len(self.codes) > 1


def outcome(name: str, path: Path) -> Outcome | None:
    """What a repair of one file comes to; None where nothing is wrong but for notes."""
    started = time.perf_counter()
    script = read(str(path))
    before = check(script)
    faults = strong(before.findings, EVERY)
    if not faults:
        return None
    after = repair(script, before, EVERY, offers=False)
    seconds = time.perf_counter() - started
    assert after.repair is not None
    codes = tuple(sorted({f.code for f in faults}))
    whole = after.repair
    return Outcome(
        name, codes, str(whole.status), whole.message, whole.cases, whole.checks, seconds, after
    )


def of_case(case: Case, folder: Path) -> Outcome | None:
    """A case of the corpus: its bad code."""
    own = folder / case.name
    own.mkdir()
    return outcome(case.name, case.write(own, "bad"))


def of_subset(fixes: str, folder: Path) -> Outcome | None:
    """The seed trainer with these of its faults repaired."""
    path = folder / f"subset_{fixes or 'none'}.py"
    path.write_text(trainer(fixes, "list"), encoding="utf-8")
    return outcome(f"seed script, {len(LETTERS) - len(fixes)} left ({fixes or 'none'} done)", path)


def rate(outcomes: Iterable[Outcome]) -> float:
    """The share that is verified."""
    found = list(outcomes)
    return sum(one.verified for one in found) / len(found) if found else 1.0
