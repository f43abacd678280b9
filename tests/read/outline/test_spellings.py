"""The table of docs/roles.md says what the code makes of the names."""

from pathlib import Path

import pytest

from rlproof.read.names import Slot, advantage_slot, objective_slot

PAGE = (Path(__file__).parents[3] / "docs" / "roles.md").read_text("utf-8")
PARTS = {
    "new log-probs": (Slot.NEW,),
    "old log-probs": (Slot.OLD,),
    "reference": (Slot.REF,),
    "advantages": (Slot.ADVANTAGES,),
    "mask": (Slot.MASK,),
    "clip range": (Slot.CLIP, Slot.CLIP_LOW, Slot.CLIP_HIGH),
    "divergence": (Slot.BETA,),
    "group size": (Slot.GROUP_SIZE,),
}


def rows():
    for line in PAGE.split("\n"):
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) == 6 and cells[0] in PARTS:
            names = [part.strip(" `") for cell in cells[1:] for part in cell.split(",")]
            yield from ((cells[0], name) for name in names)


def test_the_table_is_found():
    assert {part for part, _ in rows()} == set(PARTS)


@pytest.mark.parametrize(("part", "name"), list(rows()))
def test_a_spelling(part, name):
    slot = advantage_slot(name) if part == "group size" else objective_slot(name)
    assert slot in PARTS[part]
