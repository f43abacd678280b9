"""Methods as functions: what of `self` becomes a parameter, a helper, a constant, or a doubt."""

import ast

import pytest

from rlproof.read.methods import extraction_methods
from rlproof.read.names import Slot

HEAD = "class T(Base):\n    def get_logps(self, ids):\n"
TAIL = "        return logits.log_softmax(-1).gather(-1, ids[..., None])\n"


def only(body, more=""):
    found = extraction_methods(ast.parse(HEAD + body + TAIL + more))
    return found[0] if found else None


def slots(target):
    return {p.name: p.slot for p in target.parameters}


def test_what_is_read_of_self_becomes_a_parameter():
    target = only("        logits = self.policy.model(ids).logits / self.args.temperature\n")
    assert slots(target) == {
        "ids": Slot.TOKENS, "self_model": Slot.MODEL, "self_temperature": Slot.TEMPERATURE,
    }  # fmt: skip
    assert (target.name, target.node.lineno) == ("T.get_logps", 2)


def test_lines_stay():
    target = only("        logits = self.model(ids).logits\n")
    assert [s.lineno for s in target.node.body] == [3, 4]


def test_methods_that_are_called_go_along():
    more = "    def cut(self, x):\n        return x[:, :-1] / self.temperature\n"
    target = only("        logits = self.cut(self.model(ids).logits)\n", more)
    assert target.node.body[0].name == "_self_cut"
    assert slots(target)["self_temperature"] is Slot.TEMPERATURE


def test_what_says_where_things_run_is_left_out():
    target = only(
        "        with self.accelerator.autocast(), torch.no_grad():\n"
        "            logits = self.accelerator.unwrap_model(self.model)(ids).logits\n"
    )
    text = ast.unparse(target.node)
    assert "accelerator" not in text
    assert "with torch.no_grad()" in text


def test_settings_of_one_device_are_constants():
    target = only(
        "        logits = self.model(ids).logits\n"
        "        if 'logits_to_keep' in self.model_kwarg_keys and not self.padding_free:\n"
        "            pass\n"
    )
    assert set(slots(target)) == {"ids", "self_model"}


def test_unknown_settings_are_unseen_unless_asked_whether_they_are_none():
    body = "        logits = self.model(ids).logits\n        x = self.scale\n"
    assert slots(only(body))["self_scale"] is Slot.UNSEEN
    assert slots(only(body + "        y = self.scale is None\n"))["self_scale"] is None


@pytest.mark.parametrize(
    "body",
    [
        "        logits = super().model(ids).logits\n",
        "        logits = run(self, ids).logits\n",
        "        self.count = 1\n        logits = self.model(ids).logits\n",
    ],
)
def test_methods_that_need_the_object_are_left_alone(body):
    assert only(body) is None
