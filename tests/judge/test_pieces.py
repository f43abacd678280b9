"""Small functions around the objective, as trainers write them: silent, or named."""

import pytest
from tests.support.checking import check_text, strong
from tests.support.sampling import one_in

SILENT = {
    "whitening as in verl": """
import torch


def masked_whiten(values, mask, shift_mean=True):
    mean = (values * mask).sum() / mask.sum()
    var = ((values - mean) ** 2 * mask).sum() / mask.sum()
    whitened = (values - mean) * torch.rsqrt(var + 1e-8)
    return whitened if shift_mean else whitened + mean
""",
    "whitening of what is 0 in padding": """
import torch


def normalize_advantages(advantages, mask):
    centred = advantages - advantages.sum() / mask.sum()
    var = (centred**2 * mask).sum() / mask.sum()
    return centred * torch.rsqrt(var + 1e-8) * mask
""",
    "a group that is left out": """
import torch


def group_advantages(rewards, num_generations):
    groups = rewards.view(-1, num_generations)
    missing = torch.isnan(groups).any(dim=1, keepdim=True)
    mean = torch.nanmean(groups, dim=1, keepdim=True)
    return torch.where(missing, torch.zeros_like(groups), groups - mean).view(-1)
""",
    "flat tokens": """
import torch


def token_loss(logps, old_logps, advantages):
    \"\"\"logps (N,), old_logps (N,), advantages (N,); not (B, T).\"\"\"
    return -(torch.exp(logps - old_logps) * advantages).mean()
""",
    "scores at the last token by position": """
import torch


def compute_token_rewards(kl, reward, action_mask, kl_coef=0.1):
    width = action_mask.size(1)
    last = width - 1 - action_mask.long().fliplr().argmax(dim=1, keepdim=True)
    last = last.clamp(max=width - 1)
    placed = torch.zeros_like(kl).scatter_(1, last, reward.unsqueeze(1).to(kl.dtype))
    return placed - kl_coef * kl
""",
    "a reset after the end, where no tool is spoken of": """
import torch


def compute_returns(token_rewards, response_mask, gamma=1.0):
    out = torch.zeros_like(token_rewards)
    later = 0.0
    for t in reversed(range(token_rewards.shape[1])):
        later = (token_rewards[:, t] + gamma * later) * response_mask[:, t]
        out[:, t] = later
    return out
""",
    "a mask that was shifted before": """
import torch
from torch.nn.functional import cross_entropy


def sft_loss(logits, input_ids, loss_mask):
    losses = cross_entropy(logits[:, :-1].flatten(0, 1), input_ids[:, 1:].flatten(),
                           reduction="none")
    mask = loss_mask[:, :-1].flatten()
    return (losses * mask).sum() / mask.sum()
""",
    "the mean over rows that ended": """
def mean_length(mask, truncated):
    ended = ~truncated
    return (mask.sum(1) * ended).sum() / ended.sum()


def nothing(advantages, x):
    return advantages.float()
""",
    "groups of middling success": """
import numpy as np


def filter_groups(rewards, completions, group_size):
    means = np.asarray(rewards).reshape(-1, group_size).mean(1)
    kept = [i for i, m in enumerate(means) if 0.2 < m < 0.8]
    return [c for i in kept for c in completions[i * group_size : (i + 1) * group_size]]
""",
    "rewards less the mean log-ratio of real tokens": """
import numpy as np


def shaped(rewards, logp, ref_logp, mask, beta=0.1):
    return rewards - beta * np.where(mask > 0, logp - ref_logp, 0.0).sum(1)
""",
    "advantages of the first token": """
import torch


def loss(logps, old_logps, advantages, mask):
    \"\"\"advantages (B, T).\"\"\"
    ratio = torch.exp(logps - old_logps)
    adv = advantages[:, :1]
    return -(ratio * adv * mask).sum() / mask.sum().clamp(min=1)
""",
}


@pytest.mark.parametrize("name", one_in(2, SILENT))
def test_it_is_silent(tmp_path, name):
    pytest.importorskip("torch")
    assert strong(check_text(tmp_path, SILENT[name])) == []


TOOLS = "a reset after the end, where no tool is spoken of"
CHANGES = {
    "whitening as in verl": (
        "MSK001", "mean = (values * mask).sum() / mask.sum()", "mean = values.mean()",
    ),
    "scores at the last token by position": ("ADV019", "last = width - 1 -", "last = width -"),
    TOOLS: ("ADV019", "import torch\n", '"""Tool output is masked."""\nimport torch\n'),
    "a mask that was shifted before": ("MSK014", "loss_mask", "completion_mask"),
    "groups of middling success": ("ADV018", ".mean(1)", ".mean(0)"),
    "rewards less the mean log-ratio of real tokens": (
        "KLD008", "np.where(mask > 0, logp - ref_logp, 0.0)", "(logp - ref_logp)",
    ),
    "advantages of the first token": (
        "MSK001", "advantages[:, :1]", "advantages.mean(1, keepdim=True)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", one_in(2, CHANGES))
def test_one_change_and_it_is_named(tmp_path, name):
    pytest.importorskip("torch")
    code, right, wrong = CHANGES[name]
    assert right in SILENT[name]
    assert code in strong(check_text(tmp_path, SILENT[name].replace(right, wrong)))
