"""An entropy bonus without gradient is seen by running the loss, repaired, and run once more.

The gradient of the bonus must be the derivative of its value, which differences measure.
"""

import pytest
from tests.support.checking import check_text
from tests.support.repairing import repair_text, run

from rlproof.judge.findings import FixStatus

GIVEN = """import torch


def grpo_loss(logps, old_logps, advantages, mask, entropies, entropy_coef=0.01):
    ratio = torch.exp(logps - old_logps)
    adv = advantages[:, None]
    loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
    loss = loss - entropy_coef * {term}
    return (loss * mask).sum() / mask.sum()
"""
MADE = """import torch


{decorator}def token_entropy(logits):
    p = torch.softmax(logits, -1)
    return -(p * torch.log_softmax(logits, -1)).sum(-1)


def policy_loss(logits, tokens, old_logprobs, advantages, mask, ent_coef):
    lp = torch.log_softmax(logits, -1).gather(-1, tokens[..., None])[..., 0]
    ratio = (lp - old_logprobs).exp()
    {entropy}
    pg_loss = (-ratio * advantages[:, None] * mask).sum() / mask.sum()
    loss = pg_loss - ent_coef * (entropy * mask).sum() / mask.sum()
    return loss, {{"entropy": entropy.mean()}}
"""
FORMS = {
    "detached": (
        GIVEN.format(term="entropies.detach()"),
        "    loss = loss - entropy_coef * entropies",
    ),
    "decorated": (
        MADE.format(decorator="@torch.no_grad()\n", entropy="entropy = token_entropy(logits)"),
        "def token_entropy(logits):",
    ),
    "in a block": (
        MADE.format(
            decorator="",
            entropy="with torch.no_grad():\n        entropy = token_entropy(logits)",
        ),
        "    entropy = token_entropy(logits)",
    ),
    "made and cut": (
        MADE.format(decorator="", entropy="entropy = token_entropy(logits).detach()"),
        "    entropy = token_entropy(logits)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FORMS))
def test_the_bonus_gets_its_gradient(tmp_path, name):
    pytest.importorskip("torch")
    text, line = FORMS[name]
    report = repair_text(tmp_path, text)
    [finding] = [f for f in report.findings if f.code == "OBJ002"]
    assert not finding.by_reading
    assert finding.evidence.got == 0.0
    assert report.repair.status is FixStatus.VERIFIED, report.repair.message
    assert line in report.repair.text.splitlines()
    assert repair_text(tmp_path, report.repair.text).repair is None


def test_the_measured_slope_is_that_of_the_entropy(tmp_path):
    """Of −0.5·Σ H·m/Σ m by one of five real entropies: −0.5/5 = −0.1."""
    pytest.importorskip("torch")
    report = check_text(tmp_path, FORMS["detached"][0])
    [finding] = [f for f in report.findings if f.code == "OBJ002"]
    assert finding.evidence.expected == pytest.approx(-0.1, rel=0.02)


def test_a_healthy_bonus_is_silent_and_a_metric_may_be_cut(tmp_path):
    torch = pytest.importorskip("torch")
    text = MADE.format(decorator="", entropy="entropy = token_entropy(logits)")
    assert repair_text(tmp_path, text).repair is None
    text = text.replace("entropy.mean()}", "entropy.detach().mean()}")
    assert repair_text(tmp_path, text).repair is None
    logits = torch.tensor([[[0.0, 1.0]]], requires_grad=True)
    args = (torch.tensor([[0]]), torch.zeros(1, 1), torch.zeros(1), torch.ones(1, 1), 1.0)
    run(text)["policy_loss"](logits, *args)[0].backward()
    # H(p) of two words with logit gap d has the slope p(1 − p)·d by the smaller logit
    p = torch.sigmoid(torch.tensor(-1.0))
    assert -logits.grad[0, 0, 0].item() == pytest.approx((p * (1 - p)).item(), rel=1e-5)


def test_a_trained_coefficient_is_left_alone(tmp_path):
    """Its own loss holds the entropy as a number."""
    pytest.importorskip("torch")
    text = FORMS["detached"][0] + "\n\nlog_alpha = torch.zeros(1, requires_grad=True)\n"
    assert "OBJ002" not in {f.code for f in check_text(tmp_path, text).findings}
