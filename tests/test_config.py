"""Settings in pyproject.toml: where they are found, and what is refused."""

import pytest

from rlproof.checks import Options, check_paths
from rlproof.config import Config, load
from rlproof.errors import ConfigError


def settings(folder, text):
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return load(folder)


def test_all_settings(tmp_path):
    text = """
[tool.rlproof]
select = ["SUR", "KLD"]
ignore = ["SUR013"]
objective = "dapo"
timeout = 2.5
format = "json"
"""
    assert settings(tmp_path, text) == Config(("SUR", "KLD"), ("SUR013",), "dapo", 2.5, "json")


@pytest.mark.parametrize("text", ["", "[tool.other]\nx = 1\n", "[tool.rlproof]\n", "[project]\n"])
def test_nothing_set(tmp_path, text):
    assert settings(tmp_path, text) == Config()


def test_parent_folders_are_searched(tmp_path):
    settings(tmp_path, '[tool.rlproof]\nobjective = "dapo"\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert load(inner).objective == "dapo"


def test_nearest_file_counts_alone(tmp_path):
    settings(tmp_path, '[tool.rlproof]\nobjective = "dapo"\ntimeout = 3\n')
    (tmp_path / "a").mkdir()
    assert settings(tmp_path / "a", '[tool.rlproof]\nobjective = "gspo"\n') == Config(
        objective="gspo"
    )
    assert settings(tmp_path / "a", "[project]\n") == Config()


def test_folder_of_that_name_is_no_file(tmp_path):
    settings(tmp_path, "[tool.rlproof]\ntimeout = 3\n")
    (tmp_path / "a" / "pyproject.toml").mkdir(parents=True)
    assert load(tmp_path / "a").timeout == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("selects = []", "has no setting 'selects'; did you mean select?"),
        ("xyz = 1", "has no setting 'xyz'; known: select, ignore, objective, timeout, format"),
        ('select = "SUR"', "select = 'SUR'; expected a list of strings"),
        ("ignore = [1]", "ignore = [1]; expected a list of strings"),
        ("objective = 3", "objective = 3; expected a string"),
        ("format = []", "format = []; expected a string"),
        ('timeout = "1"', "timeout = '1'; expected "),
        ("timeout = true", "timeout = True; expected "),
        ("timeout =", "can't be read as TOML"),
    ],
)
def test_wrong_setting_names_file_value_and_expectation(tmp_path, line, message):
    with pytest.raises(ConfigError) as raised:
        settings(tmp_path, f"[tool.rlproof]\n{line}\n")
    assert str(raised.value).startswith(str(tmp_path / "pyproject.toml"))
    assert message in str(raised.value)


def test_undecodable_file(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes(b"# \xff\n")
    with pytest.raises(ConfigError, match="can't be read as TOML"):
        load(tmp_path)


@pytest.mark.parametrize(
    "text", ["tool = 3\n", "[tool]\nrlproof = 3\n", "[[tool.rlproof]]\ntimeout = 1\n"]
)
def test_value_in_the_place_of_a_table(tmp_path, text):
    with pytest.raises(ConfigError):
        settings(tmp_path, text)


@pytest.mark.parametrize("value", ["-1", "0", "nan"])
def test_time_that_is_none(tmp_path, value):
    with pytest.raises(ConfigError):
        settings(tmp_path, f"[tool.rlproof]\ntimeout = {value}\n")


def test_expected_time_is_a_number(tmp_path):
    """Not `int`: 2.5 is as good."""
    with pytest.raises(ConfigError, match="expected a number of seconds"):
        settings(tmp_path, '[tool.rlproof]\ntimeout = "1"\n')


LOSS = '''
import numpy as np

def loss(new_logps, old_logps, advantages, mask, clip_eps=0.2):
    """The loss, to be minimised."""
    ratio, adv = np.exp(new_logps - old_logps), advantages[:, None]
    gain = np.minimum(ratio * adv, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * adv)
    return -(gain * mask).sum() / mask.sum()
'''


@pytest.mark.parametrize(
    ("line", "comment", "project", "differs"),
    # the loss is a token mean: GSPO has the ratio of rows, so declaring it gives a finding
    [
        ("gspo", "dapo", "dapo", True),
        ("dapo", "gspo", "gspo", False),
        (None, "gspo", "dapo", True),
        (None, "dapo", "gspo", False),
        (None, None, "gspo", True),
        (None, None, None, False),
    ],
)
def test_command_line_over_comment_over_project(
    tmp_path, monkeypatch, line, comment, project, differs
):
    monkeypatch.chdir(tmp_path)
    said = f"# rlproof: objective={comment}\n" if comment else ""
    (tmp_path / "script.py").write_text(said + LOSS, encoding="utf-8")
    text = f'[tool.rlproof]\nobjective = "{project}"\n' if project else ""
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    options = Options.resolve((), (), line, True, None, None)
    (report,) = check_paths(("script.py",), options).reports
    assert any(finding.code == "OBJ001" for finding in report.findings) == differs
