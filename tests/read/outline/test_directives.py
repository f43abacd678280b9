"""Roles that a user gives: in comments, and as settings of the project."""

import ast

import pytest

from rlproof.errors import ConfigError
from rlproof.read.names import Slot
from rlproof.read.script import read
from rlproof.read.targets import Role

BODY = "    r = torch.exp(p - q)\n    return -(r * z * m).sum() / m.sum()\n"
WANTED = {"p": Slot.NEW, "q": Slot.OLD, "z": Slot.ADVANTAGES, "m": Slot.MASK}


def targets(folder, text, roles=None):
    path = folder / "script.py"
    path.write_text("import torch\n" + text, encoding="utf-8")
    return [t for t in read(str(path), roles).targets if t.role is Role.LOSS]


def slots(target):
    return {p.name: p.slot for p in target.parameters}


@pytest.mark.parametrize(
    "text",
    [
        "# rlproof: loss new=p old=q adv=z mask=m\ndef f(p, q, z, m):\n" + BODY,
        "def f(p, q, z, m):  # rlproof: loss new=p, old=q, adv=z, mask=m\n" + BODY,
        "# rlproof: loss new=p old=q adv=z mask=m\n@wrap\ndef f(p, q, z, m):\n" + BODY,
        "def f(p, q, z, m):\n    # rlproof: loss new=p old=q adv=z mask=m\n" + BODY,
    ],
)
def test_a_comment_on_or_above_a_def_or_in_it(tmp_path, text):
    (target,) = targets(tmp_path, text)
    assert (target.name, slots(target)) == ("f", WANTED)


def test_a_comment_on_the_statement_that_makes_the_loss(tmp_path):
    text = (
        "def train(data, model):\n    for p, q, z, m in data:\n"
        "        r = torch.exp(p - q)\n"
        "        v = -(r * z * m).sum()  # rlproof: loss new=p old=q adv=z mask=m\n"
        "        use(v)\n"
    )
    (target,) = targets(tmp_path, text)
    assert (target.name, slots(target)) == ("train (inline loss, line 5)", WANTED)
    assert ast.unparse(target.node.body[-1]) == "return v"


def test_settings_of_the_project_hold_everywhere(tmp_path):
    roles = {"p": "new", "q": "old", "z": "adv", "m": "mask"}
    (target,) = targets(tmp_path, "def f(p, q, z, m):\n" + BODY, roles)
    assert slots(target) == WANTED


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# rlproof: loss newer=p\ndef f(p):\n    return p\n", "'newer' is no role; did you mean"),
        ("# rlproof: loss new=x\ndef f(p):\n    return p\n", "the code has no name 'x'"),
        ("y = 1\n# rlproof: loss new=y\n", "no code follows this comment"),
    ],
)
def test_what_a_comment_gets_wrong_is_an_error_with_its_line(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as error:
        targets(tmp_path, text)
    line = 3 if text.startswith("y") else 2
    assert f"script.py:{line}: " in str(error.value)


def test_an_unknown_role_of_the_project(tmp_path):
    with pytest.raises(ConfigError, match=r"\[tool.rlproof.roles\]: 'advantage' is no role"):
        targets(tmp_path, "x = 1\n", {"z": "advantage"})


def test_text_in_strings_is_no_comment(tmp_path):
    assert targets(tmp_path, 'x = "# rlproof: loss newer=p"\n') == []
