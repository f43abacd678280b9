"""Known findings: a file of them, so that a check fails on new ones only.

A finding is known by its path (from the folder of the baseline), code, function and the text of
its lines; so it stays known when lines move, and is new when its line is edited. Of several that
are alike, as many are known as were written.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from rlproof.errors import ConfigError
from rlproof.judge.findings import FileReport, Finding
from rlproof.read.source import shown

SCHEMA = 1
_SHOWN = 3
_LINE = re.compile(r"\bline \d+")
Sources = Mapping[str, Sequence[str]]


class Key(NamedTuple):
    """What a finding is known by."""

    path: str
    code: str
    function: str
    text: str
    """A digest of the text of its lines; white space does not count."""


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    path: str
    code: str
    function: str
    text: str
    count: int = 1


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    schema: int
    findings: list[_Entry]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The findings that a file holds, each with how often."""

    path: str
    counts: Mapping[Key, int]

    def applied(
        self, reports: Sequence[FileReport], sources: Sources, codes: frozenset[str], *, run: bool
    ) -> tuple[tuple[FileReport, ...], str]:
        """The reports with known findings set apart, and one line on those that are gone.

        Args:
            reports: what was found.
            sources: the lines of each file.
            codes: the faults that were looked for.
            run: whether functions were executed: if not, nothing is said to be gone.
        """
        left, done = Counter(self.counts), []
        for report in reports:
            new: list[Finding] = []
            known: list[Finding] = []
            for finding in report.findings:
                key = key_of(self.path, report, finding, sources[report.path])
                (known if left[key] > 0 else new).append(finding)
                left[key] -= 1
            done.append(replace(report, findings=tuple(new), known=tuple(known)))
        gone = [
            (key, count)
            for key, count in sorted(left.items())
            if count > 0 and run and key.code in codes and self._is_gone(key, reports)
        ]
        return tuple(done), self._farewell(gone)

    def _is_gone(self, key: Key, reports: Sequence[FileReport]) -> bool:
        """Whether its file is gone, or was checked and nothing about its function was skipped."""
        if not os.path.exists(os.path.join(os.path.dirname(self.path), key.path)):
            return True
        words = set(re.findall(r"\w+", key.function))
        return any(
            _from(self.path, report.path) == key.path
            and not any(words & set(re.findall(r"\w+", skip.check)) for skip in report.skipped)
            for report in reports
        )

    def _farewell(self, gone: Sequence[tuple[Key, int]]) -> str:
        if not gone:
            return ""
        total = sum(count for _, count in gone)
        named = [f"{k.code} in {shown(k.path)} {shown(k.function)}" for k, _ in gone[:_SHOWN]]
        more = ["…"] if len(gone) > _SHOWN else []
        what = "1 finding of it is gone" if total == 1 else f"{total} findings of it are gone"
        forget = f"--write-baseline {shown(self.path)} forgets"
        return f"{shown(self.path)}: {what}: {', '.join(named + more)}; {forget}"


def load(path: str) -> Baseline:
    """Read a baseline.

    Raises:
        ConfigError: no such file, or not one that `--write-baseline` wrote.
    """
    name = shown(path)
    try:
        with open(path, "rb") as file:
            document = msgspec.json.decode(file.read(), type=_Document)
    except FileNotFoundError:
        raise ConfigError(
            f"--baseline {name}: no such file; `rlproof check --write-baseline {name} …` makes one"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(
            f"--baseline {name}: not a baseline that can be read ({reason}); "
            "write it anew with --write-baseline"
        ) from None
    if document.schema != SCHEMA:
        raise ConfigError(
            f"--baseline {name}: schema {document.schema} is not {SCHEMA}; "
            "write it anew with --write-baseline"
        )
    counts: Counter[Key] = Counter()
    for one in document.findings:
        counts[Key(one.path, one.code, one.function, one.text)] += one.count
    return Baseline(path, counts)


def document(path: str, reports: Sequence[FileReport], sources: Sources) -> tuple[str, int]:
    """The text of a baseline of all findings, and how many they are: same input, same bytes."""
    counts = Counter(_keys(path, reports, sources))
    entries = [_Entry(*key, count) for key, count in sorted(counts.items())]
    raw = msgspec.json.encode(_Document(SCHEMA, entries))
    return msgspec.json.format(raw, indent=1).decode() + "\n", counts.total()


def _keys(path: str, reports: Sequence[FileReport], sources: Sources) -> Iterator[Key]:
    for report in reports:
        for finding in report.findings:
            yield key_of(path, report, finding, sources[report.path])


def key_of(baseline: str, report: FileReport, finding: Finding, lines: Sequence[str]) -> Key:
    """What a finding is known by, for a baseline at this path."""
    place = finding.place
    text = "\n".join(" ".join(line.split()) for line in lines[place.line - 1 : place.end_line])
    digest = hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]
    function = _LINE.sub("line", place.function)  # code inline in a loop is called by its line
    return Key(_from(baseline, report.path), finding.code, function, digest)


def _from(baseline: str, path: str) -> str:
    """A path from the folder of the baseline, with slashes, as text."""
    folder = os.path.dirname(os.path.realpath(baseline))
    near = os.path.relpath(os.path.realpath(path), folder)
    return near.replace(os.sep, "/").encode(errors="backslashreplace").decode()
