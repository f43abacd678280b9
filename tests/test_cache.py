"""The cache: what is taken from it, what makes an entry void, and what is never kept."""

import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

import rlproof.single
from rlproof import cache as caches
from rlproof.checks import check_paths
from rlproof.cli import main
from rlproof.faults.page import page
from rlproof.options import Options
from rlproof.read.dependencies import dependencies

SUR, HEALTHY = page("SUR004").planted, page("SUR004").healthy
FOLDER = ".rlproof_cache"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("RLPROOF_CACHE_DIR")
    monkeypatch.chdir(tmp_path)
    Path("one.py").write_text(SUR, "utf-8")
    return tmp_path


@pytest.fixture
def executed(monkeypatch):
    """The paths of files that were executed."""
    paths, original = [], rlproof.single.check

    def counting(script, **options):
        paths.append(script.source.path)
        return original(script, **options)

    monkeypatch.setattr(rlproof.single, "check", counting)
    return paths


def run(*arguments):
    result = CliRunner().invoke(main, ["check", "--format", "json", *arguments])
    assert result.exit_code in (0, 1, 5), result.output
    return result.stdout


def read(*arguments):
    """Where it is all the same what is found."""
    return run("--no-run", *arguments)


def entries():
    return sorted(p for p in Path(FOLDER).iterdir() if len(p.name) == 64)


def test_a_second_run_executes_nothing_and_says_the_same(folder, executed):
    texts = {run("one.py") for _ in range(2)}
    assert (len(texts), executed) == (1, ["one.py"])
    assert run("one.py", "--no-cache") in texts
    assert executed == ["one.py"] * 2
    for style in ("full", "concise", "sarif", "html", "github"):
        kept, new = (
            CliRunner().invoke(main, ["check", "one.py", "--format", style, *more]).output
            for more in ([], ["--no-cache"])
        )
        assert kept == new
    assert Path(FOLDER, ".gitignore").read_text() == "*\n"


def test_selection_needs_no_new_execution_and_settings_do(folder, executed):
    run("one.py")
    run("one.py", "--select", "KLD")
    assert len(executed) == 1
    run("one.py", "--objective", "dapo")
    run("one.py", "--no-run")
    run("one.py", "--timeout", "9")
    assert len(executed) == 4
    for options in ([], ["--objective", "dapo"], ["--no-run"], ["--timeout", "9"]):
        run("one.py", *options)
    assert len(executed) == 4


def test_an_edit_an_ignore_and_another_path_are_executed(folder, executed):
    run("one.py")
    Path("one.py").write_text(HEALTHY, "utf-8")
    assert "SUR004" not in run("one.py")
    Path("two.py").write_text(HEALTHY, "utf-8")
    run("two.py")
    assert executed == ["one.py", "one.py", "two.py"]
    assert len(entries()) == 2, "an entry is replaced, so the folder grows with paths alone"


def test_an_imported_file_of_the_project_counts_and_so_does_one_that_appears(folder, executed):
    """`helper` decides what the loss is; `extra` is not there at first."""
    lines = SUR.split("\n")
    lines.insert(lines.index("import math") + 1, "import helper\ntry:\n    import extra\n"
                                                "except ImportError:\n    pass\n")  # fmt: skip
    Path("one.py").write_text("\n".join(lines), "utf-8")
    Path("helper.py").write_text("import inner\n", "utf-8")
    Path("inner.py").write_text("A = 1\n", "utf-8")
    read("one.py"), read("one.py")
    assert len(executed) == 1
    for name in ("helper.py", "inner.py", "extra.py"):
        Path(name).write_text("import inner\nB = 2\n", "utf-8")
        before = len(executed)
        read("one.py"), read("one.py")
        assert len(executed) == before + 1, name
    Path("inner.py").unlink()
    read("one.py")
    assert len(executed) == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.setattr(rlproof, "__version__", "0.0.0"),
        lambda m: m.setattr("sys.version", "4.0"),
        lambda m: m.setattr(caches, "_packages", lambda: iter([("torch-99.dist-info", 1, 0)])),
        lambda m: m.setattr(caches, "_own_files", lambda: iter([("judge/check.py", 1, 2)])),
    ],
)
def test_another_version_of_anything_voids_entries(folder, executed, monkeypatch, change):
    read("one.py")
    change(monkeypatch)
    read("one.py")
    assert len(executed) == 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: b"",
        lambda raw: raw[:-1],
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:-5] + b"xxxxx",
        lambda raw: raw + b"\0",
        lambda raw: b"rlproof cache 2\n" + raw[16:],
        lambda raw: raw[:16] + caches.hashlib.sha256(b"\xc1").digest() + b"\xc1",
        lambda raw: raw[:16] + caches.hashlib.sha256(b"\x91\x01").digest() + b"\x91\x01",
    ],
)
def test_a_broken_entry_is_none(folder, executed, spoil):
    first = read("one.py")
    [entry] = entries()
    entry.write_bytes(spoil(entry.read_bytes()))
    assert read("one.py") == first
    assert len(executed) == 2
    read("one.py")
    assert len(executed) == 2, "and it is written anew"


