"""Any bytes under any name: text and tree, or one line that says why not."""

from __future__ import annotations

import ast
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlproof.errors import NothingToCheckError, SourceError
from rlproof.read.source import expand, load, shown

BODY = b"x = 1\ny = 2\n"


def _written(folder: Path, raw: bytes) -> str:
    path = folder / "script.py"
    path.write_bytes(raw)
    return str(path)


@pytest.mark.parametrize(
    "raw",
    [
        BODY,
        b"\xef\xbb\xbf" + BODY,  # a byte-order mark is no part of the text
        BODY.replace(b"\n", b"\r\n"),
        BODY.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + BODY.replace(b"\n", b"\r\n"),
    ],
    ids=["plain", "mark", "crlf", "cr", "mark_crlf"],
)
def test_line_ends_and_marks_do_not_matter(raw: bytes, tmp_path: Path) -> None:
    source = load(_written(tmp_path, raw))
    assert source.text == BODY.decode()
    assert ast.dump(source.tree, include_attributes=True) == ast.dump(
        ast.parse(BODY), include_attributes=True
    )


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"# coding: latin-1\nname = '\xe9'\n", "é"),
        (b"#!/usr/bin/python\n# -*- coding: latin-1 -*-\nname = '\xe9'\n", "é"),
        (b"# vim: set fileencoding=cp1252 :\nname = '\x80'\n", "€"),
        (b"# coding: latin-1, caf\xe9\nname = '\xe9'\n", "é"),
        (b"# coding: utf-8\nname = '\xc3\xa9'\n", "é"),
        ("# coding: shift_jis\nname = '表'\n".encode("shift_jis"), "表"),
    ],
)
def test_a_cookie_is_obeyed(raw: bytes, text: str, tmp_path: Path) -> None:
    assert f"name = '{text}'" in load(_written(tmp_path, raw)).text


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        # Python's own reader stops at the same lines
        (b"# coding: klingon\nx = 1\n", ":1: unknown encoding: klingon"),
        (b"#!/usr/bin/python\n# coding: klingon\n", ":2: unknown encoding: klingon"),
        (b"\xef\xbb\xbf# coding: latin-1\n", ":1: encoding problem"),
        (b"x = 1\n\ny = '\xff'\n", ":3: not valid utf-8 text"),
        (b"x = '\xff'\n", ":1: not valid utf-8 text"),
        (b"x = 1\r\ny = '\xff'\r\n", ":2: not valid utf-8 text"),
        (b"x = 1\ry = 2\rz = '\xff'\r", ":3: not valid utf-8 text"),
        (b"\xef\xbb\xbfx = 1\n\xff", ":2: not valid utf-8 text"),
        (b"# coding: ascii\nx = 1\ny = '\xe9'\n", ":3: not valid ascii text"),
        (b"# coding: rot13\nk = 1\n", ":1: not valid rot13 text"),
        (b"# coding: undefined\nk = 1\n", ":1: not valid undefined text"),
        (b"# coding: unicode_escape\nx = '\\ud800'\n", ":1: not valid unicode_escape text"),
        (b"\x7fELF\x00\x01", ": a binary file"),
        (BODY.decode().encode("utf-16"), ": a binary file"),
        (b"\x89PNG\r\n\x1a\n", ":1: not valid utf-8 text"),
        (b"x = 1\ndef f(:\n", ":2: not valid Python: "),
        (b"def f():\nreturn 1\n", ":2: not valid Python: expected an indented block"),
        (b"if x:\n\ta\n        b\n", ":3: not valid Python: inconsistent use of tabs"),
        (b"print 'x'\n", ":1: not valid Python: "),
        (b"x = 0777\n", ":1: not valid Python: "),
        (b"\n\nx = 'a\n", ":3: not valid Python: unterminated string"),
        (b"(" * 300 + b")" * 300, ":1: not valid Python: too many nested parentheses"),
        (b"-" * 100_000 + b"1", ": nested too deeply"),
    ],
)
def test_one_line_says_what_is_wrong_and_where(raw: bytes, message: str, tmp_path: Path) -> None:
    path = _written(tmp_path, raw)
    with pytest.raises(SourceError) as caught:
        load(path)
    text = str(caught.value)
    assert text.startswith(path + message)
    assert "\n" not in text
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"  \t\r\n", b"\xef\xbb\xbf", b"\x0c\n"])
def test_an_empty_file_is_nothing_to_check(raw: bytes, tmp_path: Path) -> None:
    with pytest.raises(NothingToCheckError, match="the file is empty"):
        load(_written(tmp_path, raw))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = _written(tmp_path_factory.getbasetemp(), raw)
    with suppress(SourceError, NothingToCheckError):
        load(path)


@given(st.text(max_size=40))
def test_a_shown_path_is_one_printable_line(path: str) -> None:
    assert shown(path).isprintable()
    assert shown(shown(path)) == shown(path)


def test_a_usual_path_is_shown_as_it_is() -> None:
    assert shown("a b/übung.py") == "a b/übung.py"
    assert shown("a\nb\x1b[31m\udcff.py") == "a\\nb\\x1b[31m\\udcff.py"


def test_special_files_are_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")  # opening it would wait for a writer for ever
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    for path, message in [
        (str(tmp_path / "pipe.py"), "not a regular file"),
        (os.devnull, "not a regular file"),
        (str(tmp_path / "gone.py"), "no such file"),
        (str(tmp_path / "missing.py"), "no such file"),
        (str(tmp_path / ("x" * 3000)), "can't be read (File name too long)"),
        ("nul\0byte.py", "not a usable path"),
        (str(Path(__file__) / "below.py"), "can't be read (Not a directory)"),
    ]:
        with pytest.raises(SourceError) as caught:
            load(path)
        assert message in str(caught.value)
        assert str(caught.value).isprintable()


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.py"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(SourceError, match="larger than 20 MB"):
        load(str(path))


def test_a_link_is_read_through(tmp_path: Path) -> None:
    target = _written(tmp_path, BODY)
    (tmp_path / "link.py").symlink_to(target)
    assert load(str(tmp_path / "link.py")).text == BODY.decode()


def test_expand_finds_scripts_and_leaves_the_rest(tmp_path: Path) -> None:
    names = ["a.py", "b.txt", "sub/c.py", ".git/d.py", "__pycache__/e.py", "env/f.py", "env2/g.py"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(BODY)
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    found = expand((str(tmp_path),))
    inside = [str(Path(path).relative_to(tmp_path)) for path, _ in found]
    assert inside == ["a.py", "env2/g.py", "sub/c.py"]
    assert not any(named for _, named in found)
    assert expand((str(tmp_path), str(tmp_path / "a.py")))[0] == (str(tmp_path / "a.py"), True)


def test_a_folder_without_python_is_nothing_to_check(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(NothingToCheckError, match="holds no Python file"):
        expand((str(tmp_path),))


def test_a_folder_that_cannot_be_listed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not "no Python file": nobody can know. (Permissions don't bind the root user.)"""

    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(sys.modules["os"], "scandir", refuse)
    with pytest.raises(SourceError, match="can't be listed"):
        expand((str(tmp_path),))
