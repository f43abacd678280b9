"""Trainers with any subset of eight faults, in plain lists, NumPy and torch.

The task: colour `p` of a small palette is asked for, and the share of strokes in that colour is
the reward. Each letter stands for one repair:

G groups  E eps  R ratio  M min  S sign  K mask  O old log-probs  C clip range of the metric
"""

from __future__ import annotations

LETTERS = "GERMSKO"
FAULTS = {
    "G": ("ADV001",),
    "E": ("ADV004",),
    "R": ("SUR001",),
    "M": ("SUR004",),
    "S": ("SUR005",),
    "K": ("MSK001", "MSK002"),
    "O": ("LOP001",),
    "C": ("MET001",),
}


def expected(fixes: str) -> list[str]:
    """The codes that must be found when only these repairs are made."""
    return sorted(code for letter, codes in FAULTS.items() if letter not in fixes for code in codes)


def trainer(fixes: str, library: str = "list") -> str:
    """The source of a trainer with these repairs."""
    builders = {"list": _lists, "numpy": _numpy, "torch": _torch}
    return builders[library](frozenset(fixes))


_SAMPLING = '''
def log_softmax(row):
    peak = max(row)
    total = peak + math.log(sum(math.exp(x - peak) for x in row))
    return [x - total for x in row]


def rollout(theta, prompts, group_size, max_len, rng):
    """Paint group_size pictures for every prompt, rows grouped by prompt."""
    rows, tokens, mask, rewards = [], [], [], []
    for p in prompts:
        weights = [math.exp(x) for x in log_softmax([float(x) for x in theta[p]])]
        for _ in range(group_size):
            length = rng.randint(1, max_len)
            strokes = rng.choices(range(COLOURS), weights=weights, k=length)
            rows.append(p)
            tokens.append(strokes + [0] * (max_len - length))
            mask.append([1] * length + [0] * (max_len - length))
            rewards.append(strokes.count(p % COLOURS) / length)
    return rows, tokens, mask, rewards
'''


_SKIP_PADDING = """            if not mask[i][t]:
                continue"""


def _lists(fixes: frozenset[str]) -> str:
    return f'''"""A painter learns which colour to use. Plain Python."""
import math
import random

COLOURS = 4

{_SAMPLING}

def token_logps(theta, rows, tokens):
    """log-probability of every stroke, padding included."""
    tables = {{p: log_softmax(theta[p]) for p in set(rows)}}
    return [[tables[p][t] for t in line] for p, line in zip(rows, tokens)]


def group_advantages(rewards, group_size, eps=1e-6):
    """Reward minus the mean of its group, divided by the group's std."""
{_list_advantages(fixes)}

def grpo_loss(new_logps, old_logps, ref_logps, advantages, mask, clip_eps=0.2, beta=0.04):
    """Clipped surrogate and k3 penalty over the real tokens: a loss to minimise."""
    total, count = 0.0, 0
    for i, adv in enumerate(advantages):
        for t in range(len(mask[i])):
{_if(fixes, "K", _SKIP_PADDING)}\
            ratio = {"math.exp(new_logps[i][t] - old_logps[i][t])" if "R" in fixes else "new_logps[i][t] / old_logps[i][t]"}
            plain = ratio * adv
            clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps) * adv
            surrogate = {"min" if "M" in fixes else "max"}(plain, clipped)
            gap = ref_logps[i][t] - new_logps[i][t]
            kl = math.exp(gap) - gap - 1
            total += {"-surrogate" if "S" in fixes else "surrogate"} + beta * kl
            count += 1
    return total / count


def clip_fraction(new_logps, old_logps, mask, clip_eps=0.2):
    """Share of real tokens whose ratio left the clip range."""
    outside = real = 0
    for news, olds, marks in zip(new_logps, old_logps, mask):
        for new, old, m in zip(news, olds, marks):
            if m:
                real += 1
                outside += abs(math.exp(new - old) - 1) > clip_eps
    return outside / real


def numeric_grad(f, theta, h=1e-4):
    grad = [[0.0] * COLOURS for _ in theta]
    for p in range(len(theta)):
        for v in range(COLOURS):
            theta[p][v] += h
            up = f(theta)
            theta[p][v] -= 2 * h
            down = f(theta)
            theta[p][v] += h
            grad[p][v] = (up - down) / (2 * h)
    return grad


def train(steps=40, prompts=(0, 1, 2), group_size=8, max_len=4, epochs=2, lr=2.0, seed=0, **loss_kwargs):
    rng = random.Random(seed)
    theta = [[0.0] * COLOURS for _ in range(len(prompts))]
    ref = [row[:] for row in theta]
    history = []
    for _ in range(steps):
        rows, tokens, mask, rewards = rollout(theta, prompts, group_size, max_len, rng)
        stats = {{"reward": sum(rewards) / len(rewards), "clip_frac": 0.0}}
        history.append(stats)
        adv = group_advantages(rewards, group_size)
        ref_logps = token_logps(ref, rows, tokens)
{_if(fixes, "O", "        old_logps = token_logps(theta, rows, tokens)")}\
        for _ in range(epochs):
{_unless(fixes, "O", "            old_logps = token_logps(theta, rows, tokens)")}\
            now = token_logps(theta, rows, tokens)
            stats["clip_frac"] = max(stats["clip_frac"], clip_fraction(now, old_logps, mask{_clip(fixes)}))

            def loss(th):
                return grpo_loss(token_logps(th, rows, tokens), old_logps, ref_logps, adv, mask, **loss_kwargs)

            grad = numeric_grad(loss, theta)
            for p in range(len(theta)):
                for v in range(COLOURS):
                    theta[p][v] -= lr * grad[p][v]
    return theta, history
'''


