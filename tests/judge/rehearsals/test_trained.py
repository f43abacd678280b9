"""LOP006: a step on advantages that are not 0 changes the policy."""

import pytest
from tests.support.rehearsing import rehearse
from tests.support.sampling import one_in

SCRIPT = """
import copy
import torch

def train(model, loader, reward):
    BEFORE
    optimizer = torch.optim.SGD(WHOSE, lr=1e-2)
    for prompts in loader:
        ids = model.generate(prompts, do_sample=True)
        lines = model(ids).logits[:, :-1].log_softmax(-1)
        logps = lines.gather(-1, ids[:, 1:, None])[..., 0]
        loss = -(logps * reward(ids).view(-1, 1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TRAINABLE = "[p for p in model.parameters() if p.requires_grad]"


def script(before, whose):
    return SCRIPT.replace("BEFORE", before).replace("WHOSE", whose)


@pytest.mark.parametrize(
    ("before", "whose", "got"),
    one_in(
        99,
        [
            ("twin = copy.deepcopy(model)", "twin.parameters()", "those that change a parameter"),
            ("model.requires_grad_(False)", TRAINABLE, "parameters that the optimizer is given"),
        ],
    ),
)
def test_a_step_that_leaves_the_policy_is_shown(tmp_path, before, whose, got):
    pytest.importorskip("torch")
    found = rehearse(tmp_path, script(before, whose), "LOP006", "train")
    assert (found.holds, found.evidence.got) == (False, 0.0)
    assert got in found.evidence.input


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "whose"),
    [
        ("frozen = copy.deepcopy(model).requires_grad_(False)", "model.parameters()"),
        ("frozen = copy.deepcopy(model).requires_grad_(False)", TRAINABLE),
        ("pass", "[{'params': list(model.parameters()), 'lr': 1e-2}]"),
    ],
)
def test_a_step_that_moves_it_is_not(tmp_path, before, whose):
    pytest.importorskip("torch")
    assert rehearse(tmp_path, script(before, whose), "LOP006", "train").holds is True


@pytest.mark.slow
def test_a_loop_on_parameters_of_its_own_says_nothing(tmp_path):
    pytest.importorskip("torch")
    text = """
import torch

def train(steps=3):
    theta = torch.zeros(3, requires_grad=True)
    optimizer = torch.optim.SGD([theta], lr=0.1)
    for _ in range(steps):
        loss = (theta - 1).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    found = rehearse(tmp_path, text, "LOP006", "train")
    assert (found.holds, found.reason) == (None, "what it trains is not the policy that stands in")
