"""`identify`: every coordinate of every objective, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlproof.judge.findings import FileReport, TargetReport
from rlproof.report.describe import sentence


def table(reports: Sequence[FileReport]) -> str:
    """One block per function that has coordinates, then what could not be identified."""
    return "\n".join(line for report in reports for line in _file(report)) + "\n"


def _file(report: FileReport) -> Iterator[str]:
    for target in report.targets:
        if target.objective:
            yield from _block(f"{report.path}:{report.spot(target.line)}", target)
    for skip in report.skipped:
        yield f"skipped {report.path}: {skip.check}: {skip.reason}"


def _block(where: str, target: TargetReport) -> Iterator[str]:
    yield f"{where}: {target.name} ({target.role})"
    if words := sentence(target):
        yield f"  {words}"
    width = max(map(len, target.objective))
    for axis, value in target.objective.items():
        shown = f"{value:g}" if isinstance(value, float) else value
        yield f"    {axis:<{width}}  {shown}"
    if target.role == "loss":
        yield f"    {'recipe':<{width}}  {target.recipe or 'none of the named ones'}"