def _list_advantages(fixes: frozenset[str]) -> str:
    divisor = "(std + eps)" if "E" in fixes else "std"
    if "G" in fixes:
        return f"""    result = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        mean = sum(group) / len(group)
        std = (sum((r - mean) ** 2 for r in group) / len(group)) ** 0.5
        result += [(r - mean) / {divisor} for r in group]
    return result
"""
    return f"""    mean = sum(rewards) / len(rewards)
    std = (sum((r - mean) ** 2 for r in rewards) / len(rewards)) ** 0.5
    return [(r - mean) / {divisor} for r in rewards]
"""


def _numpy(fixes: frozenset[str]) -> str:
    return f'''"""A painter learns which colour to use. NumPy."""
import math
import random

import numpy as np

COLOURS = 4

{_SAMPLING}

def token_logps(theta, rows, tokens):
    """log-probability of every stroke, padding included: (B, T)."""
    logits = theta[np.asarray(rows)]
    logits = logits - logits.max(axis=-1, keepdims=True)
    table = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return np.take_along_axis(table, np.asarray(tokens), axis=1)


def group_advantages(rewards, group_size, eps=1e-6):
    """Reward minus the mean of its group, divided by the group's std: (B,)."""
    rewards = np.asarray(rewards, dtype=float){".reshape(-1, group_size)" if "G" in fixes else ""}
    mean = rewards.mean({"axis=1, keepdims=True" if "G" in fixes else ""})
    std = rewards.std({"axis=1, keepdims=True" if "G" in fixes else ""})
    return ((rewards - mean) / {"(std + eps)" if "E" in fixes else "std"}).ravel()


def grpo_loss(logp, old_logp, ref_logp, advantages, mask, clip_eps=0.2, beta=0.04):
    """Clipped surrogate and k3 penalty over the real tokens: a loss to minimise."""
    adv = advantages[:, None]
    ratio = {"np.exp(logp - old_logp)" if "R" in fixes else "logp / old_logp"}
    plain = ratio * adv
    clipped = np.clip(ratio, 1 - clip_eps, 1 + clip_eps) * adv
    surrogate = {"np.minimum" if "M" in fixes else "np.maximum"}(plain, clipped)
    gap = ref_logp - logp
    kl = np.exp(gap) - gap - 1
    per_token = {"-surrogate" if "S" in fixes else "surrogate"} + beta * kl
    return {"(per_token * mask).sum() / mask.sum()" if "K" in fixes else "per_token.mean()"}


def clip_fraction(logp, old_logp, mask, clip_eps=0.2):
    """Share of real tokens whose ratio left the clip range."""
    outside = np.abs(np.exp(logp - old_logp) - 1) > clip_eps
    return float((outside * mask).sum() / mask.sum())


def numeric_grad(f, theta, h=1e-4):
    grad = np.zeros_like(theta)
    for index in np.ndindex(*theta.shape):
        kept = theta[index]
        theta[index] = kept + h
        up = f(theta)
        theta[index] = kept - h
        down = f(theta)
        theta[index] = kept
        grad[index] = (up - down) / (2 * h)
    return grad


def train(steps=40, prompts=(0, 1, 2), group_size=8, max_len=4, epochs=2, lr=2.0, seed=0, **loss_kwargs):
    rng = random.Random(seed)
    theta = np.zeros((len(prompts), COLOURS))
    ref = theta.copy()
    history = []
    for _ in range(steps):
        rows, tokens, mask, rewards = rollout(theta, prompts, group_size, max_len, rng)
        mask = np.array(mask, dtype=float)
        stats = {{"reward": float(np.mean(rewards)), "clip_frac": 0.0}}
        history.append(stats)
        adv = group_advantages(rewards, group_size)
        ref_logps = token_logps(ref, rows, tokens)
{_if(fixes, "O", "        old_logps = token_logps(theta, rows, tokens)")}\
        for _ in range(epochs):
{_unless(fixes, "O", "            old_logps = token_logps(theta, rows, tokens)")}\
            now = token_logps(theta, rows, tokens)
            stats["clip_frac"] = max(stats["clip_frac"], clip_fraction(now, old_logps, mask{_clip(fixes)}))

            def loss(th):
                return grpo_loss(token_logps(th, rows, tokens), old_logps, ref_logps, adv, mask, **loss_kwargs)

            theta = theta - lr * numeric_grad(loss, theta.copy())
    return theta, history
'''


