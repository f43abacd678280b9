"""Small scripts: three healthy recipes and three faults, on lists, NumPy and torch."""

_LOSS = '''
def policy_loss(new_logps, old_logps, ref_logps, advantages, mask, clip_eps=0.2, beta=0.04):
    """A loss to minimise."""
    total, count = 0.0, 0
    for i, adv in enumerate(advantages):
        for t in range(len(mask[i])):
            {skip}
            ratio = {ratio}
            clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps)
            surrogate = min(ratio * adv, clipped * adv)
            gap = ref_logps[i][t] - new_logps[i][t]
            total += {sign}surrogate + beta * (math.exp(gap) - gap - 1)
            count += 1
    return total / count
'''
_SKIP = "if not mask[i][t]: continue"
_EXP = "math.exp(new_logps[i][t] - old_logps[i][t])"
_GROUPED = '''import math


def group_advantages(rewards, group_size=8, eps=1e-6):
    """Reward minus the mean of its group, divided by the group's std."""
    found = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        mean = sum(group) / len(group)
        std = (sum((r - mean) ** 2 for r in group) / len(group)) ** 0.5
        found += [(r - mean) / (std + eps) for r in group]
    return found
'''
_BATCH = '''import math


def group_advantages(rewards, group_size=8):
    """Reward minus the mean of its group."""
    mean = sum(rewards) / len(rewards)
    return [r - mean for r in rewards]
'''


def _lists(head: str, skip: str = _SKIP, ratio: str = _EXP, sign: str = "-") -> str:
    return head + _LOSS.format(skip=skip, ratio=ratio, sign=sign)


GRPO = _lists(_GROUPED)
DR_GRPO = '''# rlproof: objective=dr_grpo
import numpy as np

MAX_LEN = 5


def group_advantages(rewards, group_size=4):
    """Reward minus the mean of its group; no standard deviation."""
    grid = np.asarray(rewards, float).reshape(-1, group_size)
    return (grid - grid.mean(axis=1, keepdims=True)).reshape(-1)


def policy_loss(new_logps, old_logps, advantages, mask, clip_eps=0.2):
    """A loss to minimise: token terms summed, over a constant length."""
    ratio = np.exp(new_logps - old_logps)
    adv = advantages[:, None]
    terms = np.minimum(ratio * adv, np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * adv)
    return -(terms * mask).sum() / (len(advantages) * MAX_LEN)
'''
RLOO = '''import torch


def rloo_advantages(rewards, group_size):
    """Reward minus the mean of the others of its group."""
    grid = rewards.view(-1, group_size)
    others = (grid.sum(dim=1, keepdim=True) - grid) / (group_size - 1)
    return (grid - others).view(-1)


def policy_loss(new_logps, old_logps, ref_logps, advantages, mask, beta=0.1):
    """A loss to minimise, with the k2 penalty."""
    ratio = torch.exp(new_logps - old_logps)
    gap = new_logps - ref_logps
    rows = ((-ratio * advantages[:, None] + beta * gap**2 / 2) * mask).sum(dim=1)
    return rows.mean()
'''
INVERTED = _lists(_GROUPED, sign="")
LOG_RATIO = _lists(_GROUPED, ratio="new_logps[i][t] / old_logps[i][t]")
BATCH_AND_PADDING = _lists(_BATCH, skip="pass")
