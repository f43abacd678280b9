"""What else a user has, on the same entries: ruff, pylint, polgrad, rldoctor.

    python -m benchmarks.public_faults.others [NAME=PYTHON …]

NAME=PYTHON is an interpreter that has ruff and pylint (`linters`), polgrad and torch (`polgrad`),
rldoctor (`rldoctor`); without it, that tool is left out. A linter is shown scripts, polgrad losses
on torch tensors that fit its arguments, rldoctor logs of one row of numbers a step.

**Told apart**, which is generous: the faulty file has a message that its twin lacks, whatever it
says; of a linter at the fault's line, one more or less.
polgrad is told the role of each parameter as rlproof reads it, and not the objective: a file is
told apart if its twin conforms to one of polgrad's configurations and it conforms to none.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.public_faults.judging import SLACK
from benchmarks.public_faults.reading import Entry, every

from rlproof.read.script import read
from rlproof.read.targets import Role

FEEDS = Path(__file__).with_name("feeds.py")
LINTERS = {
    "ruff, default rules": ["ruff", "check", "--isolated", "--output-format=json"],
    "ruff, all rules": ["ruff", "check", "--isolated", "--output-format=json", "--select=ALL"],
    "pylint, errors and warnings": ["pylint", "--disable=all", "--enable=E,W", "-f", "json"],
    "pylint, all messages": ["pylint", "--enable-all-extensions", "-f", "json"],
}
Messages = list[tuple[int, str]]


def linted(python: str, command: list[str], folder: Path) -> dict[str, Messages]:
    """Line and rule of every message, by file."""
    paths = sorted(map(str, folder.glob("*.py")))
    done = subprocess.run([python, "-m", *command, *paths], capture_output=True, text=True)
    found: dict[str, Messages] = {path: [] for path in paths}
    for one in json.loads(done.stdout or "[]"):
        path = str(folder / Path(one.get("filename") or one["path"]).name)
        line = one["location"]["row"] if "location" in one else one["line"]
        found[path].append((line, str(one.get("code") or one.get("symbol"))))
    return found


def apart(entry: Entry, bad: Messages, twin: Messages) -> bool:
    """Whether a message at the fault is one that the twin lacks."""
    _, lines = entry.unmarked
    more = Counter(rule for _, rule in bad) - Counter(rule for _, rule in twin)
    return any(rule in more for n, rule in bad if any(abs(n - line) <= SLACK for line in lines))


def row(name: str, shown: int, told: int, noisy: int) -> str:
    return f"| {name} | {shown} | {told} | {noisy} |"


def of_linters(python: str, scripts: list[Entry], folder: Path) -> list[str]:
    for entry in scripts:
        (folder / f"{entry.name}_bad.py").write_text(entry.unmarked[0], "utf-8")
        (folder / f"{entry.name}_twin.py").write_text(entry.twin, "utf-8")
    rows = []
    for name, command in LINTERS.items():
        said = linted(python, command, folder)
        pairs = [
            [said[str(folder / f"{e.name}_{kind}.py")] for kind in ("bad", "twin")] for e in scripts
        ]
        told = sum(apart(e, *pair) for e, pair in zip(scripts, pairs, strict=True))
        rows.append(row(name, len(scripts), told, sum(bool(twin) for _, twin in pairs)))
    return rows


def fed(python: str, name: str, requests: list[dict[str, object]]) -> list[list[str]]:
    """What a tool says to each request, in its own interpreter."""
    done = subprocess.run(
        [python, str(FEEDS), name], input=json.dumps(requests), text=True, capture_output=True
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    answers: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
    return answers


def of_polgrad(python: str, scripts: list[Entry], folder: Path) -> list[str]:
    """For each loss, the configurations that it conforms to."""
    shown, requests = [], []
    for entry in scripts:
        calls = [_call(folder / f"{entry.name}.py", text) for text in (entry.text, entry.twin)]
        if all(calls):
            shown.append(entry)
            requests += calls
    said = fed(python, "polgrad", requests)  # type: ignore[arg-type]
    pairs = list(zip(said[::2], said[1::2], strict=True))
    fits = [pair for pair in pairs if pair[1]]
    return [row("polgrad", len(shown), sum(not bad for bad, _ in fits), len(pairs) - len(fits))]


def _call(path: Path, text: str) -> dict[str, object] | None:
    """The loss of a script and what its parameters are; None where it takes anything else."""
    path.write_text(text, "utf-8")
    losses = [t for t in read(str(path)).of(Role.LOSS) if not t.origin] if "torch" in text else []
    if len(losses) != 1:
        return None
    slots = {p.name: str(p.slot) for p in losses[0].parameters if p.slot or p.required}
    return {"text": text, "function": losses[0].entry, "slots": slots}


def of_rldoctor(python: str, runs: list[Entry], folder: Path) -> list[str]:
    """For each log, its problems."""
    shown, requests = [], []
    for entry in runs:
        paths = [folder / f"{entry.name}_{kind}.jsonl" for kind in ("bad", "twin")]
        for path, text in zip(paths, (entry.text, entry.twin), strict=True):
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, entry.name, "exec"), {"PATH": str(path)})
        if all(map(_is_log, paths)):
            shown.append(entry)
            requests += [{"path": str(path)} for path in paths]
    said = fed(python, "rldoctor", requests)
    pairs = list(zip(said[::2], said[1::2], strict=True))
    told = sum(bool(set(bad) - set(twin)) for bad, twin in pairs)
    return [row("rldoctor", len(shown), told, sum(bool(twin) for _, twin in pairs))]


def _is_log(path: Path) -> bool:
    """Whether every row is numbers and a step."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return all(
        isinstance(r, dict) and all(isinstance(v, int | float | None) for v in r.values())
        for r in rows
    )


def main() -> None:
    pythons = dict(a.split("=", 1) for a in sys.argv[1:])
    entries = [e for e in every() if not e.is_question]
    scripts, runs = [e for e in entries if not e.is_run], [e for e in entries if e.is_run]
    print("| tool | faults shown | told apart | healthy twins with a message |\n|---|---|---|---|")
    steps = (("linters", of_linters, scripts), ("polgrad", of_polgrad, scripts),
             ("rldoctor", of_rldoctor, runs))  # fmt: skip
    for name, step, chosen in steps:
        if name in pythons:
            with TemporaryDirectory() as folder:
                print("\n".join(step(pythons[name], chosen, Path(folder))), flush=True)


if __name__ == "__main__":
    main()
