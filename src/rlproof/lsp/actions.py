"""Code actions: verified repairs, edits that were not executed and say so, and ignores.

A repair is verified as a whole: its edits together leave no fault. So the edit of one finding is
called verified only where it is all there is to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lsprotocol import types

from rlproof.judge.findings import FileReport, Finding, Fix, FixStatus, Repair
from rlproof.lsp.checking import Checked
from rlproof.lsp.diagnostics import diagnostic
from rlproof.lsp.text import Text, share_a_line
from rlproof.repair import files
from rlproof.repair.accept import accepting
from rlproof.repair.lines import WriteError

Edits = Sequence[types.TextEdit]
Change = Callable[[Edits], types.WorkspaceEdit]
FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.rlproof"


def actions(
    known: Checked,
    params: types.CodeActionParams,
    text: Text,
    change: Change,
) -> list[types.CodeAction]:
    """What can be done about the findings on some lines, of the kinds that are asked for.

    Args:
        known: what was found in this very text.
        params: the client's request.
        text: the text.
        change: puts edits of the document into the form that the client takes.
    """
    report, only = known.report, params.context.only
    if report is None:
        return []
    uri = params.text_document.uri
    here = [
        (finding, shown)
        for finding in report.findings
        if share_a_line((shown := diagnostic(report, finding, uri, text)).range, params.range)
    ]
    whole = _whole(report, text)
    found = [*_repairs(report, here, whole, text, change), *_ignores(known, here, text, change)]
    if whole and only and report.repair:
        title = f"Repair the file ({report.repair.said})"
        found.append(types.CodeAction(title, FIX_ALL, edit=change(whole)))
    return [one for one in found if _wanted(str(one.kind), only)]


def _wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Kinds are a hierarchy: `source` asks for `source.fixAll.rlproof` too."""
    asked = [str(getattr(one, "value", one)) for one in only or ()]
    return not asked or any(kind == one or kind.startswith(f"{one}.") for one in asked)


def _whole(report: FileReport, text: Text) -> list[types.TextEdit]:
    """The repair of the file, if it was verified."""
    if not _is_verified(report.repair):
        return []
    assert report.repair is not None
    try:
        after = files.of_text(report.path, text.whole).edited(report.repair.text)
    except WriteError:
        return []
    return list(text.edits_to(after.decode()))


def _is_verified(repair: Repair | None) -> bool:
    return repair is not None and repair.status is FixStatus.VERIFIED


def _repairs(
    report: FileReport,
    here: Sequence[tuple[Finding, types.Diagnostic]],
    whole: Edits,
    text: Text,
    change: Change,
) -> Iterator[types.CodeAction]:
    verified = [f for f in report.findings if f.fix and f.fix.status is FixStatus.VERIFIED]
    for finding, shown in here:
        fix = finding.fix
        if fix is None:
            continue
        if finding in verified and whole and report.repair:
            title = fix.label if len(verified) == 1 else f"Repair all {len(verified)} findings"
            title = f"{title} ({report.repair.said})"
            yield _quick(title, shown, change(whole), preferred=True)
        if fix.replacements and not (finding in verified and len(verified) == 1):
            edits = [text.edit(one) for one in fix.replacements]
            yield _quick(f"{fix.label} ({_level(fix)})", shown, change(edits))


def _level(fix: Fix) -> str:
    """How much was executed of this edit alone."""
    if fix.status is FixStatus.VERIFIED:
        return "this edit alone: not verified"
    return "suggested: not verified"


def _ignores(
    known: Checked,
    here: Sequence[tuple[Finding, types.Diagnostic]],
    text: Text,
    change: Change,
) -> Iterator[types.CodeAction]:
    assert known.script is not None
    for finding, shown in here:
        if comment := accepting(known.script.source, finding):
            title = f"Ignore {finding.code} on this line"
            yield _quick(title, shown, change([text.edit(comment)]))


def _quick(
    title: str, shown: types.Diagnostic, edit: types.WorkspaceEdit, *, preferred: bool = False
) -> types.CodeAction:
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[shown],
        is_preferred=preferred or None,
        edit=edit,
    )
