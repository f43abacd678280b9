"""JUnit XML, as Jenkins, GitLab and Azure read it: a test for each function with a role.

Errors and warnings fail a test, notes are its output, and a function that could not be run is
skipped. There is no clock in it: the same findings give the same bytes. Elements and attributes are
those of `junit-10.xsd` of Jenkins' xunit plugin, which knows no line of a test: lines are in the
text. One `failure` holds all findings of a function, since readers show only the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from rlproof.faults.model import Severity
from rlproof.judge.findings import FileReport
from rlproof.report.bytarget import REST, Part, parts
from rlproof.report.github import relative
from rlproof.report.text import told

_WIDTH = 100
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 can't hold in any spelling (section 2.2, production Char)."""
_KINDS = ("tests", "failures", "errors", "skipped")
Counts = dict[str, int]


def render(
    reports: Sequence[FileReport],
    sources: Mapping[str, Sequence[str]],
    failures: Sequence[str] = (),
) -> str:
    """The whole report as one XML document.

    Args:
        reports: what was found, file by file.
        sources: the lines of each file, by path.
        failures: one line for each file that could not be checked: a test that has an error.
    """
    suites = [_suite(report, sources[report.path]) for report in reports]
    if failures:
        suites.append(_unread(failures))
    total = {kind: sum(counts[kind] for counts, _ in suites) for kind in _KINDS}
    rows = [row for _, suite in suites for row in suite]
    del total["skipped"]  # the schema has it for a suite alone
    head = f"<testsuites{_attributes({'name': 'rlproof', **total})}>"
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *rows, "</testsuites>", ""])


def _suite(report: FileReport, lines: Sequence[str]) -> tuple[Counts, list[str]]:
    found = [p for p in parts(report) if p.name != REST or p.findings or p.skipped]
    counts = {
        "tests": len(found),
        "failures": sum(bool(part.strong) for part in found),
        "errors": 0,
        "skipped": sum(_is_skipped(part) for part in found),
    }
    cases = [row for part in found for row in _case(report, part, lines)]
    path = relative(report.path)
    head = f"  <testsuite{_attributes({'name': path, **counts, 'file': path})}>"
    return counts, [head, *cases, "  </testsuite>"]


def _case(report: FileReport, part: Part, lines: Sequence[str]) -> Iterator[str]:
    path = relative(report.path)
    yield f"    <testcase{_attributes({'name': part.name, 'classname': path})}>"
    if part.strong:
        codes = ", ".join(dict.fromkeys(f.code for f in part.strong))
        said = {"message": "; ".join(f.message for f in part.strong), "type": codes}
        text = told(report, part.strong, lines, _WIDTH)
        yield f"      <failure{_attributes(said)}>{_text(text)}</failure>"
    elif _is_skipped(part):
        yield f"      <skipped{_attributes({'message': _reasons(part)})}/>"
    if output := "\n".join(_output(report, part, lines)):
        yield f"      <system-out>{_text(output)}</system-out>"
    yield "    </testcase>"


def _output(report: FileReport, part: Part, lines: Sequence[str]) -> Iterator[str]:
    notes = [f for f in part.findings if f.severity is Severity.NOTE]
    if notes:
        yield told(report, notes, lines, _WIDTH)
    if part.strong or not _is_skipped(part):
        yield from (f"skipped {s.check}: {s.reason}" for s in part.skipped)


def _is_skipped(part: Part) -> bool:
    """Whether nothing was found out; of the rest of a file, whether there is nothing else."""
    idle = part.name == REST and bool(part.skipped) and not part.findings
    return not part.strong and (bool(part.unrun) or idle)


def _reasons(part: Part) -> str:
    return part.unrun or "; ".join(f"{s.check}: {s.reason}" for s in part.skipped)


def _unread(failures: Sequence[str]) -> tuple[Counts, list[str]]:
    counts = {"tests": len(failures), "failures": 0, "errors": len(failures), "skipped": 0}
    rows = [f"  <testsuite{_attributes({'name': 'files that could not be checked', **counts})}>"]
    for number, line in enumerate(failures, 1):
        said = _attributes({"message": line, "type": "unreadable"})
        rows += [
            f"    <testcase{_attributes({'name': f'file {number}', 'classname': 'rlproof'})}>",
            f"      <error{said}>{_text(line)}</error>",
            "    </testcase>",
        ]
    return counts, [*rows, "  </testsuite>"]


def _attributes(values: Mapping[str, str | int]) -> str:
    return "".join(f" {key}={_quoted(str(value))}" for key, value in values.items())


def _quoted(text: str) -> str:
    spelt = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
    return quoteattr(_allowed(text), spelt)


def _text(text: str) -> str:
    return escape(_allowed(text), {"\r": "&#13;"})


def _allowed(text: str) -> str:
    r"""The text with every character that XML forbids spelt out: an escape byte as `\x1b`."""
    return _FORBIDDEN.sub(lambda found: ascii(found[0])[1:-1], text)
