"""A repaired notebook: only the sources of the edited cells change, to the byte."""

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.repairing import repair_file

from rlproof.checks import Options, check_paths
from rlproof.judge.findings import FixStatus
from rlproof.read.source import Cell, load
from rlproof.repair import files
from rlproof.repair.lines import WriteError
from rlproof.repair.notebooks import cells_after

SETUP = "%matplotlib inline\nimport math\n!pip list"
LOSS = """def grpo_loss(new_logps, old_logps, advantages, mask, clip_eps=0.2):
    total, count = 0.0, 0
    for i, adv in enumerate(advantages):
        for t, real in enumerate(mask[i]):
            if not real:
                continue
            ratio = new_logps[i][t] - old_logps[i][t]
            clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps)
            total += -min(ratio * adv, clipped * adv)
            count += 1
    return total / count"""
WRONG = "= new_logps[i][t] - old_logps[i][t]"
RIGHT = "= math.exp(new_logps[i][t] - old_logps[i][t])"


def cell(source):
    printed = [{"text": ["0.5\n"], "output_type": "stream"}]
    about = {"cell_type": "code", "execution_count": 3, "metadata": {"tags": ["ü"]}}
    return {**about, "outputs": printed, "source": source}


def book(*cells):
    text = {"cell_type": "markdown", "metadata": {}, "source": ["# A ratio\n", "é"]}
    return {"cells": [text, *cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def as_lines(text):
    return text.splitlines(keepends=True)


LAYOUTS = {
    "as Jupyter writes it": lambda: json.dumps(
        book(cell(as_lines(SETUP)), cell(as_lines(LOSS))), indent=1, ensure_ascii=False
    )
    + "\n",
    "one string a cell": lambda: json.dumps(book(cell(SETUP), cell(LOSS + "\n\n")), indent=2),
    "one line": lambda: json.dumps(book(cell(SETUP), cell(LOSS))),
    "format 3": lambda: json.dumps(
        {"worksheets": [{"cells": [
            {"cell_type": "code", "language": "python", "input": as_lines(SETUP)},
            {"cell_type": "code", "language": "python", "input": as_lines(LOSS)}]}],
         "metadata": {}, "nbformat": 3}, indent=1),
}  # fmt: skip


def fix(path):
    options = Options.resolve((), (), None, True, None, None, fix=True)
    return check_paths((str(path),), options)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_the_line_changes(tmp_path, layout):
    """The expected bytes are the old ones with the wrong expression replaced."""
    path = tmp_path / "train.ipynb"
    path.write_text(LAYOUTS[layout](), encoding="utf-8")
    before = path.read_bytes()
    assert fix(path).failures == []
    assert path.read_bytes() == before.replace(WRONG.encode(), RIGHT.encode())
    again = path.read_bytes()
    assert fix(path).repairs == []
    assert path.read_bytes() == again


def test_the_patch_is_that_of_the_file_and_the_diff_that_of_the_cell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.ipynb"
    path.write_text(LAYOUTS["as Jupyter writes it"](), encoding="utf-8")
    report = repair_file(path)
    assert report.repair.status is FixStatus.VERIFIED
    head = report.repair.patch.split("\n")[:3]
    assert "train.ipynb (cell 3)" in head[0]
    assert head[2] == "@@ -4,7 +4,7 @@"  # line 7 of the cell, three lines around it
    options = Options.resolve((), (), None, True, None, None, diff=True)
    patch = check_paths(("train.ipynb",), options).patch
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    assert RIGHT.encode() in path.read_bytes()
    assert repair_file(path).repair is None


def test_a_notebook_that_changed_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "train.ipynb"
    path.write_text(LAYOUTS["one line"](), encoding="utf-8")
    source = load(str(path))
    path.write_text(LAYOUTS["one line"]().replace("clip_eps=0.2", "clip_eps=0.3"))
    with pytest.raises(WriteError, match="changed while"):
        files.load(source)


def test_an_edit_of_a_magic_is_refused(tmp_path):
    path = tmp_path / "train.ipynb"
    path.write_text(LAYOUTS["one line"](), encoding="utf-8")
    source = load(str(path))
    text = source.text.replace("pass  # %matplotlib inline", "pass")
    assert text != source.text
    with pytest.raises(WriteError, match="touches a magic"):
        files.load(source).edited(text)


CELLS = (Cell(1, 1, 2), Cell(4, 3, 1))


@pytest.mark.parametrize(
    ("after", "counts"),
    [
        ("a = 1\nb = 2\nc = 3\n", [2, 1]),
        ("import math\na = 1\nb = 2\nc = 3\n", [3, 1]),
        ("a = 1\nb = 2\nd = 4\nc = 3\n", [2, 2]),  # between the two, not indented: the second's
        ("a = 1\nb = 20\nc = 30\n", [2, 1]),
        ("b = 2\nc = 3\n", [1, 1]),
        ("a = 1\nb = 2\n", None),  # a cell without a line
        ("a = 1\nb = (2,\n  3)\nc = 3\n", [3, 1]),
        ("a = 1\nb = 2 + (\n3)\n", None),  # over both
    ],
)
def test_where_the_cells_are_after_an_edit(after, counts):
    found = cells_after("a = 1\nb = 2\nc = 3\n", CELLS, after)
    assert (found and [one.count for one in found]) == counts


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.data())
def test_lines_put_into_a_cell_stay_in_it(sizes, data):
    """Distinct lines, so that a diff has one answer; the expected counts are by construction."""
    lines = [f"x{i} = {i}" for i in range(sum(sizes) + len(sizes))]
    cells, first = [], 1
    for number, size in enumerate(sizes, 1):
        cells.append(Cell(number, first, size + 1))
        first += size + 1
    chosen = data.draw(st.sampled_from(cells))
    put = [f"y{i} = {i}" for i in range(data.draw(st.integers(0, 3)))]
    new = [*lines[: chosen.first - 1], *put, *lines[chosen.first - 1 :]]
    found = cells_after("\n".join(lines) + "\n", cells, "\n".join(new) + "\n")
    assert [c.count for c in found] == [c.count + len(put) * (c is chosen) for c in cells]
