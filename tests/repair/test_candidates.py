"""Every fault of the corpus has an edit that fits its code; nothing is executed here.

The finding is made from the mark of the case, so that a broken edit shows in a second or two
and not only when the whole corpus is run.
"""

import pytest
from tests.cases.reading import every, marks

from rlproof.faults.model import Severity
from rlproof.faults.registry import catalogue
from rlproof.faults.seen import Place
from rlproof.judge.findings import Finding
from rlproof.read.script import read
from rlproof.repair.candidates import MAKERS, candidates
from rlproof.repair.edits.model import compose
from rlproof.repair.edits.site import enclosing

UNSEEN = {
    "kld005_penalty_against_the_sampler_in_forward",
    "sur007_cap_in_the_configuration",
    "lop010_rows_by_position",  # its place is in the function that samples
    "sur007_default_of_a_setting",
    "lgp001_class_that_samples_hot",
    "kld009_squared_gap_in_a_coefficient",
    "lop006_frozen_under_another_name",
    "met001_told_the_advantages",
    "msk013_mask_as_wide_as_the_rows",
    "adv002_repeated_in_a_trainer",
    "adv003_a_new_id_for_each_answer",
    "adv019_returns_cut_by_observations",
    "met005_length_behind_a_filter",
    "msk001_weights_that_no_one_knows",
}
"""What is at fault is not in the function that the finding names, or passes through attributes;
the last nine are forms of their fault that no edit is known for."""
CASES = [
    case
    for case in every()
    if len(marks(case.bad)) == 1 and set(case.codes) <= set(MAKERS) and case.name not in UNSEEN
]
NONE_KNOWN = {
    "AGG002", "AGG003", "LOP008", "OBJ003", "RWD001", "RWD002", "RWD003",
}  # fmt: skip


def findings(script, mark):
    """The marked fault, said of every function: which one it is takes a run to know."""
    starts = {cell.number: cell.first for cell in script.source.cells}
    line = starts[mark.cell] + mark.line - 1 if starts else mark.line
    names = [target.name for target in script.targets]
    names.append(enclosing(script.source.tree, line).name)
    fault = catalogue()[mark.code]
    for name in names:
        yield Finding(fault, Severity(mark.severity), Place(name, line - 1, line + 1, 0, 1), "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_edit_fits(tmp_path, case):
    script = read(str(case.write(tmp_path, "bad")))
    [mark] = marks(case.bad)
    edits = [
        edit
        for finding in findings(script, mark)
        for edit in candidates(script, finding, frozenset(case.codes))
    ]
    assert edits
    for edit in edits:
        assert edit.label
        assert compose(script.source.text, [edit]) != script.source.text


def test_codes_without_an_edit_are_those_that_the_page_names():
    strong = {c for c, fault in catalogue().items() if fault.severity is not Severity.NOTE}
    assert strong - set(MAKERS) == NONE_KNOWN