def test_a_folder_that_takes_no_entry_is_no_error(folder, executed):
    Path(FOLDER).write_text("a file", "utf-8")
    assert read("one.py") == read("one.py")
    assert len(executed) == 2
    Path(FOLDER).unlink()
    read("one.py")
    [entry] = entries()
    entry.unlink()
    entry.mkdir()
    assert read("one.py") == read("one.py")


@pytest.mark.parametrize(
    "line",
    [
        "DATA = open('data.txt')",
        "from pathlib import Path\nDATA = Path('x').read_text()",
        "import importlib\nm = importlib.import_module('x')",
        "import os\nX = os.environ.get('X')",
        "import sys\nsys.path.append('lib')",
        "exec('x = 1')",
    ],
)
def test_what_reads_other_files_is_not_kept(folder, executed, line):
    Path("one.py").write_text(f"{SUR}\n{line}\n", "utf-8")
    read("one.py"), read("one.py")
    assert len(executed) == 2
    assert dependencies("one.py", {}) is None


def test_a_pipe_where_a_module_could_be_is_not_opened(folder):
    os.mkfifo("helper.py")
    Path("one.py").write_text(f"import helper\n{SUR}", "utf-8")
    assert "special" in (dependencies("one.py", {}) or {}).values()


def test_methods_of_the_same_name_and_written_files_are_harmless(folder):
    text = f"{SUR}\ndef save(model):\n    model.eval()\n    with open('log', 'w') as f:\n"
    Path("one.py").write_text(text + "        f.write('x')\n", "utf-8")
    assert dependencies("one.py", {})


def test_what_a_clock_decided_is_not_kept(folder, executed):
    slow = "import time\n\ndef grpo_loss(logps, old_logps, advantages, mask):\n    time.sleep(9)\n"
    Path("one.py").write_text(slow + "    return 0.0\n", "utf-8")
    for _ in range(2):
        assert "did not finish" in run("one.py", "--timeout", "0.2")
    assert len(executed) == 2


def test_repairs_are_not_kept(folder, executed):
    run("one.py", "--diff")
    assert not Path(FOLDER).exists()


def test_a_file_that_is_nothing_is_remembered_and_an_error_is_not(folder, monkeypatch):
    Path("plain.py").write_text("x = 1\n", "utf-8")
    Path("bad.py").write_text("def f(:\n", "utf-8")
    one, two = (
        CliRunner().invoke(main, ["check", "plain.py", "bad.py", "one.py", "--format", "json"])
        for _ in range(2)
    )
    assert (one.output, one.exit_code) == (two.output, two.exit_code)
    assert "no GRPO function recognised" in one.stderr
    assert len(entries()) == 2


def test_paths_that_are_no_text_and_notebooks_are_kept(folder, executed):
    cell = {"cell_type": "code", "source": SUR}
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    Path("book.ipynb").write_text(json.dumps(book), "utf-8")
    odd = os.fsdecode(b"odd\xff.py")
    shutil.copy("one.py", odd)
    assert read("book.ipynb", odd) == read("book.ipynb", odd)
    assert len(executed) == 2


def test_entries_are_readable_by_others_as_reports_are_and_hold_no_code(folder):
    read("one.py")
    [entry] = entries()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o644
    assert b"\x80\x04" not in entry.read_bytes()[:60], "no pickle"


def test_the_place_is_beside_pyproject_or_where_the_variable_says(folder, monkeypatch):
    Path("pyproject.toml").write_text("", "utf-8")
    Path("inner").mkdir()
    monkeypatch.chdir("inner")
    read("../one.py")
    assert Path("..", FOLDER).is_dir()
    monkeypatch.setenv("RLPROOF_CACHE_DIR", "elsewhere")
    read("../one.py")
    assert Path("elsewhere").is_dir()
    monkeypatch.setenv("RLPROOF_CACHE_DIR", "")
    assert Options.resolve((), (), None, True, None, None, cache=True).cache is None


def test_functions_of_the_package_keep_nothing_unless_they_are_told(folder):
    check_paths(("one.py",), Options.resolve((), (), None, True, None, None))
    assert not Path(FOLDER).exists()
