"""`--fix` and `--diff`: a report with what each finding's repair came to, and the file's patch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rlproof.bind.sandbox import DEFAULT_SECONDS
from rlproof.faults.model import Severity
from rlproof.judge.findings import FileReport, Finding, Fix, FixStatus, Repair, Replacement
from rlproof.read.script import read
from rlproof.read.source import shown
from rlproof.read.targets import Script
from rlproof.repair import files
from rlproof.repair.candidates import MAKERS, candidates
from rlproof.repair.covers import Cover
from rlproof.repair.edits.model import ConflictError, Edit, compose, ordered
from rlproof.repair.lines import WriteError
from rlproof.repair.notebooks import RawBook, cells_after, changed_cells
from rlproof.repair.patch import patch
from rlproof.repair.points import key, plain
from rlproof.repair.search import Found, Group, alternatives, edits_of, search, silencing
from rlproof.repair.verify import Verifier, strong

BUDGET = 120.0
"""Seconds for the search in one file."""
MOST = 150
"""Versions of one file that are executed at most."""


def repair(
    script: Script,
    report: FileReport,
    codes: frozenset[str],
    *,
    seconds: float = DEFAULT_SECONDS,
    objective: str | None = None,
    default: str | None = None,
    budget: float = BUDGET,
    offers: bool = True,
    raw: files.AnyRaw | None = None,
    stop: Callable[[], bool] | None = None,
    notes: frozenset[str] = frozenset(),
) -> FileReport:
    """The report with a fix for every finding that has one, and the repair of the whole file.

    Args:
        script: the script as it was read.
        report: what `check` said of it.
        codes: the faults to repair; others may stay.
        seconds: limit for each function of the script.
        objective: the declared recipe.
        default: the recipe of a script that declares none.
        budget: seconds for the whole search.
        offers: whether to look for other sets that are as right.
        raw: the file's bytes; None reads them.
        stop: asked before each version: whether nobody waits for the result any more.
        notes: codes whose notes are repaired too; other notes stay as they are.

    Raises:
        WriteError: the file changed since it was read.
    """
    raw = raw or files.load(script.source)
    asked = strong(report.findings, codes, notes)
    if not asked:
        return report
    limits = (budget, MOST, stop, notes)
    with Verifier(script, report, codes, seconds, objective, default, *limits) as verifier:
        verifier.rehearse()
        found = search(verifier)
        status = _status(found)
        wanted = offers and status is FixStatus.VERIFIED
        rivals = alternatives(verifier, found) if wanted else []
        unrun = {
            number: edit
            for number, finding in enumerate(report.findings)
            if not verifier.proved(finding)
            and finding in asked
            and (edit := silencing(verifier, finding, _own(script, finding)))
        }
    whole_others = tuple((cover.label, _shown(script, raw, text)) for _, cover, text in rivals)
    others = _others(script, rivals)
    done = edits_of(found)
    left = {key(f) for f in found.verdict.left} if found.verdict else set()
    suggested = zip(_with_suggestions(script, report), report.findings, strict=True)
    annotated = tuple(
        replace(finding, fix=_displayed(script, unrun[number], _unproved(verifier, finding)))
        if number in unrun
        else _annotated(script, finding, before in asked, done, left, status, others)
        for number, (finding, before) in enumerate(suggested)
    )
    annotated = tuple(_with_numbers(verifier, finding) for finding in annotated)
    patched = _shown(script, raw, found.text)
    whole = _whole(verifier, asked, found, patched, whole_others)
    return replace(report, findings=annotated, repair=whole)


def _with_numbers(verifier: Verifier, finding: Finding) -> Finding:
    """A finding that a rehearsal proved: with its numbers, and no longer by reading alone."""
    known = verifier.rehearsals.get(key(finding))
    if known is None or known.holds is not False or not finding.by_reading:
        return finding
    return replace(finding, by_reading=False, evidence=known.evidence or finding.evidence)


def _unproved(verifier: Verifier, finding: Finding) -> str:
    """Why a repair of what was found by reading can't be verified."""
    known = verifier.rehearsals.get(key(finding))
    if known is None or known.holds is None:
        return (known.reason if known else "") or "it can't be run here"
    return "executed with stand-ins, it does not show the fault"


