"""From a path to a script: its targets and what its comments declare."""

import pytest

from rlproof.errors import NothingToCheckError, SourceError
from rlproof.read.script import read
from rlproof.read.targets import Role, body_without_doc

LOSS = "def loss(logp, old_logp, advantages):\n    return 0\n"
ADVANTAGES = "def group_advantages(rewards, group_size):\n    return rewards\n"


def script(folder, text):
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    return read(str(path))


@pytest.mark.parametrize(
    ("comment", "declared"),
    [
        ("# rlproof: objective=dapo", "dapo"),
        ("#rlproof:objective = dr_grpo", "dr_grpo"),
        ("    #  rlproof: objective=dr-grpo  ", "dr-grpo"),
        ("# rlproof: objective=a.b", "a.b"),  # whether it exists is decided later
        ("# objective=dapo", None),
        ("# rlproof: recipe=dapo", None),
        ("x = 1  # rlproof: objective=dapo", None),  # on a line of its own only
        ("# see rlproof: objective=dapo", None),
        ("# rlproof: objective=dapo, mostly", None),
        ("# rlproof: objective=reinforce++", "reinforce++"),
        ("", None),
    ],
)
def test_declared_objective(tmp_path, comment, declared):
    assert script(tmp_path, f"import math\n{comment}\n{LOSS}").objective == declared


def test_first_declaration_counts(tmp_path):
    text = "# rlproof: objective=dapo\n# rlproof: objective=gspo\n" + LOSS
    assert script(tmp_path, text).objective == "dapo"


def test_declaration_inside_a_string_is_no_comment(tmp_path):
    assert script(tmp_path, f'HELP = """\n# rlproof: objective=dapo\n"""\n{LOSS}').objective is None


def test_targets_by_role(tmp_path):
    found = script(tmp_path, LOSS + ADVANTAGES + LOSS.replace("loss", "other"))
    assert [t.name for t in found.of(Role.LOSS)] == ["loss", "other"]
    assert [t.name for t in found.of(Role.ADVANTAGES)] == ["group_advantages"]
    assert found.of(Role.TRAIN) == []
    assert found.source.lines[0] == LOSS.splitlines()[0]


def test_reading_runs_nothing(tmp_path):
    found = script(tmp_path, f"open({str(tmp_path / 'made')!r}, 'w')\nraise SystemExit(3)\n{LOSS}")
    assert [t.name for t in found.targets] == ["loss"]
    assert not (tmp_path / "made").exists()


def test_docstring_and_body(tmp_path):
    text = LOSS.replace("    return", '    """To be minimised."""\n    return')
    documented, bare = script(tmp_path, text).targets[0], script(tmp_path, LOSS).targets[0]
    assert (documented.doc, bare.doc) == ("To be minimised.", "")
    assert len(body_without_doc(documented.node)) == len(body_without_doc(bare.node)) == 1


def test_unreadable_scripts(tmp_path):
    with pytest.raises(SourceError, match="no such file"):
        read(str(tmp_path / "absent.py"))
    with pytest.raises(NothingToCheckError, match="empty"):
        script(tmp_path, "\n")
    with pytest.raises(SourceError, match=r"script.py:2: not valid Python"):
        script(tmp_path, "x = 1\ndef (:\n")
