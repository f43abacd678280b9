"""rldoctor, rlprobe and rlwatch beside `rlproof inspect`, on the same runs.

    python benchmarks/rivals.py [--seeds N] [--subsets] [--show] [NAME=PYTHON ...]

NAME=PYTHON is a rival and the interpreter that has it; without any, each is installed into an
environment of its own. Runs: the right trainers (`rlproof.tiny`, and that of
`tests/support/trainers.py`), and the latter with each of its seven faults alone, 60 and 300 steps,
N seeds (3); `--subsets` takes all 127 sets of faults, 60 steps, one seed, instead.

A **true find** is a fault that is there and is named by an alarm of warning or above. What names a
fault, for rivals: any of its words (`NAMES`) in anything that the alarm says, advice included,
which is generous. For rlproof: the code of the fault among those of the finding; of a rule for logs
the first only, and LOG015, the collapse of a reward, names nothing: it lists what might be.
**Told apart** is a broken run with an alarm of a kind that the right run of the same trainer,
length and seed lacks, whatever it says.
A **false alarm** is a right run with an alarm of warning or above, whatever it says.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean, median, pstdev

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.trainers import FAULTS, LETTERS, trainer
from tests.support.watching import FACTS, Logbook, broken_run, tiny_run

from rlproof.faults.model import Severity
from rlproof.watch.command import inspect_path

FEED = str(Path(__file__).with_name("rivals_feed.py").resolve())
RIVALS = {"rldoctor": "rldoctor==0.2.0", "rlprobe": "rlprobe==0.1.0", "rlwatch": "rlwatch==0.5.1"}
DECLARED = (*(f"{k}={v}" for k, v in FACTS.items()), "vocabulary=4", "updates=2", "estimator=k3")
NAMES = {
    "G": r"per.?group (mean|normal|baseline|std)|within (each|its|the) group"
         r"|over the (whole )?batch|batch (mean|std|statistics)"
         r"|normali[sz](ed?|ation) (across|over)|advantage normali[sz]|normali[sz]ing advantages",
    "E": r"\beps(ilon)?\b|divi\w+ by (zero|0)",
    "R": r"exp\(|exponentiate|ratio of log|log-?ratio|quotient|ratio (is|formula|computation)",
    "M": r"\bmax for min|\bmin\(|\bmax\(|pessimistic|optimistic|clip.{0,20}(inverted|wrong side)",
    "S": r"\bsign\b|ascen[dt]|negat(e|ion)|minus|wrong direction|inverted (loss|objective)",
    "K": r"\bmask|padding|\bpads?\b",
    "O": r"old.?log.?prob|old.?polic|behaviou?r polic|ratio.{0,20}(identically|always|exactly) 1"
         r"|recomput",
}  # fmt: skip


class Feed(Logbook):
    """A logbook that also keeps what rivals can take."""

    def __init__(self, folder):
        super().__init__(folder, 4, FACTS)
        self.settings = {"group_size": 8, "beta": 0.04, "clip": 0.2, "lr": 2.0, "epochs": 2}
        self.theta = None

    def begin(self, rewards, adv, group_size):
        super().begin(rewards, adv, group_size)
        groups = [rewards[i : i + group_size] for i in range(0, len(rewards), group_size)]
        self.rows[-1]["raw"] = {
            "rewards": list(map(float, rewards)),
            "advantages": list(map(float, adv)),
            "adv_zero": fmean(float(abs(a) < 1e-8) for a in adv),
            "group_std": fmean(map(pstdev, groups)),
        }

    def update(self, number, new, old, ref, mask, loss, **more):
        super().update(number, new, old, ref, mask, loss, **more)
        lengths = [int(sum(row)) for row in mask]
        real = [(i, t) for i, row in enumerate(mask) for t, m in enumerate(row) if m]
        self.settings |= {"rows": len(mask), "max_len": len(mask[0])}
        raw = self.rows[-1]["raw"]
        raw |= {"lengths": lengths, "length": fmean(lengths), "length_max": max(lengths),
                "ratio": fmean(2.718281828459045 ** (new[i][t] - old[i][t]) for i, t in real),
                "logp": fmean(new[i][t] for i, t in real)}  # fmt: skip

    def watch(self, space):
        """Norm of the gradient of the first update, and entropy of the policy, as `tiny_run`."""
        gradient, softmax = space["numeric_grad"], space["log_softmax"]

        def numeric_grad(f, theta, *rest):
            grad = gradient(f, theta, *rest)
            row = self.rows[-1]
            if "grad_norm" not in row:
                row["grad_norm"] = sum(g * g for line in grad for g in line) ** 0.5
                tables = [softmax(line) for line in theta]
                row["entropy"] = fmean(-sum(2.718281828459045**x * x for x in t) for t in tables)
            return grad

        space["numeric_grad"] = numeric_grad

    def finish(self, crash):
        """The log without what only rivals read, and a file for them."""
        whole = [row for row in self.rows if "lengths" in row["raw"]]
        self.feed = self.log.with_name("feed.jsonl")
        steps = [{k: v for k, v in row.items() if k != "raw"} | row["raw"] for row in whole]
        settings = self.settings | {"crash": "" if crash is None else repr(crash)}
        self.feed.write_text("".join(json.dumps(s) + "\n" for s in [settings, *steps]))
        rows = [{k: v for k, v in row.items() if k != "raw"} for row in whole]
        self.log.write_text("".join(json.dumps(row) + "\n" for row in rows))


@dataclass(frozen=True, eq=False)
class Run:
    """One training and its files."""

    letters: str
    """Its faults."""
    steps: int
    """As asked for; a crash ends it earlier."""
    seed: int
    tiny: bool
    book: Feed


def runs(folder: Path, seeds: int, subsets: bool) -> list[Run]:
    """All trainings, done here."""
    if subsets:
        wanted = [("".join(c), 60, 0) for n in range(1, 8) for c in combinations(LETTERS, n)]
        wanted += [("", 60, seed) for seed in range(seeds)]
    else:
        wanted = [
            (letters, steps, seed)
            for letters in ("tiny", "", *LETTERS)
            for steps in (60, 300)
            for seed in range(seeds)
        ]
    made = []
    for number, (letters, steps, seed) in enumerate(wanted):
        place = folder / str(number)
        place.mkdir()
        book, crash = Feed(place), None
        if letters == "tiny":
            tiny_run(place, steps, seed, book=book)
        else:
            fixes = "".join(set(LETTERS) - set(letters)) + "C"
            _, crash = broken_run(place, trainer(fixes), steps, seed=seed, book=book)
        book.finish(crash)
        made.append(Run(letters.replace("tiny", ""), steps, seed, letters == "tiny", book))
    return made


def ask(name: str, python: str, books: list[Feed]) -> list[tuple[float, list[list]]]:
    """What a rival says to each run: seconds, and alarms of warning and above."""
    paths = "\n".join(str(book.feed) for book in books)
    done = subprocess.run(
        [python, FEED, name], input=paths, text=True,
        capture_output=True, cwd=books[0].log.parent,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    return [(one["seconds"], [a for a in one["alarms"] if a[0]]) for one in said]


def own(book: Feed, records: bool) -> tuple[float, list[list]]:
    """The same of `rlproof inspect`: of the log, and of the recorded steps where wanted."""
    start, found = time.perf_counter(), []
    for path in (book.log, book.records) if records else (book.log,):
        if not path.exists() or not path.stat().st_size:
            continue
        for f in inspect_path(str(path), DECLARED).findings:
            if f.severity is not Severity.NOTE:
                codes = f.faults if f.rule.about == "step" else f.faults[:1]
                codes = () if f.rule.code == "LOG015" else codes
                found.append([1, f.rule.code, " ".join(codes)])
    return time.perf_counter() - start, found


def named(tool: str, letter: str, alarms: list[list]) -> bool:
    """Whether one of the alarms names this fault."""
    if tool.startswith("rlproof"):
        return any(set(FAULTS[letter]) & set(text.split()) for _, _, text in alarms)
    return any(re.search(NAMES[letter], text, re.I) for _, _, text in alarms)


def install(folder: Path) -> dict[str, str]:
    """An environment for each rival."""
    made = {}
    for name, requirement in RIVALS.items():
        venv.create(folder / name, with_pip=True)
        made[name] = str(folder / name / "bin" / "python")
        subprocess.run([made[name], "-m", "pip", "install", "-q", "numpy", requirement], check=True)
    return made


def table(tool: str, made: list[Run], said: list[tuple[float, list[list]]]) -> str:
    """One row."""
    pairs = [(run, alarms) for run, (_, alarms) in zip(made, said, strict=True)]
    broken = [(run, alarms) for run, alarms in pairs if run.letters]
    kinds = {
        (run.steps, run.seed): {name for _, name, _ in alarms}
        for run, alarms in pairs if not run.letters and not run.tiny
    }  # fmt: skip
    apart = sum(bool({name for _, name, _ in a} - kinds[run.steps, run.seed]) for run, a in broken)
    hits = {k: [named(tool, k, a) for run, a in broken if k in run.letters] for k in LETTERS}
    wrong = [named(tool, k, a) for run, a in broken for k in LETTERS if k not in run.letters]
    right = [
        [bool(a) for run, a in pairs if not run.letters and run.steps == steps]
        for steps in (60, 300)
    ]
    cells = [
        tool,
        _share([hit for one in hits.values() for hit in one]),
        " ".join(f"{k}\u202f{sum(one)}" for k, one in hits.items()),
        str(sum(wrong)),
        f"{apart} of {len(broken)}",
        _share([bool(a) for _, a in broken]),
        *(_share(one) for one in right),
        f"{1000 * median(s for s, _ in said):.0f} ms",
    ]
    return "| " + " | ".join(cells) + " |"


def _share(marks: list[bool]) -> str:
    return f"{sum(marks)} of {len(marks)}" if marks else "–"


def main() -> None:
    given = dict(one.split("=", 1) for one in sys.argv[1:] if "=" in one)
    seeds = int(sys.argv[sys.argv.index("--seeds") + 1]) if "--seeds" in sys.argv else 3
    with tempfile.TemporaryDirectory() as made_here:
        folder = Path(made_here)
        (folder / "runs").mkdir()
        given = given or install(folder)
        made = runs(folder / "runs", seeds, "--subsets" in sys.argv)
        books = [run.book for run in made]
        print("| tool | true finds | by fault | named, not there | told apart | broken runs with "
              "an alarm | right ones, 60 steps | 300 steps | median |")  # fmt: skip
        print("|" + "---|" * 9)
        everything = {
            "rlproof inspect, log": [own(book, False) for book in books],
            "rlproof inspect, log and records": [own(book, True) for book in books],
        }
        everything |= {name: ask(name, python, books) for name, python in given.items()}
        for tool, said in everything.items():
            print(table(tool, made, said), flush=True)
        if "--show" in sys.argv:
            show(made, everything)


def show(made: list[Run], everything: dict) -> None:
    """Every run and the names of its alarms, and the words that counted."""
    for tool, said in everything.items():
        print(f"\n{tool}")
        for run, (_, alarms) in zip(made, said, strict=True):
            words = [
                f"{k}: {m[0]!r}" for k, p in NAMES.items() for a in alarms
                if not tool.startswith("rlproof") and (m := re.search(p, a[2], re.I))
            ]  # fmt: skip
            kinds = [a[1] for a in alarms]
            print(f"  {run.letters or 'right'} {run.steps} {run.seed}: {kinds} {words}")


if __name__ == "__main__":
    main()
