"""One entry of the corpus: a file of `cases/`, its header, the place of its fault, its twin.

The file is the faulty script as it is. Its header says what it stands for:

    # entry: B003                         (Q… for a question about something that is no fault)
    # source: owner/repo#123              (where it was reported)
    # expect: ADV001                      (the code that names it; `any` if the catalogue has none;
                                           `silent` for a question)
    # also: MET001                        (other codes that are true of it)
    # missed: no code: why                (known not to be found, and why)
    # repair: verified                    (`--fix` finds an edit and verifies it)
    # answer: QST001 words to be said     (the page, or the finding, that answers a question)
    # kind: run                           (the file writes a log, records or a dump to `PATH`)
    # facts: updates=1, objective=grpo    (what is declared to `inspect`)

A line that ends in `# <- fault` has the fault and goes in the healthy twin; `# <- drop` only goes;
`# <- here` has the fault (something is missing) and stays. `# twin: code` is code of the twin.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "cases"
REASONS = ("no code", "not recognised", "not reached", "needs a run", "undecided")
"""Why an entry is missed: the catalogue has no such fault; the function is not taken for one;
no probe shows it; a script alone can't show it; the tool says that it doesn't know."""
_KEYS = {"entry", "source", "expect", "also", "missed", "repair", "answer", "kind", "facts"}
_FIELD = re.compile(r"# (\w+): (.+)")
_MARK = re.compile(r"\s*# <- (fault|drop|here)$")
_TWIN = re.compile(r"^(\s*)# twin: ?")


@dataclass(frozen=True)
class Entry:
    """A public report, rebuilt."""

    name: str
    text: str
    fields: Mapping[str, str]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.py"

    @property
    def number(self) -> str:
        return self.fields["entry"]

    @property
    def expected(self) -> str:
        return self.fields["expect"]

    @property
    def also(self) -> frozenset[str]:
        return frozenset(self.fields.get("also", "").split())

    @property
    def missed(self) -> str:
        """Why it is known not to be found; empty where it is."""
        return self.fields.get("missed", "")

    @property
    def is_question(self) -> bool:
        return self.expected == "silent"

    @property
    def is_run(self) -> bool:
        return self.fields.get("kind") == "run"

    @property
    def facts(self) -> tuple[str, ...]:
        return tuple(f.strip() for f in self.fields.get("facts", "").split(",") if f.strip())

    @property
    def lines(self) -> tuple[int, ...]:
        """Where the fault is."""
        found = enumerate(map(_MARK.search, self.text.split("\n")), 1)
        return tuple(line for line, mark in found if mark and mark[1] != "drop")

    @property
    def unmarked(self) -> tuple[str, list[int]]:
        """The faulty file as if there were no corpus: without marks and twin, and its lines."""
        kept = [line for line in self.text.split("\n") if not _TWIN.match(line)]
        marks = [_MARK.search(line) for line in kept]
        lines = [n for n, mark in enumerate(marks, 1) if mark and mark[1] != "drop"]
        return "\n".join(_MARK.sub("", line) for line in kept), lines

    @property
    def twin(self) -> str:
        """The same without the fault."""
        kept = []
        for line in self.text.split("\n"):
            mark = _MARK.search(line)
            if mark and mark[1] != "here":
                continue
            kept.append(_TWIN.sub(r"\1", _MARK.sub("", line)))
        return "\n".join(kept)


def parse(name: str, text: str) -> Entry:
    """An entry from its file.

    Raises:
        ValueError: the header is not as it should be.
    """
    fields = {}
    for line in text.split("\n"):
        if not (found := _FIELD.fullmatch(line)):
            break
        fields[found[1]] = found[2]
    if not {"entry", "source", "expect"} <= set(fields) <= _KEYS:
        raise ValueError(f"{name}: keys {sorted(fields)}, known {sorted(_KEYS)}")
    if "missed" in fields and fields["missed"].split(":")[0] not in REASONS:
        raise ValueError(f"{name}: missed for {fields['missed']!r}; reasons are {REASONS}")
    entry = Entry(name, text, fields)
    if not entry.is_question and not entry.is_run and not entry.lines:
        raise ValueError(f"{name}: no line is marked")
    if not entry.is_question and entry.twin == text:
        raise ValueError(f"{name}: no twin")
    return entry


def every(names: tuple[str, ...] = ()) -> list[Entry]:
    """All entries by name, or those whose name has one of these in it."""
    paths = sorted(FOLDER.glob("*.py"))
    chosen = [p for p in paths if not names or any(name in p.stem for name in names)]
    return [parse(path.stem, path.read_text("utf-8")) for path in chosen]
