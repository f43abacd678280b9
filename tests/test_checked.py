"""`rlproof.check` from Python: findings, text, the page in a frame, and cells of IPython."""

import html
import re
import subprocess
import sys

import pytest

import rlproof
from rlproof.errors import ConfigError, NothingToCheckError, SourceError
from rlproof.faults.page import page

BROKEN, RIGHT = page("SUR004").planted, page("SUR004").healthy


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "train.py"
    path.write_text(BROKEN, encoding="utf-8")
    return path


def framed(checked):
    found = re.fullmatch(r'<iframe [^>]*srcdoc="([^"]*)"[^>]*></iframe>', checked._repr_html_())
    return html.unescape(found[1])


def test_a_path_gives_what_the_command_prints(script):
    checked = rlproof.check("train.py")
    assert [f"{f.code} {f.severity}" for f in checked.findings] == ["SUR004 error", "LOP010 note"]
    assert checked.failed
    assert repr(checked) == "<rlproof.check: SUR004 error, LOP010 note>"
    command = [sys.executable, "-m", "rlproof", "check", "train.py"]
    printed = subprocess.run(
        command, capture_output=True, text=True, env={"COLUMNS": "100", "PATH": "/usr/bin",
        "PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONIOENCODING": "utf-8"}, check=False,
    )  # fmt: skip
    assert str(checked) == printed.stdout


def test_a_right_script_has_nothing_to_tell(script):
    script.write_text(RIGHT, encoding="utf-8")
    checked = rlproof.check(script)
    assert not checked.failed
    assert "Found 1 note: 1 function recognised, 1 judged" in str(checked)


def test_the_frame_holds_the_whole_page_and_asks_nobody(script):
    checked = rlproof.check(script)
    inner = framed(checked)
    assert inner.startswith("<!DOCTYPE html>")
    assert inner == checked.outcome.render("html", 100)
    assert "SUR004" in inner
    assert "prefers-color-scheme: dark" in inner
    assert "default-src 'none'" in html.unescape(inner)  # the page may load nothing
    assert not re.search(r'(src|href)="(https?:)?//', inner)
    assert checked._repr_html_() == rlproof.check(script)._repr_html_()


def test_files_that_cannot_be_read_are_told_beside_the_others(script):
    (script.parent / "bad.py").write_text("def f(:\n", encoding="utf-8")
    text = str(rlproof.check(script.parent))
    assert text.startswith("error: ")
    assert "bad.py:1: not valid Python" in text
    assert "SUR004" in text


def test_errors(script):
    with pytest.raises(SourceError, match="no such file"):
        rlproof.check("gone.py")
    (script.parent / "empty.py").write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(NothingToCheckError):
        rlproof.check("empty.py")
    with pytest.raises(ConfigError, match="for a function"):
        rlproof.check(script, role="loss")
    with pytest.raises(AttributeError, match="checkk"):
        _ = rlproof.checkk


def test_importing_rlproof_stays_light():
    code = "import sys, rlproof; print(*{'numpy', 'msgspec', 'click', 'ast'} & set(sys.modules))"
    printed = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert printed == []


CELLS = """
import numpy as np
%time x = 1
def broken(
def policy_loss(logp, old_logp, adv, mask):
    ratio, a = np.exp(logp - old_logp), adv[:, None]
    return -(np.minimum(ratio * a, np.clip(ratio, 0.8, 1.2) * a) * mask).sum() / mask.sum()

def policy_loss(logp, old_logp, adv, mask):
    ratio, a = np.exp(logp - old_logp), adv[:, None]
    return -(np.maximum(ratio * a, np.clip(ratio, 0.8, 1.2) * a) * mask).sum() / mask.sum()

"""
SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in {cells!r}:
    shell.run_cell(cell, store_history=True)
import rlproof
checked = rlproof.check(shell.user_ns["policy_loss"])
for finding in checked.findings:
    print("FOUND", finding.code, checked.reports[0].spot(finding.place.line))
print(str(checked))
"""


def test_a_function_of_a_notebooks_cells():
    """Cells 1 to 5: an import, a magic, a syntax error, a right loss, and it once more, broken.

    The last definition counts, as it does in the session; its third line is the wrong one.
    """
    pytest.importorskip("IPython", reason="IPython is not installed")
    first, magic, wrong, *rest = CELLS.strip("\n").split("\n")
    right, broken = "\n".join(rest).strip("\n").split("\n\n")
    code = SHELL.format(cells=[first, magic, wrong, right, broken])
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "FOUND SUR004 cell 5, line 3" in printed
    assert "cells:cell 5, line 3:" in printed
