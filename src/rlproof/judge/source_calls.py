"""Arguments that the source gives to a loss or to advantages, against the parameters' names."""

from __future__ import annotations

from collections.abc import Iterator

from rlproof.faults.model import Severity, Sighting
from rlproof.judge.source_said import Said, Told, shown
from rlproof.read.arguments import Given, LossCall, calls_of, ignored_masks, misplaced, own_keys
from rlproof.read.landmarks import place
from rlproof.read.loop.reading import FileRead
from rlproof.read.names import Slot
from rlproof.read.targets import Role, Script


def arguments(script: Script, read: FileRead) -> Iterator[Said]:
    """DAT002, MSK011: an argument that is another parameter's by its name, or that nothing reads.

    ADV003: every row has a group key of its own.
    """
    del read
    for call in calls_of(script, Role.LOSS):
        wrong = misplaced(call)
        if wrong:
            yield _misplaced(call, wrong)
        for mask, switch in ignored_masks(script, call):
            yield _ignored(call, mask, switch)
    for call in calls_of(script, Role.ADVANTAGES):
        yield from _keys(script, call)


def _misplaced(call: LossCall, wrong: list[Given]) -> Told:
    first = wrong[0]
    mask = len(wrong) == 1 and first.meant is Slot.MASK
    name = call.node.name
    message = f"{name} takes `{first.parameter}` ({first.meant}) and is given {first.held}"
    if len(wrong) > 1:
        message += f"; {len(wrong)} of its arguments belong to other parameters by their names"
    return Told(
        "MSK011" if mask else "DAT002",
        Sighting(
            place(call.function, first.node),
            message,
            shown(first.node, ", ".join(g.text for g in wrong), "each argument at its parameter"),
        ),
    )


def _ignored(call: LossCall, mask: str, switch: str) -> Told:
    node = call.arguments[mask]
    return Told(
        "DAT002",
        Sighting(
            place(call.function, node),
            f"`{mask}` is given to {call.node.name}, which reads it only where `{switch}` "
            "is true; its default is False, and nothing here sets it",
            shown(node, f"{mask} has no effect", f"{switch}=True, or no such mask"),
            Severity.WARNING,
        ),
    )


def _keys(script: Script, call: LossCall) -> Iterator[Told]:
    made = own_keys(script, call)
    if made is not None:
        yield Told(
            "ADV003",
            Sighting(
                place(call.function, made),
                "every row gets a group key of its own, so every group has one member and no "
                "baseline to be compared with",
                shown(
                    made, "a new key for each row", "one key for all rows of a prompt", call.call
                ),
            ),
        )
