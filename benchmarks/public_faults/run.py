"""Recall, places, repairs and false alarms on faults that were reported in public.

    python -m benchmarks.public_faults.run [--fix] [--list] [NAME…]

One line an entry, then the table of the README. `--fix` searches repairs as well; `--list` prints
the entries and runs nothing; a NAME limits it to entries whose file's name has it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.public_faults.judging import Verdict, judge
from benchmarks.public_faults.reading import Entry, every
from tests.support.warm import warm_children


def verdicts(entries: list[Entry], *, fix: bool) -> list[Verdict]:
    """All of them, in order; each is printed when it is there."""
    found = []
    with TemporaryDirectory() as folder, warm_children(), ThreadPoolExecutor(2) as pool:
        # What is recorded writes to a process's own journal, so runs take turns.
        futures = [pool.submit(judge, e, Path(folder), fix=fix) for e in entries if not e.is_run]
        for entry in entries:
            if entry.is_run:
                found.append(judge(entry, Path(folder)))
                print(line(found[-1]), flush=True)
        for future in futures:
            found.append(future.result())
            print(line(found[-1]), flush=True)
    return sorted(found, key=lambda v: v.entry.name)


def line(one: Verdict) -> str:
    """What there is to say of one entry."""
    if one.entry.is_question:
        state = "silent" if not one.alarms else "ALARM"
        state += "" if one.answered else ", unanswered"
    else:
        state = "found" if one.found else "missed"
        if one.found and not one.at_its_line and not one.entry.is_run:
            state = "elsewhere"
    parts = [f"{one.seconds:5.1f} s", one.entry.name, one.entry.expected, state, one.repair]
    parts += [f"also {' '.join(one.others)}" if one.others else ""]
    parts += [f"twin: {' '.join(one.alarms)}" if one.alarms else ""]
    parts += ["" if one.judged else "twin not judged"]
    if not one.found and not one.entry.is_question:
        parts += [f"said {' '.join(f'{s.code}@{s.first}' for s in one.said)}", *one.skipped]
    return "  ".join(part for part in parts if part)


@dataclass(frozen=True)
class Counts:
    """What there is to count, of faults and of questions."""

    faults: int
    found: int
    scripts: int
    hits: int
    """Faults that were found in scripts."""
    placed: int
    repaired: int
    questions: int
    answered: int
    blamed: int = 0
    """Healthy twins and questions with an error or a warning."""

    @property
    def table(self) -> str:
        """The Markdown of the README."""
        runs, whole = self.faults - self.scripts, self.faults + self.questions
        rows = [
            ("faults found", share(self.found, self.faults)),
            ("… in scripts", share(self.hits, self.scripts)),
            ("… in logs, records and dumps", share(self.found - self.hits, runs)),
            ("of those in scripts, at their line", share(self.placed, self.hits)),
            ("of those in scripts, repaired and verified", share(self.repaired, self.hits)),
            ("healthy twins and questions blamed", f"{self.blamed} of {whole}"),
            ("questions answered", share(self.answered, self.questions)),
        ]  # fmt: skip
        head = "| public reports, rebuilt | |\n|---|---|\n"
        return head + "\n".join(f"| {name} | {value} |" for name, value in rows)


def counted(verdicts: Iterable[Verdict]) -> Counts:
    """What came of a run."""
    every = list(verdicts)
    asked = [v for v in every if v.entry.is_question]
    faults = [v for v in every if not v.entry.is_question]
    hits = [v for v in faults if v.found and not v.entry.is_run]
    return Counts(
        faults=len(faults),
        found=sum(v.found for v in faults),
        scripts=sum(not v.entry.is_run for v in faults),
        hits=len(hits),
        placed=sum(v.at_its_line for v in hits),
        repaired=sum(v.repair == "verified" for v in hits),
        questions=len(asked),
        answered=sum(v.answered for v in asked),
        blamed=sum(bool(v.alarms) for v in every),
    )


def stated(entries: Iterable[Entry]) -> Counts:
    """What the headers say comes of a run; each is a test of `tests/test_public_faults.py`."""
    every = list(entries)
    faults = [e for e in every if not e.is_question]
    hits = [e for e in faults if not e.missed and not e.is_run]
    asked = [e for e in every if e.is_question]
    return Counts(
        faults=len(faults),
        found=sum(not e.missed for e in faults),
        scripts=sum(not e.is_run for e in faults),
        hits=len(hits),
        placed=len(hits),
        repaired=sum("repair" in e.fields for e in hits),
        questions=len(asked),
        answered=sum(not e.missed for e in asked),
    )


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "none"


def middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0


def missed(found: Iterable[Verdict]) -> str:
    """The entries that were not found, by reason."""
    lines = [
        f"- {v.entry.number} ({v.entry.fields['source']}): {v.entry.missed or 'new'}"
        for v in found
        if not v.entry.is_question and not v.found
    ]
    reasons = Counter(text.split(": ", 1)[1].split(":")[0] for text in lines)
    return "\n".join([f"missed: {dict(reasons)}", *lines])


def manifest(entries: Iterable[Entry]) -> str:
    """One line an entry, from the headers."""
    rows = [f"| {e.number} | {e.fields['source']} | {e.expected} | {e.missed} |" for e in entries]
    return "\n".join(["| entry | source | expected | missed |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    wanted = every(tuple(a for a in sys.argv[1:] if not a.startswith("--")))
    if "--list" in sys.argv:
        print(manifest(wanted))
    else:
        fixing = "--fix" in sys.argv
        judged = verdicts(wanted, fix=fixing)
        scripts = [v.seconds for v in judged if not v.entry.is_run]
        print(f"\n{missed(judged)}\n\n{counted(judged).table}")
        print(f"\n{middle(scripts):.1f} s for a script and its twin (median)")
