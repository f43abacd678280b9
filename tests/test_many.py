"""Many files at once: the same report as one by one, whatever a file or a helper does."""

import signal
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlproof import many
from rlproof.checks import check_paths
from rlproof.cli import main
from rlproof.errors import ConfigError, SandboxError
from rlproof.faults.page import page
from rlproof.options import Options, cpus
from rlproof.single import Single

CODES = ("SUR004", "KLD002", "ADV009", "MSK003", "SUR009")
OPTIONS = Options.resolve((), (), None, True, None, None)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files with faults, a healthy one, one without a role, one that is broken, a package."""
    monkeypatch.chdir(tmp_path)
    for code in CODES:
        Path(f"{code}.py").write_text(page(code).planted, "utf-8")
    Path("healthy.py").write_text(page("SUR004").healthy, "utf-8")
    Path("plain.py").write_text("x = 1\n", "utf-8")
    Path("bad.py").write_text("def f(:\n", "utf-8")
    Path("apart").mkdir()
    Path("apart/losses.py").write_text(page("KLD001").planted, "utf-8")
    Path("train.py").write_text("from apart.losses import grpo_loss\n", "utf-8")
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(main, ["check", *arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.slow
def test_the_output_is_the_same_bytes_in_every_format(folder):
    files = sorted(map(str, folder.glob("*.py")))
    for style in ("json", "full", "sarif"):
        alone, together = (run("--format", style, "--jobs", n, *files) for n in ("1", "3"))
        assert alone == together
    assert alone[0] == 2, "one file is no Python"
    assert "losses.py" in together[1], "a file that another imports from is checked as well"


def test_evidence_that_is_no_number_survives_the_way(folder):
    """ADV009 is shown by NaN, which no JSON has."""
    files = [f"{code}.py" for code in CODES[:4]]
    alone, together = (
        [s.report for s in many.examined(files, Options(frozenset(), None, None, True, 10.0,
                                                        "full", jobs=jobs))]
        for jobs in (1, 2)
    )  # fmt: skip
    assert repr(alone) == repr(together)
    assert "nan" in repr(alone)


def test_a_wrong_setting_in_a_file_is_that_of_the_first_such_file(folder):
    for name in ("b.py", "d.py"):
        text = "# rlproof: objective=" + name[0] + "\n" + page("SUR004").planted
        Path(name).write_text(text, "utf-8")
    files = ["healthy.py", "b.py", "plain.py", "d.py", *(f"{code}.py" for code in CODES)]
    for jobs in ("1", "3"):
        code, _, errors = run("--no-run", "--jobs", jobs, *files)
        assert (code, errors.count("\n")) == (2, 1)
        assert "'b'" in errors


def test_a_helper_that_dies_costs_one_file(folder, monkeypatch):
    """The helper is killed at its first request; the next file has a new one."""
    asked, original = [], many._asked

    def dying(helper, request):
        asked.append(request["path"])
        if request["path"] == "SUR004.py":
            helper.send_signal(signal.SIGKILL)
            helper.wait()
        return original(helper, request)

    monkeypatch.setattr(many, "_asked", dying)
    files = ["SUR004.py", "healthy.py", "KLD002.py", "plain.py"]
    options = Options(frozenset(), None, None, False, 10.0, "full", jobs=2)
    first, *others = many.examined(files, options)
    assert isinstance(first.error, SandboxError)
    assert "SUR004.py: the process that checked it ended" in str(first.error)
    assert [single.report is not None for single in others] == [True, True, False]
    assert sorted(asked) == sorted(files)


def test_what_a_helper_raises_is_raised_here(folder, monkeypatch):
    def raising(helper, request):
        kind = "RecursionError" if request["path"] == "plain.py" else "KeyError"
        return many._opened({"raised": [kind, "deep"]})

    monkeypatch.setattr(many, "_asked", raising)
    options = Options(frozenset(), None, None, False, 10.0, "full", jobs=2)
    for first, kind in (("plain.py", "RecursionError"), ("SUR004.py", "KeyError")):
        with pytest.raises(RuntimeError, match="deep") as caught:
            list(many.examined([first] * 4, options))
        assert caught.type.__name__ == kind


def test_no_helper_is_left_when_the_answers_are_not_wanted(folder, monkeypatch):
    begun, original = [], many._Team._begun

    def counted(team):
        begun.append(original(team))
        return begun[-1]

    monkeypatch.setattr(many._Team, "_begun", counted)
    options = Options(frozenset(), None, None, False, 10.0, "full", jobs=2)
    answers = many.examined(["plain.py", *(f"{code}.py" for code in CODES)], options)
    next(answers)
    answers.close()
    assert begun
    assert all(helper.poll() is not None for helper in begun)
    assert not [t for t in threading.enumerate() if t.name.endswith("(work)")]


def test_one_file_and_repairs_have_no_helpers(folder, monkeypatch):
    monkeypatch.setattr(many, "_shared", None)
    many_jobs = Options(frozenset(), None, None, False, 10.0, "full", jobs=8)
    assert len(list(many.examined(["healthy.py"], many_jobs))) == 1
    from dataclasses import replace

    two = list(many.examined(["plain.py", "bad.py", "plain.py"], replace(many_jobs, diff=True,
                                                                        run=True)))  # fmt: skip
    assert all(isinstance(single, Single) and single.error for single in two)


def test_options(folder):
    assert Options.resolve((), (), None, True, None, None, jobs=None).jobs == cpus() >= 1
    assert run("--jobs", "0", "plain.py")[0] == 2
    with pytest.raises(ConfigError):
        check_paths(("healthy.py",), Options.resolve((), (), "grppo", True, None, None))
