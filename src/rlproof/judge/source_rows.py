"""Rows of paired tensors that were picked in two ways, and are used together."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Sighting
from rlproof.judge.source_said import Said, Told, shown
from rlproof.read.arguments import written
from rlproof.read.landmarks import place
from rlproof.read.loop.reading import FileRead
from rlproof.read.names import Slot
from rlproof.read.selections import Clash, clashes
from rlproof.read.targets import Role, Script

_ROWS = {Slot.NEW, Slot.OLD, Slot.REF, Slot.ADVANTAGES, Slot.MASK, Slot.REWARDS, Slot.LENGTHS}
_WAYS = {
    "permutation": "in an order of its own",
    "block": "in runs",
    "stride": "in steps",
    "filter": "by a filter",
    "prefix": "from the start",
}


def selections(script: Script, read: FileRead) -> Iterator[Said]:
    """DAT001: what belongs together row by row was picked in two ways."""
    del read
    losses = {}
    for name, (target, node) in written(script, Role.LOSS).items():
        rows = {p.name for p in target.parameters if p.slot in _ROWS}
        args = [a.arg for a in (*node.args.posonlyargs, *node.args.args) if a.arg != "self"]
        losses[name] = tuple(arg if arg in rows else "" for arg in args)
    for clash in clashes(script.source.tree, losses):
        yield _told(clash)


def _told(clash: Clash) -> Told:
    odd, others = clash.odd, clash.others
    return Told(
        "DAT001",
        Sighting(
            place(clash.function, odd.statement),
            f"rows are picked {_WAYS[odd.kind]} here (`{odd.text}`) and {_WAYS[others.kind]} in "
            f"line {others.statement.lineno} (`{others.text}`), and both are used together: each "
            "row meets what belongs to another one",
            shown(odd.statement, odd.text, others.text, others.statement, clash.node),
        ),
    )
