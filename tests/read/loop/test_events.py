import ast

import pytest
from tests.support.reading_loops import loops_of

from rlproof.read.loop.events import (
    constructed,
    is_evaluation,
    switches_adapter,
    switches_gradient_off,
)


def kinds(text):
    return [str(event.kind) for loop in loops_of(text)[:1] for event in loop.events]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("loss.backward()", "backward pass"),
        ("accelerator.backward(loss)", "backward pass"),
        ("scaler.scale(loss).backward()", "backward pass"),
        ("self.optimizer.step()", "optimizer step"),
        ("optimizers[0].step()", None),
        ("scaler.step(optimizer)", "optimizer step"),
        ("engine.step()", "engine step"),
        ("model.step()", "engine step"),
        ("lr_scheduler.step()", "scheduler step"),
        ("optimizer.zero_grad(set_to_none=True)", "gradients cleared"),
        ("model.zero_grad()", "gradients cleared"),
        ("policy.generate(ids)", "rollout"),
        ("env.step(action)", None),
        ("backward(loss)", None),
        ("p.grad = None", "gradients cleared"),
        ("p.grad.zero_()", "gradients cleared"),
    ],
)
def test_spellings(call, kind):
    assert kinds(call) == ([kind] if kind else [])


def test_optimizers_that_a_file_makes():
    tree = ast.parse("opt = torch.optim.AdamW(p)\nself.o = bnb.optim.Adam8bit(p)\nx = Model(p)")
    assert [ast.unparse(target) for target, _ in constructed(tree)] == ["opt", "self.o"]


def test_contexts():
    def context(text):
        return (ast.parse(text, mode="eval").body,)

    assert switches_gradient_off(context("torch.no_grad()"))
    assert switches_gradient_off(context("torch.inference_mode"))
    assert not switches_gradient_off(context("torch.autocast('cuda')"))
    assert switches_adapter(context("model.disable_adapter()"))
    assert switches_adapter(context("self.null_ref_context()"))
    assert not switches_adapter(context("torch.no_grad()"))


def test_names_of_evaluation():
    assert is_evaluation("eval_sampling_params")
    assert is_evaluation("train", "run_validation")
    assert not is_evaluation("rollout", "train")
