"""The corpus of public reports: each entry is found, or missed, as its header says."""

from pathlib import Path

import pytest
from benchmarks.public_faults.judging import Said, Verdict, judge, known
from benchmarks.public_faults.reading import every, parse
from benchmarks.public_faults.run import counted, manifest, stated

from tests.support.sampling import one_in, rarely

ENTRIES = every()
FOUND = [e for e in ENTRIES if not (e.is_run or e.is_question or e.missed)]


@pytest.mark.parametrize("entry", one_in(30, ENTRIES), ids=lambda entry: entry.name)
def test_entry(entry, tmp_path):
    if "import torch" in entry.text:
        pytest.importorskip("torch")
    verdict = judge(entry, tmp_path)
    assert verdict.alarms == []
    if entry.is_question:
        assert verdict.answered or entry.missed
        return
    assert verdict.found != bool(entry.missed), verdict.said
    if verdict.found:
        assert verdict.judged, "a twin that is not judged proves nothing"
        assert verdict.at_its_line or entry.is_run


@pytest.mark.parametrize("entry", rarely(3, FOUND), ids=lambda entry: entry.name)
def test_repair(entry, tmp_path):
    """Verified where the header says so, and nowhere else; CI takes every third entry."""
    if "import torch" in entry.text:
        pytest.importorskip("torch")
    assert (judge(entry, tmp_path, fix=True).repair == "verified") == ("repair" in entry.fields)


def test_the_table_of_the_readme_is_what_the_headers_say():
    readme = Path(__file__).parents[1].joinpath("README.md").read_text("utf-8")
    assert stated(ENTRIES).table in readme


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_header(entry):
    assert entry.name.startswith(entry.number.lower() + "_")
    assert entry.number[0] == ("Q" if entry.is_question else "B")
    codes = set(entry.expected.split("|")) | entry.also
    assert all(known(code) for code in codes - {"any", "silent"})
    assert "#" in entry.fields["source"]
    compile(entry.text, entry.name, "exec")
    compile(entry.twin, entry.name, "exec")


def entry(header, body="x = 1  # <- fault\n# twin: x = 2\n"):
    return parse("b000_x", f"# entry: B000\n# source: a/b#1\n{header}\n{body}")


def test_the_twin_is_the_file_without_its_fault():
    read = entry(
        "# expect: SUR001", "y = 0  # <- here\nif y:\n    z = 1  # <- fault\n    # twin: z = 2"
    )
    assert read.lines == (4, 6)
    assert read.twin.split("\n")[3:] == ["y = 0", "if y:", "    z = 2"]
    text, lines = read.unmarked
    assert (text.split("\n")[3:], lines) == (["y = 0", "if y:", "    z = 1"], [4, 6])


@pytest.mark.parametrize(
    "header", ["# expected: SUR001", "# expect: SUR001\n# missed: tired: of it", "# x: y"]
)
def test_a_malformed_header_is_refused(header):
    with pytest.raises(ValueError, match="b000_x"):
        entry(header)


def test_an_entry_without_a_place_or_a_twin_is_refused():
    for body in ("x = 1\n# twin: x = 2", "x = 1  # <- here"):
        if "here" in body:
            assert entry("# expect: SUR001", body).twin != body
        else:
            with pytest.raises(ValueError, match="no line"):
                entry("# expect: SUR001", body)


def test_a_verdict_counts_what_it_should():
    """Line 4 has the fault: a finding two lines away, a note or another code is no hit there."""
    read = entry("# expect: SUR001")
    said = [Said("SUR001", True, 5, 5), Said("SUR001", True, 6, 6), Said("SUR001", False, 4, 4)]
    made = [Verdict(read, (one,), (), True, 0.0) for one in said]
    assert [v.found for v in made] == [True, True, False]
    assert [v.at_its_line for v in made] == [True, False, False]
    loud = Verdict(read, (Said("SUR002", True, 4, 4),), (Said("SUR003", True, 1, 1),), True, 0.0)
    assert (loud.found, loud.others, loud.alarms) == (False, ["SUR002"], ["SUR003"])
    assert "| faults found | 0 of 1 (0.0%) |" in counted([loud]).table
    assert "| healthy twins and questions blamed | 1 of 1 |" in counted([loud]).table
    assert "| faults found | 1 of 1 (100.0%) |" in counted(made[:1]).table
    assert "| B000 | a/b#1 | SUR001 |" in manifest([read])
