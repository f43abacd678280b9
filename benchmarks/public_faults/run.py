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


def table(found: Iterable[Verdict], *, fix: bool) -> str:
    """The Markdown of the README."""
    faults = [v for v in found if not v.entry.is_question]
    questions = [v for v in found if v.entry.is_question]
    scripts = [v for v in faults if not v.entry.is_run]
    hits = [v for v in scripts if v.found]
    repaired = [v for v in hits if v.repair == "verified"]
    rows = [
        ("faults found", share(sum(v.found for v in faults), len(faults))),
        ("… in scripts", share(len(hits), len(scripts))),
        ("… in logs, records and dumps", share(
            sum(v.found for v in faults if v.entry.is_run), len(faults) - len(scripts))),
        ("of those found in scripts, at their line", share(
            sum(v.at_its_line for v in hits), len(hits))),
    ]  # fmt: skip
    if fix:
        rows += [("of those found in scripts, repaired and verified", share(
            len(repaired), len(hits)))]  # fmt: skip
    rows += [
        ("healthy twins with an error or a warning", of_all([v.alarms for v in faults])),
        ("questions with an error or a warning", of_all([v.alarms for v in questions])),
        ("questions answered", share(sum(v.answered for v in questions), len(questions))),
        ("seconds for a file and its twin", f"{middle([v.seconds for v in scripts]):.1f}"),
    ]
    head = "| public reports, rebuilt | |\n|---|---|\n"
    return head + "\n".join(f"| {name} | {value} |" for name, value in rows)


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "none"


def of_all(alarms: list[list[str]]) -> str:
    return f"{sum(map(bool, alarms))} of {len(alarms)}"


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
        print(f"\n{missed(judged)}\n\n{table(judged, fix=fixing)}")
