"""`git apply` takes the patch, whatever the name, the newlines and the encoding of the file."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlproof.repair.patch import patch


def applied(folder, name, before, after, monkeypatch):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before)
    monkeypatch.chdir(folder)
    made = patch(name, before, after)
    subprocess.run(["git", "apply", "-"], input=made, check=True, cwd=folder)
    return path.read_bytes()


@pytest.mark.parametrize(
    "name", ["a.py", "my script.py", "über.py", 'quo"te.py', "tab\there.py", "sub/dir/a b é.py"]
)
def test_names(tmp_path, monkeypatch, name):
    after = b"a = 1\nb = 3\n"
    assert applied(tmp_path, name, b"a = 1\nb = 2\n", after, monkeypatch) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a = 1\r\nb = 2\r\n", b"a = 1\r\nb = 3\r\nc = 4\r\n"),
        (b"a = 1\nb = 2", b"a = 1\nb = 3"),
        (b"a = 1\nb = 2", b"a = 1\nb = 2\nc = 3"),
        (b"\xef\xbb\xbfa = 1\nb = 2\n", b"\xef\xbb\xbfa = 2\nb = 2\n"),
        (b"# coding: latin-1\na = '\xe9'\n", b"# coding: latin-1\nb = '\xe9'\n"),
        (b"a\rb\rc\r", b"a\rB\rc\r"),
        (b"one", b"two"),
        (b"x\x0cy\n\x0b\n", b"x\x0cz\n\x0b\n"),
    ],
)  # fmt: skip
def test_contents(tmp_path, monkeypatch, before, after):
    assert applied(tmp_path, "a.py", before, after, monkeypatch) == after


def test_from_a_folder_inside_a_repository(tmp_path, monkeypatch):
    """Names are below the current folder, which is where `git apply` is run."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    after = b"a = 2\n"
    assert applied(tmp_path / "sub", "a.py", b"a = 1\n", after, monkeypatch) == after


def test_nothing_to_do_is_no_patch():
    assert patch("a.py", b"a\n", b"a\n") == b""


lines = st.lists(st.sampled_from([b"a", b"b", b"", b"c\r", b" d"]), max_size=30)


@settings(max_examples=60, deadline=None)
@given(lines, lines, st.booleans(), st.booleans())
def test_any_two_files(tmp_path_factory, one, two, ends, ends_too):
    """git refuses a hunk whose numbers or context are wrong."""
    before = b"\n".join([b"first", *one]) + b"\n" * ends
    after = b"\n".join([b"first", *two]) + b"\n" * ends_too
    folder = tmp_path_factory.mktemp("patch")
    made = patch("a.py", before, after)
    (folder / "a.py").write_bytes(before)
    if made:
        subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"], input=made, check=True, cwd=folder
        )
    assert (folder / "a.py").read_bytes() == after
