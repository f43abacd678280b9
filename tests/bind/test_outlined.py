"""Outlined functions in the child process: made there, called there, judged like any other."""

import ast

import pytest
from tests.support.checking import check_text, strong
from tests.support.sampling import one_in

from rlproof.bind.outlined import functions, packed
from rlproof.bind.sandbox import Sandbox
from rlproof.read.script import read
from rlproof.read.source import Source

torch = pytest.importorskip("torch")

TRAINER = """
import torch
from trl import GRPOTrainer


class Mine(GRPOTrainer):
    def __init__(self, eps=0.2, **kwargs):
        super().__init__(**kwargs)
        self.eps_clip = eps

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        mask = inputs["completion_mask"]
        logps = self._get_per_token_logps(model, inputs["completion_ids"])
        ratio = torch.exp(logps - inputs["old_per_token_logps"])
        adv = inputs["advantages"].unsqueeze(1)
        kept = ratio.clamp(1 - self.eps_clip, 1 + self.eps_clip)
        loss = {sign}torch.min(ratio * adv, kept * adv)
        self._metrics["kl"].append(loss.mean().item())
        return {reduce}
"""
MEAN = "((loss * mask).sum(-1) / mask.sum(-1)).mean()"


def source(text):
    return Source("script.py", text, ast.parse(text))


def test_a_function_is_made_in_the_module_and_leaves_its_names_alone():
    node = ast.parse("def f(*, x):\n    return x + f(2) + K").body[0]
    text = "K = 10\ndef f(y):\n    return y * 100\n"
    with Sandbox(source(text), outlined={"outlined:0": node}) as sandbox:
        call = {"function": "outlined:0", "arguments": {"x": ["raw", 1]}, "want": "plain"}
        original = {"function": "f", "arguments": {"y": ["raw", 3]}, "want": "plain"}
        answers = sandbox.call([call, original])
    assert [a["value"] for a in answers] == [1 + 200 + 10, 300]


def test_what_it_raises_names_the_line_of_the_script():
    node = ast.parse("\n\n\ndef f(*, x):\n    y = x\n    return y / 0").body[0]
    with Sandbox(source("K = 1\n\n\n\n\n\n"), outlined={"outlined:0": node}) as sandbox:
        (answer,) = sandbox.call(
            [{"function": "outlined:0", "arguments": {"x": ["raw", 1.0]}, "want": "plain"}]
        )
    assert (answer["error"]["type"], answer["error"]["line"]) == ("ZeroDivisionError", 6)


def test_what_cannot_be_compiled_is_a_reason():
    node = ast.parse("def f():\n    return 1").body[0]
    node.body = [ast.Break()]
    with Sandbox(source("x = 1\n"), outlined={"outlined:0": node}) as sandbox:
        assert "'break' outside loop" in sandbox.load()["outlined:0"]


def test_a_tree_too_deep_to_send_is_left_out():
    node = ast.Constant(1)
    for _ in range(20_000):
        node = ast.UnaryOp(ast.USub(), node)
    assert packed({"deep": ast.Expr(node), "flat": ast.Pass()}).keys() == {"flat"}


def test_a_subclass_of_a_missing_trainer_is_judged(tmp_path):
    report = check_text(tmp_path, TRAINER.format(sign="-", reduce=MEAN))
    (target,) = report.targets
    assert target.name == "Mine.compute_loss"
    assert target.recipe == "grpo"
    assert strong(report) == []


@pytest.mark.parametrize(
    ("sign", "reduce", "code", "line"),
    one_in(
        3,
        [
            ("", MEAN, "SUR005", 19),
            ("-", "loss.mean()", "MSK001", 19),
            ("-", "(loss * mask).mean()", "MSK002", 19),
        ],
    ),
)
def test_a_fault_in_a_method_is_found_at_its_line(tmp_path, sign, reduce, code, line):
    report = check_text(tmp_path, TRAINER.format(sign=sign, reduce=reduce))
    found = [(f.code, f.place.line) for f in report.findings if f.severity == "error"]
    assert found[0] == (code, line)
    assert all(f.place.function == "Mine.compute_loss" for f in report.findings)


def test_a_branch_that_shares_a_fault_does_not_repeat_it(tmp_path):
    text = """
import torch

class Loss(torch.nn.Module):
    def __init__(self, mode="mean", clip_eps=0.2):
        super().__init__()
        self.mode, self.clip_eps = mode, clip_eps

    def forward(self, logp, old_logp, advantages, mask):
        ratio = old_logp - logp
        ratio = torch.exp(ratio)
        kept = ratio.clamp(1 - self.clip_eps, 1 + self.clip_eps)
        loss = -torch.min(ratio * advantages, kept * advantages) * mask
        if self.mode == "mean":
            return loss.sum() / mask.sum()
        return loss.sum()
"""
    report = check_text(tmp_path, text)
    assert len(report.targets) == 2
    assert [f.code for f in report.findings if f.severity == "error"] == ["SUR003"]


def test_only_what_can_run_is_sent(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        "import torch\nclass T(Base):\n    def loss(self, logp, old_logp, adv):\n"
        "        return (torch.exp(logp - old_logp) * adv * self.mystery).mean()\n"
    )
    script = read(str(path))
    assert len(script.targets) == 1
    assert functions(script) == {}
