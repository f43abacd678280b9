"""The search for a set of edits after which nothing is wrong with a file.

Faults of different functions are repaired apart from each other, and verified together. First
the cheapest cover of every function at once; then, where that fails, other covers of the
functions that are still wrong; then covers that leave a finding to the repair of another one.
A repair may uncover a fault that a crash had hidden: then the search goes on from there.
Nothing is random, and no reward is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from rlproof.judge.findings import Finding
from rlproof.read.targets import Role
from rlproof.repair.candidates import candidates
from rlproof.repair.covers import Cover, covers, rivals
from rlproof.repair.edits.model import ConflictError, Edit, compose
from rlproof.repair.points import key, plain
from rlproof.repair.verify import SearchStopped, Verdict, Verifier, parsed

_ROUNDS = 4
_LOCAL = 24  # covers of one function that are executed
_GLOBAL = 12  # combinations of whole files that are executed after that
_OFFERED = 2


@dataclass(slots=True)
class Group:
    """One function with its faults, the covers of them, and the one in use."""

    function: str
    findings: tuple[Finding, ...]
    covers: list[Cover]
    loops: bool
    chosen: Cover | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One round: the text it started from and what it did to it."""

    text: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Where the search ended."""

    text: str
    verdict: Verdict | None
    steps: tuple[Step, ...]
    stopped: str = ""


def search(verifier: Verifier) -> Found:
    """Find a set of edits that verifies; failing that, the version with the fewest faults."""
    text = verifier.script.source.text
    best = Found(text, None, ())
    left: Sequence[Finding] = verifier.strong(verifier.report.findings)
    try:
        for _ in range(_ROUNDS):
            step, verdict = _round(verifier, text, left)
            if verdict is None or not _better(verdict, left):
                break
            text = verdict.script.source.text
            best = Found(text, verdict, (*best.steps, step))
            if verdict.accepted:
                break
            left = verdict.left
            verifier.learn(left)
    except SearchStopped as stopped:
        return Found(best.text, best.verdict, best.steps, f"search stopped {stopped}")
    return best


def _better(verdict: Verdict, before: Sequence[Finding]) -> bool:
    """Nothing moved that may not, and fewer of the known faults are left.

    Faults that come to light behind a crash don't count against it.
    """
    known = {key(f) for f in before}
    still = _still(verdict, known)
    return not verdict.problems and (verdict.accepted or len(still) < len(known))


def _round(verifier: Verifier, text: str, left: Sequence[Finding]) -> tuple[Step, Verdict | None]:
    groups = _groups(verifier, text, left)
    step = Step(text, tuple(groups))
    tried: list[Tried] = []
    for choose in (_cheapest, _improved, _fewer):
        for _ in choose(verifier, text, groups, tried):
            verdict = _together(verifier, text, groups)
            if verdict is not None:
                tried.append((verdict, [group.chosen for group in groups]))
            if verdict is not None and verdict.accepted:
                return step, verdict
    known = {key(f) for f in left}
    fit = [(v, chosen) for v, chosen in tried if not v.problems]
    if not fit:
        return step, None
    best, chosen = min(fit, key=lambda one: (len(_still(one[0], known)), len(one[0].left)))
    for group, cover in zip(groups, chosen, strict=True):
        group.chosen = cover
    return step, best


Tried = tuple[Verdict, list[Cover | None]]


def _still(verdict: Verdict, known: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Which of these faults, by code and function, are left."""
    return {key(f) for f in verdict.left} & known


def _cheapest(
    _verifier: Verifier, _text: str, groups: Sequence[Group], _tried: list[Tried]
) -> Iterator[None]:
    """The first cover of every function."""
    for group in groups:
        group.chosen = group.covers[0]
    if groups:
        yield


def _improved(
    verifier: Verifier, text: str, groups: Sequence[Group], tried: list[Tried]
) -> Iterator[None]:
    """Other covers for the functions that are still wrong."""
    for group in groups:
        if not tried or _is_wrong(group, tried[0][0]):
            _improve(verifier, text, group)
    if any(group.chosen for group in groups):
        yield


def _fewer(
    _verifier: Verifier, _text: str, groups: Sequence[Group], _tried: list[Tried]
) -> Iterator[None]:
    """Leave functions out: what was found there may be the consequence of faults elsewhere."""
    chosen = [group.chosen for group in groups]
    for kept in islice(_subsets(len(groups)), _GLOBAL):
        for i, group in enumerate(groups):
            group.chosen = chosen[i] if i in kept else None
        if any(group.chosen for group in groups):
            yield


