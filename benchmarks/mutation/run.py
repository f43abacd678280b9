"""What `check` says of slips in healthy code: named, seen, or survived.

    python -m benchmarks.mutation.run [--every N] [--slips N] [--pairs K] [--to FILE] [NAME…]

Each slip is judged alone; of each file, K pairs of slips that were named alone are judged together.
`--every N` takes every N-th file, `--slips N` every N-th slip of a file.
`--to FILE` writes each result as a line of JSON. States:

- named: an error or a warning that the healthy file does not have;
- note: only a note more;
- other objective: nothing is blamed, but what the function computes is given another name;
- unknown: nothing is blamed, and the report says that it doesn't know what is computed;
- stopped: the function no longer answers, and the report says so;
- survived: the report is that of the healthy file.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.mutation.healthy import judged, texts
from benchmarks.mutation.operators import OPERATORS, Mutant, mutants
from tests.support.warm import warm_children

from rlproof.errors import RlproofError
from rlproof.faults.model import Severity
from rlproof.judge.check import check
from rlproof.judge.findings import FileReport
from rlproof.read.script import read

STATES = ("named", "note", "other objective", "unknown", "stopped", "survived")


def state(healthy: FileReport, mutant: FileReport) -> str:
    """What a slip changed in the report."""
    for strong in (True, False):
        before, after = _codes(healthy, strong), _codes(mutant, strong)
        if after - before:
            return "named" if strong else "note"
    if skipped := _skipped(mutant) - _skipped(healthy):
        return "unknown" if any("identifying" in check for check in skipped) else "stopped"
    if _points(mutant) != _points(healthy):
        known = all(t.objective for t in mutant.targets if t.role == "loss")
        return "other objective" if known else "unknown"
    return "survived"


def _codes(report: FileReport, strong: bool) -> Counter[str]:
    return Counter(
        f.code for f in report.findings if (f.severity is not Severity.NOTE) is strong
    )  # fmt: skip


def _skipped(report: FileReport) -> set[str]:
    return {s.check for s in report.skipped}


def _points(report: FileReport) -> list[tuple[object, ...]]:
    return [
        (t.role, t.name, t.recipe, sorted((k, _rounded(v)) for k, v in t.objective.items()))
        for t in report.targets
    ]


def _rounded(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def judge(text: str, path: Path) -> FileReport | None:
    """The report of a text; None where it is refused as a whole."""
    path.write_text(text, encoding="utf-8")
    try:
        return check(read(str(path)))
    except RlproofError:
        return None


def study(
    name: str, text: str, path: Path, *, pairs: int, slips: int
) -> Iterator[dict[str, object]]:
    """The slips of one file, then pairs of those that were named."""
    healthy = judge(text, path)
    if healthy is None or _codes(healthy, True):
        return
    named: list[Mutant] = []
    for one in mutants(text, judged(path))[::slips]:
        report = judge(one.of(text), path)
        came = "stopped" if report is None else state(healthy, report)
        named += [one] if came == "named" else []
        yield _result(name, text, [one], came)
    for one, other in _sample(name, named, pairs):
        report = judge(one.of(other.of(text)), path)  # the later one first: offsets stay
        came = "stopped" if report is None else state(healthy, report)
        yield _result(name, text, [one, other], came)


def _sample(name: str, named: list[Mutant], pairs: int) -> list[tuple[Mutant, Mutant]]:
    """Pairs of slips in places apart, the same in every run."""
    apart = [
        (a, b) for a, b in combinations(sorted(named, key=lambda m: m.start), 2) if a.end <= b.start
    ]
    return random.Random(zlib.crc32(name.encode())).sample(apart, min(pairs, len(apart)))


def _result(name: str, text: str, made: list[Mutant], came: str) -> dict[str, object]:
    data = text.encode()
    return {
        "file": name, "operator": " and ".join(m.operator for m in made), "state": came,
        "edits": [
            [m.line, re.sub(r"\s+", " ", data[m.start : m.end].decode()), m.new] for m in made
        ],
    }  # fmt: skip


def table(results: list[dict[str, object]]) -> str:
    """One row an operator, one for the pairs."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        pair = " and " in str(result["operator"])
        counts["pairs" if pair else str(result["operator"])][str(result["state"])] += 1
        if not pair:
            counts["all single slips"][str(result["state"])] += 1
    rows = [f"| slip | slips | {' | '.join(STATES)} |", f"|---{'|---' * 7}|"]
    for name in [*OPERATORS, "all single slips", "pairs"]:
        if total := counts[name].total():
            shares = " | ".join(f"{counts[name][s] / total:.0%}" for s in STATES)
            rows.append(f"| {name} | {total} | {shares} |")
    return "\n".join(rows)


def main() -> None:
    options = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    step, slips, pairs = (
        int(options.get(name, default))
        for name, default in (("--every", 1), ("--slips", 1), ("--pairs", 2))
    )
    values = {options[k] for k in ("--every", "--slips", "--pairs", "--to") if k in options}
    names = [a for a in sys.argv[1:] if not a.startswith("--") and a not in values]
    known = texts()
    chosen = [n for n in list(known)[::step] if not names or any(part in n for part in names)]
    log = open(options["--to"], "w") if "--to" in options else None  # noqa: SIM115
    results: list[dict[str, object]] = []
    begun = time.perf_counter()
    with warm_children(), TemporaryDirectory() as folder:
        for name in chosen:
            for result in study(
                name, known[name], Path(folder) / "script.py", pairs=pairs, slips=slips
            ):
                results.append(result)
                if log:
                    print(json.dumps(result, ensure_ascii=False), file=log, flush=True)
    print(table(results))
    seconds = time.perf_counter() - begun
    print(f"\n{len(chosen)} files, {len(results)} slips judged in {seconds:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