def _whole(
    verifier: Verifier,
    asked: Sequence[Finding],
    found: Found,
    patched: str,
    others: tuple[tuple[str, str], ...],
) -> Repair:
    """The repair of the whole file."""
    checks = verifier.checks
    status, verdict = _status(found), found.verdict
    faults = verdict.left if verdict else asked
    message = found.stopped or _why_not(verifier, faults, verdict is not None)
    if verdict is None:
        return Repair(status, found.text, patched, 0, 0, others, message, checks)
    total, passed = verdict.cases.total, verdict.cases.passed
    report = verdict.report
    return Repair(status, found.text, patched, total, passed, others, message, checks, report)


def written(
    script: Script,
    report: FileReport,
    codes: frozenset[str],
    notes: frozenset[str] = frozenset(),
) -> FileReport:
    """Write a verified repair to its file; the report of what the file is now.

    A repair that is not verified as a whole is not written, and the report stays as it is.

    Raises:
        WriteError: the file changed meanwhile or can't be written; it is untouched.
    """
    whole = report.repair
    if whole is None or whole.status is not FixStatus.VERIFIED or whole.after is None:
        return report
    raw = files.load(script.source)
    files.replace(raw, raw.edited(whole.text))
    if read(script.source.path).source.text != whole.text:
        raise WriteError(f"{shown(script.source.path)}: changed while it was being written")
    return replace(whole.after, repair=whole, fixed=strong(report.findings, codes, notes))


def _status(found: Found) -> FixStatus:
    if found.verdict is None:
        return FixStatus.SUGGESTED
    return FixStatus.VERIFIED if found.verdict.accepted else FixStatus.PARTIAL


def _why_not(verifier: Verifier, faults: Sequence[Finding], partly: bool) -> str:
    """What is left, and for each fault why no edit was made for it."""
    reasons: dict[str, list[str]] = {}
    for finding in faults:
        name = f"{finding.code} in {finding.place.function}"
        reasons.setdefault(_reason(verifier, finding), []).append(name)
    said = [f"{', '.join(dict.fromkeys(names))}: {reason}" for reason, names in reasons.items()]
    return ("left: " if partly and said else "") + "; ".join(said)


def _reason(verifier: Verifier, finding: Finding) -> str:
    options = _own(verifier.script, finding)
    if not verifier.proved(finding):
        return f"found by reading, and not verified: {_unproved(verifier, finding)}"
    if finding.code not in MAKERS:
        return "no edit is known for it"
    if not options:
        return "none of its edits fits this code"
    choices = [edit.choice for edit in options if edit.choice]
    return choices[0] if choices else f"{len(options)} edits were tried and none passes"


def _own(script: Script, finding: Finding) -> list[Edit]:
    """The candidates of one finding."""
    return candidates(script, finding, frozenset({finding.code}))


def _displayed(script: Script, edit: Edit, reason: str) -> Fix:
    """An edit that was not verified, for this reason."""
    note = f"its check is silent after this edit, and it is not verified: {reason}"
    diff = _diff(script, script.source.text, edit) or ""
    where = _replacements(script, script.source.text, edit)
    return Fix(FixStatus.SUGGESTED, edit.label, diff, (), note, where)


def _annotated(
    script: Script,
    finding: Finding,
    asked: bool,
    done: list[tuple[str, Edit]],
    left: set[tuple[str, str]],
    status: FixStatus,
    others: dict[tuple[str, str], tuple[str, str]],
) -> Finding:
    """A finding with what became of it in the set that was found."""
    gone = key(finding) not in left
    if not asked or not gone:
        return finding
    if status is FixStatus.SUGGESTED:
        return finding
    for text, edit in done:
        if plain(edit.function) == plain(finding.place.function) and finding.code in edit.covers:
            rival = others.get((finding.place.function, finding.code))
            also = (rival,) if rival else ()
            diff = _diff(script, text, edit) or ""
            where = _replacements(script, text, edit)
            fix = Fix(status, edit.label, diff, also, "", where, edit.chosen)
            return replace(finding, fix=fix)
    return replace(finding, fix=Fix(status, "goes with the other repairs", ""))


