"""Rows that belong together and arguments at their parameters: what is no fault stays silent."""

import pytest
from tests.support.checking import check_text, strong
from tests.support.sampling import one_in

LOSS = """
import uuid

import torch


def ppo_loss(logp, old_logp, advantages, mask, beta=0.0, clip=0.2):
    ratio = torch.exp(logp - old_logp)
    adv = advantages[:, None]
    gain = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
    return -(gain * mask).sum() / mask.sum().clamp(min=1)


def group_advantages(rewards, index):
    out = torch.zeros(len(rewards))
    for key in set(index):
        rows = [i for i, other in enumerate(index) if other == key]
        out[rows] = rewards[rows] - rewards[rows].mean()
    return out


"""
SILENT = {
    "two losses on two permutations": """
def step(policy, b, n):
    one, two = torch.randperm(n), torch.randperm(n)
    logp = policy.log_probs(b.ids[one])
    first = ppo_loss(logp, b.old[one], b.adv[one], b.mask[one])
    logp = policy.log_probs(b.ids[two])
    return first + ppo_loss(logp, b.old[two], b.adv[two], b.mask[two])
""",
    "a permutation undone": """
def step(policy, b, n):
    one, two = torch.randperm(n), torch.randperm(n)
    back = torch.argsort(one)
    logp = policy.log_probs(b.ids[one])[back][two]
    return ppo_loss(logp, b.old[two], b.adv[two], b.mask[two])
""",
    "parts of one permutation": """
def step(policy, b, n, size):
    order = torch.randperm(n)
    for start in range(0, n, size):
        rows = order[start : start + size]
        logp = policy.log_probs(b.ids[rows])
        ppo_loss(logp, b.old[rows], b.adv[rows], b.mask[rows]).backward()
""",
    "all in steps": """
def step(policy, b, n):
    for k in range(n):
        logp = policy.log_probs(b.ids[k::n])
        ppo_loss(logp, b.old[k::n], b.adv[k::n], b.mask[k::n]).backward()
""",
    "steps of prompts beside runs of answers": """
def step(policy, b, n, size):
    for k in range(n):
        prompts = b.prompts[k::n]
        rows = slice(k * size, (k + 1) * size)
        logp = policy.log_probs(b.ids[rows], prompts)
        ppo_loss(logp, b.old[rows], b.adv[rows], b.mask[rows]).backward()
""",
    "a reference for old log-probs": """
def step(policy, b):
    ref_logp = b.ref_logp
    return ppo_loss(policy.log_probs(b.ids), ref_logp, b.advantages, b.mask)
""",
    "names that say two things": """
def step(policy, b, adv_mask, masked_advantages):
    return ppo_loss(policy.log_probs(b.ids), b.old_logp, masked_advantages, adv_mask)
""",
    "ids of prompts, repeated": """
def step(prompts, rewards, n):
    index = [str(uuid.uuid4()) for p in prompts for _ in range(n)]
    keys = [str(uuid.uuid4()) for p in prompts]
    return group_advantages(rewards, [k for k in keys for _ in range(n)])
""",
}


@pytest.mark.parametrize("name", one_in(2, SILENT))
def test_it_is_silent(tmp_path, name):
    pytest.importorskip("torch")
    assert strong(check_text(tmp_path, LOSS + SILENT[name])) == []


FOUND = {
    "permutation": ("DAT001", "b.adv[order]", "b.adv[torch.randperm(n)]"),
    "coefficient": ("DAT002", "b.adv[order], b.mask[order]", "beta, b.mask[order]"),
    "mask": ("MSK011", "b.mask[order]", "b.advantages"),
}


@pytest.mark.parametrize("name", one_in(2, FOUND))
def test_it_is_found_and_its_twin_is_silent(tmp_path, name):
    pytest.importorskip("torch")
    code, right, wrong = FOUND[name]
    text = LOSS + (
        "def step(policy, b, n, beta):\n    order = torch.randperm(n)\n"
        "    logp = policy.log_probs(b.ids[order])\n"
        "    return ppo_loss(logp, b.old[order], b.adv[order], b.mask[order])\n"
    )
    assert right in text
    assert strong(check_text(tmp_path, text)) == []
    assert strong(check_text(tmp_path, text.replace(right, wrong))) == [code]
