"""DAT002, MSK011: a loss gets under each name what bears that name, and its mask matters."""

import pytest
from tests.support.rehearsing import rehearse

SCRIPT = """
import torch

def loss_fn(logps, old_logps, advantages, mask, kl_mask=None, beta=0.0, masked=False):
    ratio = torch.exp(logps - old_logps)
    terms = -torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages)
    if masked:
        terms = terms * mask
    if kl_mask is not None:
        terms = terms + beta * (logps - old_logps).square() * kl_mask
    return terms.mean()

def step(policy, batch, optimizer):
    now = policy.log_probs(batch["ids"])
    loss = loss_fn(now, OLD, batch["advantages"].unsqueeze(1), MORE)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def script(old, more):
    return SCRIPT.replace("OLD", old).replace("MORE", more)


def test_anothers_column_is_named(tmp_path):
    pytest.importorskip("torch")
    text = script('batch["ref_logps"]', 'batch["mask"], masked=True')
    found = rehearse(tmp_path, text, "DAT002", "step")
    assert found.holds is False
    assert found.evidence.got == "the batch's ref_logps"
    assert "`old_logps` of loss_fn" in found.evidence.input


@pytest.mark.slow
def test_a_mask_without_effect_is_shown(tmp_path):
    pytest.importorskip("torch")
    text = script('batch["old_logps"]', 'batch["mask"]')
    found = rehearse(tmp_path, text, "MSK011", "step")
    assert (found.holds, found.evidence.got) == (False, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [
        'batch["mask"], masked=True',
        'batch["mask"], batch["kl_mask"], masked=True',  # of a term with weight 0
        'batch["mask"][:, :], None, 0.0, True',
    ],
)
def test_each_to_its_own_keeps_it(tmp_path, more):
    pytest.importorskip("torch")
    assert rehearse(tmp_path, script('batch["old_logps"]', more), "DAT002", "step").holds is True


@pytest.mark.slow
def test_no_call_of_a_loss_says_nothing(tmp_path):
    pytest.importorskip("torch")
    text = "def step(policy, batch):\n    return -policy.log_probs(batch['ids']).mean()\n"
    found = rehearse(tmp_path, text, "DAT002", "step")
    assert (found.holds, found.reason) == (None, "no loss is called with columns of the batch")