def _others(
    script: Script, offers: list[tuple[Group, Cover, str]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """For each fault, by function and code, the edits that would do instead."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for group, cover, _ in offers:
        used = set(group.chosen.edits) if group.chosen else set()
        own = [edit for edit in cover.edits if edit not in used]
        diff = _diff(script, script.source.text, *own)
        label = "; ".join(edit.label for edit in own)
        for code in frozenset[str]().union(*(edit.covers for edit in own)):
            found.setdefault((group.function, code), (label, diff or ""))
    return found


def _sharing(done: list[tuple[str, Edit]], edit: Edit) -> set[str]:
    """The faults of the same function that edits were made for."""
    return {code for _, other in done if other.function == edit.function for code in other.covers}


def bytes_of(script: Script, report: FileReport) -> bytes:
    """The patch of the file as `git apply` takes it; empty where nothing was repaired.

    Raises:
        WriteError: the file changed since it was read.
    """
    if report.repair is None:
        return b""
    raw = files.load(script.source)
    return patch(raw.path, raw.data, raw.edited(report.repair.text))


def suggest(script: Script, report: FileReport) -> FileReport:
    """The report with the likeliest edit on every finding that has one; none is executed."""
    return replace(report, findings=tuple(_with_suggestions(script, report)))


def _with_suggestions(script: Script, report: FileReport) -> Iterator[Finding]:
    strong = [f for f in report.findings if f.severity is not Severity.NOTE]
    for finding in report.findings:
        codes = frozenset(f.code for f in strong if f.place.function == finding.place.function)
        options = candidates(script, finding, codes | {finding.code})
        fixes = (_suggestion(script, edit) for edit in options)
        yield replace(finding, fix=next(filter(None, fixes), None))


def _suggestion(script: Script, edit: Edit) -> Fix | None:
    diff = _diff(script, script.source.text, edit)
    where = _replacements(script, script.source.text, edit)
    if not diff:
        return None
    return Fix(FixStatus.SUGGESTED, edit.label, diff, (), edit.choice, where, edit.chosen)


def _replacements(script: Script, text: str, edit: Edit) -> tuple[Replacement, ...]:
    """The edit as regions of the file, if that is the text it was made to."""
    if text != script.source.text or script.source.cells:
        return ()
    spans: list[tuple[int, int, str]] = []
    for change in ordered([edit]):
        if spans and spans[-1][1] == change.start and (spans[-1][0] == spans[-1][1]):
            spans[-1] = (spans[-1][0], change.stop, spans[-1][2] + change.text)
        else:
            spans.append((change.start, change.stop, change.text))
    return tuple(Replacement(*_spot(text, one), *_spot(text, two), put) for one, two, put in spans)


def _spot(text: str, offset: int) -> tuple[int, int]:
    line = text.count("\n", 0, offset)
    return line + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _diff(script: Script, text: str, *edits: Edit) -> str | None:
    """Some edits alone, as text with plain newlines."""
    try:
        made = compose(text, edits)
        ast.parse(made)
    except (ConflictError, SyntaxError, ValueError):
        return None
    return _readable(script, text, made) or None


def _readable(script: Script, before: str, after: str) -> str:
    """A patch with plain newlines; of a notebook, one of each changed cell."""
    path, cells = script.source.path, script.source.cells
    pairs = [(path, before, after)]
    if cells:
        now = cells_after(script.source.text, cells, before) or cells
        pairs = [
            (f"{path} (cell {number})", _joined(old), _joined(new))
            for number, old, new in changed_cells(before, now, after)
        ]
    made = (patch(name, old.encode(), new.encode()) for name, old, new in pairs)
    if cells:  # git ends a name that has spaces with a tab; no tool is given these
        made = (one.replace(b")\t\n", b")\n", 2) for one in made)
    return b"".join(made).decode(errors="backslashreplace")


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _shown(script: Script, raw: files.AnyRaw, text: str) -> str:
    """The patch of the whole file as text; of a notebook that of its cells."""
    if isinstance(raw, RawBook):
        raw.edited(text)  # refuse now what could not be written
        return _readable(script, script.source.text, text)
    return patch(raw.path, raw.data, raw.edited(text)).decode(raw.encoding, "backslashreplace")
