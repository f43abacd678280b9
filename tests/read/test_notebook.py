"""Notebooks as JSON: cells joined, magics left out, places kept; what is no notebook is refused.

Cell numbers count all cells of the file from 1, so expected places are read off the lists below.
"""

import json

import pytest

from rlproof.errors import NothingToCheckError, SourceError
from rlproof.read.source import cell_at, load, spot

HEAD = "import math\nx = 1"
BODY = "def f(a):\n    return a"


def notebook(folder, *cells, name="nb.ipynb", **more):
    """Cells as (kind, source); format 4."""
    made = [{"cell_type": kind, "source": source, "metadata": {}} for kind, source in cells]
    path = folder / name
    path.write_text(json.dumps({"nbformat": 4, "metadata": {}, "cells": made, **more}))
    return str(path)


def test_code_cells_are_joined_and_know_their_lines(tmp_path):
    path = notebook(tmp_path, ("markdown", "# x"), ("code", HEAD), ("raw", "y"), ("code", BODY))
    source = load(path)
    assert source.text == f"{HEAD}\n{BODY}\n"
    assert [(c.number, c.first, c.count) for c in source.cells] == [(2, 1, 2), (4, 3, 2)]
    assert [spot(source.cells, line) for line in (1, 2, 3, 4)] == [
        "cell 2, line 1", "cell 2, line 2", "cell 4, line 1", "cell 4, line 2",
    ]  # fmt: skip
    assert source.tree.body[-1].lineno == 3


def test_a_script_has_lines_only():
    assert (spot((), 12), cell_at((), 12)) == ("12", (None, 12))


def test_a_source_may_be_a_list_of_lines(tmp_path):
    assert load(notebook(tmp_path, ("code", ["a = 1\n", "b = 2"]))).text == "a = 1\nb = 2\n"


def test_format_3_has_worksheets_and_inputs(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": "# x"},
        {"cell_type": "code", "language": "python", "input": [HEAD], "outputs": [{"text": "no"}]},
        {"cell_type": "code", "language": "R", "input": "x <- 1"},
    ]
    path = tmp_path / "old.ipynb"
    path.write_text(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}]}))
    source = load(str(path))
    assert (source.text, source.cells[0].number) == (f"{HEAD}\n", 2)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("%matplotlib inline\nx = 1", "pass  # %matplotlib inline\nx = 1"),
        ("!pip install trl\nx = 1", "pass  # !pip install trl\nx = 1"),
        ("if x:\n    !ls", "if x:\n    pass  # !ls"),
        ("files = !ls\nx = 1", "pass  # files = !ls\nx = 1"),
        ("t = %timeit -o f()", "pass  # t = %timeit -o f()"),
        ("f?\nx = 1", "pass  # f?\nx = 1"),
        ("?f", "pass  # ?f"),
        ("f.g??", "pass  # f.g??"),
        ("!pip install a \\\n    b\nx = 1", "pass  # !pip install a\n# b\nx = 1"),
        ("%%time\nx = 1", "pass  # %%time\nx = 1"),
        ("%load_ext x\ny = (7\n% 2)", "pass  # %load_ext x\ny = (7\n% 2)"),
        ('!ls\ns = """\n!no magic\n"""', 'pass  # !ls\ns = """\n!no magic\n"""'),
        ("!ls\ny = 7 \\\n% 2", "pass  # !ls\ny = 7 \\\n% 2"),
        ("!ls\nt = {'a': 1,\n'b?': 2}", "pass  # !ls\nt = {'a': 1,\n'b?': 2}"),
    ],
)  # fmt: skip
def test_magics_become_statements_without_effect(tmp_path, cell, expected):
    source = load(notebook(tmp_path, ("code", "z = 0"), ("code", cell)))
    assert source.text == f"z = 0\n{expected}\n"


def test_inside_brackets_there_is_no_magic(tmp_path):
    with pytest.raises(SourceError, match="cell 1, line 4"):
        load(notebook(tmp_path, ("code", "!ls\ns = '('  # ( [\nt = [1,\n!2]")))


@pytest.mark.parametrize("magic", ["bash", "javascript", "writefile a.py", "html", "R"])
def test_cells_in_another_language_are_left_out(tmp_path, magic):
    path = notebook(tmp_path, ("code", f"%%{magic}\nls -la {{}}"), ("code", HEAD))
    source = load(path)
    assert (source.text, source.cells[0].number) == (f"{HEAD}\n", 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"cells": [', "not a notebook that can be read"),
        ("[1, 2]", "not a notebook that can be read"),
        ('{"cells": 3}', "not a notebook that can be read"),
        ("[" * 100_000, "not a notebook that can be read"),
        ("\udc80", "not a notebook that can be read"),
        ("", "not a notebook that can be read"),
    ],
)
def test_what_is_no_notebook_is_one_line(tmp_path, text, message):
    path = tmp_path / "bad.ipynb"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SourceError) as caught:
        load(str(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cell_that_is_not_python_is_named(tmp_path):
    path = notebook(tmp_path, ("markdown", ""), ("code", HEAD), ("code", "x = 1\ny = = 2"))
    with pytest.raises(SourceError, match=r"nb\.ipynb: cell 3, line 2: not valid Python"):
        load(path)


def test_an_open_string_can_not_swallow_the_next_cell(tmp_path):
    path = notebook(tmp_path, ("code", 'a = """'), ("code", 'b = """'))
    with pytest.raises(SourceError, match="cell 1, line 1"):
        load(path)


@pytest.mark.parametrize(
    ("cells", "metadata", "message"),
    [
        ([], {}, "holds no Python code"),
        ([("markdown", "# x"), ("code", ""), ("code", "%%bash\nls")], {}, "holds no Python code"),
        ([("code", "x <- 1")], {"kernelspec": {"language": "R"}}, "a notebook in r"),
        ([("code", "x")], {"language_info": {"name": "julia"}}, "a notebook in julia"),
    ],
)
def test_a_notebook_without_python_is_nothing_to_check(tmp_path, cells, metadata, message):
    with pytest.raises(NothingToCheckError, match=message):
        load(notebook(tmp_path, *cells, metadata=metadata))


def test_metadata_of_any_shape_is_no_reason_to_refuse(tmp_path):
    for metadata in (None, [], {"kernelspec": 3}, {"language_info": {"name": None}}):
        assert load(notebook(tmp_path, ("code", "x = 1"), metadata=metadata)).text == "x = 1\n"


def test_a_nul_character_is_refused(tmp_path):
    with pytest.raises(SourceError, match="cell 1 holds a NUL"):
        load(notebook(tmp_path, ("code", "x = '\0'")))
