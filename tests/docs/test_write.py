import pytest
from rlproof_docs.write import write


def test_pages_are_written_and_stale_ones_removed(tmp_path):
    assert write(tmp_path, [("_generated/a.md", "A"), ("reference/faults/b.md", "B")]) == 2
    write(tmp_path, [("_generated/a.md", "A2")])
    assert (tmp_path / "_generated/a.md").read_text() == "A2"
    assert not (tmp_path / "reference/faults/b.md").exists()


def test_an_unchanged_page_is_not_touched(tmp_path):
    write(tmp_path, [("_generated/a.md", "A")])
    before = (tmp_path / "_generated/a.md").stat().st_mtime_ns
    write(tmp_path, [("_generated/a.md", "A")])
    assert (tmp_path / "_generated/a.md").stat().st_mtime_ns == before


def test_pages_by_hand_are_safe(tmp_path):
    with pytest.raises(ValueError, match="tutorial"):
        write(tmp_path, [("tutorial.md", "x")])
    with pytest.raises(ValueError, match="can't be"):
        write(tmp_path, [("_generated/a.md", "1"), ("_generated/a.md", "2")])