def _groups(verifier: Verifier, text: str, left: Sequence[Finding]) -> list[Group]:
    left = [finding for finding in left if verifier.proved(finding)]
    script = parsed(verifier.script, text)
    assert script is not None
    loops = {target.name for target in script.of(Role.TRAIN)}
    found = []
    for name in dict.fromkeys(finding.place.function for finding in left):
        own = tuple(f for f in left if f.place.function == name)
        codes = frozenset(f.code for f in own)
        options = [
            [e for e in candidates(script, finding, codes) if not e.choice] for finding in own
        ]
        sets = covers(text, own, options)
        if sets:
            recorded = name in loops or any(f.code.startswith("LOP") for f in own)
            found.append(Group(name, own, sets, recorded))
    return found


def _made(text: str, groups: Sequence[Group]) -> str | None:
    try:
        return compose(text, [e for g in groups if g.chosen for e in g.chosen.edits])
    except ConflictError:
        return None


def _together(verifier: Verifier, text: str, groups: Sequence[Group]) -> Verdict | None:
    made = _made(text, groups)
    return None if made is None else verifier.verdict(made)


def _is_wrong(group: Group, verdict: Verdict) -> bool:
    """Whether this function still has a fault, or computes something else now.

    Which function a failed case is of is not said: it may be this one's.
    """
    still = any(plain(f.place.function) == plain(group.function) for f in verdict.left)
    own = (plain(group.function), "cases fail")
    return still or any(part in problem for problem in verdict.problems for part in own)


def _improve(verifier: Verifier, text: str, group: Group) -> None:
    """Choose the first cover of one function after which it is right, or else the best one."""
    best: tuple[int, Cover] | None = None
    for cover in group.covers[:_LOCAL]:
        verdict = verifier.verdict(compose(text, cover.edits), quick=not group.loops)
        if verdict is None:
            continue
        if not _is_wrong(group, verdict):
            group.chosen = cover
            return
        left = len(_still(verdict, {key(f) for f in group.findings}))
        if not verdict.problems and (best is None or left < best[0]):
            best = (left, cover)
    group.chosen = _part(verifier, text, group) or (best[1] if best else None)


def _part(verifier: Verifier, text: str, group: Group) -> Cover | None:
    """A smaller set after which the function is right: a finding may follow from another."""
    edits = list(dict.fromkeys(e for cover in group.covers[:4] for e in cover.edits))
    for size in range(1, min(len(edits), 4)):
        for chosen in list(combinations(edits, size))[:_LOCAL]:
            try:
                made = compose(text, chosen)
            except ConflictError:
                continue
            verdict = verifier.verdict(made, quick=not group.loops)
            if verdict is not None and not _is_wrong(group, verdict):
                return Cover(chosen, sum(e.size(text) for e in chosen), 0)
    return None


def _subsets(count: int) -> Iterator[tuple[int, ...]]:
    """All but one, all but two, …, each alone."""
    for size in range(count - 1, 0, -1):
        yield from combinations(range(count), size)


def alternatives(verifier: Verifier, found: Found) -> list[tuple[Group, Cover, str]]:
    """Other sets that are as small and as right, each executed like the first."""
    offers: list[tuple[Group, Cover, str]] = []
    if found.verdict is None or not found.verdict.accepted or len(found.steps) != 1:
        return offers
    [step] = found.steps
    for group in step.groups:
        first = group.chosen
        if first is None:
            continue
        for rival in rivals(first, group.covers)[:_OFFERED]:
            group.chosen = rival
            try:
                verdict = _together(verifier, step.text, step.groups)
            except SearchStopped:
                group.chosen = first
                return offers
            group.chosen = first
            if verdict is not None and verdict.accepted:
                offers.append((group, rival, verdict.script.source.text))
    return offers


def silencing(verifier: Verifier, finding: Finding, options: Sequence[Edit]) -> Edit | None:
    """The first edit that silences the check of a fault that was found by reading alone."""
    text = verifier.script.source.text
    for edit in options:
        try:
            verdict = verifier.verdict(compose(text, [edit]))
        except (ConflictError, SearchStopped):
            continue
        if verdict and not verdict.problems and key(finding) not in map(key, verdict.left):
            return edit
    return None


def edits_of(found: Found) -> list[tuple[str, Edit]]:
    """Every edit of the set, with the text it was made to."""
    return [
        (step.text, edit)
        for step in found.steps
        for group in step.groups
        if group.chosen
        for edit in group.chosen.edits
    ]
