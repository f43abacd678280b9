"""A painter learns which colour to use. Plain Python."""
import math
import random

COLOURS = 4


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


def token_logps(theta, rows, tokens):
    """log-probability of every stroke, padding included."""
    tables = {p: log_softmax(theta[p]) for p in set(rows)}
    return [[tables[p][t] for t in line] for p, line in zip(rows, tokens)]


def group_advantages(rewards, group_size, eps=1e-6):
    """Reward minus the mean of its group, divided by the group's std."""
    result = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        mean = sum(group) / len(group)
        std = (sum((r - mean) ** 2 for r in group) / len(group)) ** 0.5
        result += [(r - mean) / (std + eps) for r in group]
    return result


def grpo_loss(new_logps, old_logps, ref_logps, advantages, mask, clip_eps=0.2, beta=0.04):
    """Clipped surrogate and k3 penalty over the real tokens: a loss to minimise."""
    total, count = 0.0, 0
    for i, adv in enumerate(advantages):
        for t in range(len(mask[i])):
            if not mask[i][t]:
                continue
            ratio = math.exp(new_logps[i][t] - old_logps[i][t])
            plain = ratio * adv
            clipped = min(max(ratio, 1 - clip_eps), 1 + clip_eps) * adv
            surrogate = min(plain, clipped)
            gap = ref_logps[i][t] - new_logps[i][t]
            kl = math.exp(gap) - gap - 1
            total += -surrogate + beta * kl
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
        stats = {"reward": sum(rewards) / len(rewards), "clip_frac": 0.0}
        history.append(stats)
        adv = group_advantages(rewards, group_size)
        ref_logps = token_logps(ref, rows, tokens)
        old_logps = token_logps(theta, rows, tokens)
        for _ in range(epochs):
            now = token_logps(theta, rows, tokens)
            stats["clip_frac"] = max(stats["clip_frac"], clip_fraction(now, old_logps, mask, clip_eps=loss_kwargs.get("clip_eps", 0.2)))

            def loss(th):
                return grpo_loss(token_logps(th, rows, tokens), old_logps, ref_logps, adv, mask, **loss_kwargs)

            grad = numeric_grad(loss, theta)
            for p in range(len(theta)):
                for v in range(COLOURS):
                    theta[p][v] -= lr * grad[p][v]
    return theta, history