def _torch(fixes: frozenset[str]) -> str:
    return f'''"""A painter learns which colour to use. PyTorch."""
import math
import random

import torch

COLOURS = 4

{_SAMPLING}

def token_logps(theta, rows, tokens):
    """log-probability of every stroke, padding included: (B, T)."""
    table = torch.log_softmax(theta, dim=-1)[torch.as_tensor(rows)]
    return table.gather(1, torch.as_tensor(tokens))


def group_advantages(rewards, group_size, eps=1e-6):
    """Reward minus the mean of its group, divided by the group's std: (B,)."""
    rewards = torch.as_tensor(rewards, dtype=torch.float64){".view(-1, group_size)" if "G" in fixes else ""}
    mean = rewards.mean({"dim=1, keepdim=True" if "G" in fixes else ""})
    std = rewards.std({"dim=1, keepdim=True, " if "G" in fixes else ""}unbiased=False)
    return ((rewards - mean) / {"(std + eps)" if "E" in fixes else "std"}).flatten()


def grpo_loss(logps, old_logps, ref_logps, advantages, mask, clip_eps=0.2, beta=0.04):
    """Clipped surrogate and k3 penalty over the real tokens: a loss to minimise."""
    adv = advantages.unsqueeze(1)
    ratio = {"torch.exp(logps - old_logps)" if "R" in fixes else "logps / old_logps"}
    plain = ratio * adv
    clipped = torch.clamp(ratio, 1 - clip_eps, 1 + clip_eps) * adv
    surrogate = {"torch.min" if "M" in fixes else "torch.max"}(plain, clipped)
    gap = ref_logps - logps
    kl = torch.exp(gap) - gap - 1
    per_token = {"-surrogate" if "S" in fixes else "surrogate"} + beta * kl
    return {"(per_token * mask).sum() / mask.sum()" if "K" in fixes else "per_token.mean()"}


@torch.no_grad()
def clip_fraction(logps, old_logps, mask, clip_eps=0.2):
    """Share of real tokens whose ratio left the clip range."""
    outside = (torch.exp(logps - old_logps) - 1).abs() > clip_eps
    return ((outside * mask).sum() / mask.sum()).item()


def train(steps=40, prompts=(0, 1, 2), group_size=8, max_len=4, epochs=2, lr=2.0, seed=0, **loss_kwargs):
    rng = random.Random(seed)
    theta = torch.zeros(len(prompts), COLOURS, dtype=torch.float64, requires_grad=True)
    ref = theta.detach().clone()
    history = []
    for _ in range(steps):
        rows, tokens, mask, rewards = rollout(theta, prompts, group_size, max_len, rng)
        mask = torch.tensor(mask, dtype=torch.float64)
        stats = {{"reward": sum(rewards) / len(rewards), "clip_frac": 0.0}}
        history.append(stats)
        adv = group_advantages(rewards, group_size)
        ref_logps = token_logps(ref, rows, tokens)
{_if(fixes, "O", "        old_logps = token_logps(theta, rows, tokens).detach()")}\
        for _ in range(epochs):
{_unless(fixes, "O", "            old_logps = token_logps(theta, rows, tokens).detach()")}\
            logps = token_logps(theta, rows, tokens)
            stats["clip_frac"] = max(stats["clip_frac"], clip_fraction(logps, old_logps, mask{_clip(fixes)}))
            loss = grpo_loss(logps, old_logps, ref_logps, adv, mask, **loss_kwargs)
            (grad,) = torch.autograd.grad(loss, theta)
            with torch.no_grad():
                theta -= lr * grad
    return theta, history
'''


def _clip(fixes: frozenset[str]) -> str:
    return ', clip_eps=loss_kwargs.get("clip_eps", 0.2)' if "C" in fixes else ""


def _if(fixes: frozenset[str], letter: str, text: str) -> str:
    return text + "\n" if letter in fixes else ""


def _unless(fixes: frozenset[str], letter: str, text: str) -> str:
    return "" if letter in fixes else text + "\n"
