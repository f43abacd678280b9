"""A repaired file keeps its bytes outside the edit, and is never written in part."""

import os
import random
import stat
import subprocess
import sys

import pytest

from rlproof.read.source import load as load_source
from rlproof.repair import files
from rlproof.repair.lines import WriteError

OLD = "x = 1\ny = 2  # kept\nz = 3\n"
NEW = "x = 1\ny = 4  # kept\nw = 0\nz = 3\n"


def edited(tmp_path, data, change):
    path = tmp_path / "s.py"
    path.write_bytes(data)
    source = load_source(str(path))
    return files.load(source).edited(change(source.text))


def double(text):
    return text.replace("y = 2", "y = 4").replace("z = 3", "w = 0\nz = 3")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_newlines_and_mark_are_kept(tmp_path, newline, mark, last):
    def raw(text):
        text = text if last else text.removesuffix("\n")
        return mark + text.replace("\n", newline).encode()

    assert edited(tmp_path, raw(OLD), double) == raw(NEW)


def test_mixed_newlines_stay_where_they_are(tmp_path):
    got = edited(tmp_path, b"x = 1\r\ny = 2  # kept\nz = 3\r\n", double)
    assert got == b"x = 1\r\ny = 4  # kept\nw = 0\nz = 3\r\n"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8"])
def test_encodings_are_kept(tmp_path, encoding):
    text = f"# -*- coding: {encoding} -*-\nname = 'é'\ny = 2\nz = 3\n"
    got = edited(tmp_path, text.encode(encoding), double)
    assert got == double(text).encode(encoding)


def test_what_the_encoding_lacks_is_refused(tmp_path):
    data = "# coding: latin-1\ny = 'é'\n".encode("latin-1")
    with pytest.raises(WriteError, match="needs characters that iso-8859-1 lacks"):
        edited(tmp_path, data, lambda text: text + "z = 'π'\n")


def test_a_last_line_without_newline_stays_without(tmp_path):
    assert edited(tmp_path, b"a = 1\nb = 2", lambda t: t.replace("2", "3")) == b"a = 1\nb = 3"
    assert edited(tmp_path, b"a = 1\nb = 2", lambda t: t + "\nc = 3") == b"a = 1\nb = 2\nc = 3"


def written(path, data):
    raw = files.load(load_source(str(path)))
    files.replace(raw, data)


def test_mode_and_link_are_kept(tmp_path):
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text(OLD)
    real.chmod(0o750)
    link.symlink_to(real)
    written(link, NEW.encode())
    assert link.is_symlink()
    assert real.read_text() == NEW
    assert stat.S_IMODE(real.stat().st_mode) == 0o750
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.py", "real.py"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "s.py"
    path.write_text(OLD)
    source = load_source(str(path))
    raw = files.load(source)
    path.write_text("other = 1\n")
    with pytest.raises(WriteError, match="changed while it was being checked"):
        files.load(source)
    with pytest.raises(WriteError, match="changed while it was being checked"):
        files.replace(raw, NEW.encode())
    assert path.read_text() == "other = 1\n"
    assert os.listdir(tmp_path) == ["s.py"]


def test_a_read_only_file_stays_as_it_is(tmp_path, monkeypatch):
    path = tmp_path / "s.py"
    path.write_text(OLD)
    monkeypatch.setattr(files.os, "access", lambda *_: False)  # the superuser may write anything
    with pytest.raises(WriteError, match="is read-only"):
        written(path, NEW.encode())
    assert path.read_text() == OLD


def test_a_hard_link_is_refused(tmp_path):
    path = tmp_path / "s.py"
    path.write_text(OLD)
    os.link(path, tmp_path / "twin.py")
    with pytest.raises(WriteError, match="has 2 names"):
        written(path, NEW.encode())


@pytest.mark.parametrize("broken", ["fsync", "replace", "fchmod"])
def test_any_failure_leaves_the_file_and_no_litter(tmp_path, monkeypatch, broken):
    path = tmp_path / "s.py"
    path.write_text(OLD)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, broken, fail)
    with pytest.raises(WriteError, match="No space left on device"):
        written(path, NEW.encode())
    assert path.read_text() == OLD
    assert os.listdir(tmp_path) == ["s.py"]


FORKS = """
import os, random, signal, sys, time
from pathlib import Path
from rlproof.repair import files
path, rng = sys.argv[1], random.Random(int(sys.argv[2]))
texts = [(c * 400_000).encode() for c in ("x = 1\\n", "y = 2\\n")]
for _ in range(40):
    pid = os.fork()
    if not pid:
        while True:
            for text in texts:
                raw = files.Raw(path, Path(path).read_bytes(), "utf-8", b"")
                files.replace(raw, text)
    time.sleep(rng.uniform(0.001, 0.03))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    litter = list(Path(path).parent.glob(".rlproof-*"))
    print("kt" if litter else "k", end="")
    for file in litter:
        file.unlink()
    if Path(path).read_bytes() not in texts:
        print("p", end="")
"""


@pytest.mark.slow
def test_killed_at_any_moment_the_file_is_old_or_new(tmp_path):
    """200 kills at random moments of an endless row of writes of 2.4 MB each.

    A kill inside a write leaves the temporary file behind: that many are counted as `t`.
    """
    path = tmp_path / "s.py"
    path.write_bytes(b"x = 1\n" * 400_000)
    kills = inside = 0
    rng = random.Random(0)
    for _ in range(5):
        command = [sys.executable, "-c", FORKS, str(path), str(rng.randrange(10**9))]
        out = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=120).stdout
        kills += out.count(b"k")
        inside += out.count(b"t")
        assert b"p" not in out, "a file in part was seen"
    assert kills == 200
    assert inside >= 20, "too few of the kills fell into a write to prove anything"
