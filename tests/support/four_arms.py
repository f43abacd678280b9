"""Four arms in plain Python: nothing of rlproof is used, so that it can be checked against it."""

from __future__ import annotations

from math import exp, log, sqrt


def softmax(logits):
    total = sum(map(exp, logits))
    return [exp(z) / total for z in logits]


P4 = softmax((0.5, 0.0, -0.5, -1.0))
REF2 = softmax((0.0, 0.8, -0.3, 0.2))
MOVED = softmax((0.9, -0.2, -0.4, -1.3))
UNIFORM = [0.25] * 4
FAR = [0.97, 0.01, 0.01, 0.01]
VALUES = {
    "k1": lambda p, q: log(p / q),
    "k2": lambda p, q: log(p / q) ** 2 / 2,
    "k3": lambda p, q: q / p - 1 - log(q / p),
}
SLOPES = {
    "k1": lambda p, q: 1.0,
    "k2": lambda p, q: log(p / q),
    "k3": lambda p, q: 1 - q / p,
}
"""∂d/∂log π."""


def kl(p, q):
    return sum(a * log(a / b) for a, b in zip(p, q, strict=True))


def chi_square(p, q):
    return sum(a * a / b for a, b in zip(p, q, strict=True)) - 1


def kl_gradient(p, q):
    """∂KL(p‖q)/∂logits of p: p·(log(p/q) − KL)."""
    whole = kl(p, q)
    return [a * (log(a / b) - whole) for a, b in zip(p, q, strict=True)]


def minus(p, q):
    return [a - b for a, b in zip(p, q, strict=True)]


def mean(weights, values):
    return sum(w * x for w, x in zip(weights, values, strict=True))


def sd(weights, values):
    centre = mean(weights, values)
    return sqrt(mean(weights, [(x - centre) ** 2 for x in values]))


def with_scores(weights, values, policy):
    """Σ w·x·(onehot − π), one entry a logit."""
    return [
        sum(
            w * x * ((a == v) - policy[v])
            for a, (w, x) in enumerate(zip(weights, values, strict=True))
        )
        for v in range(len(policy))
    ]


def each(name, p, q, table=VALUES):
    return [table[name](a, b) for a, b in zip(p, q, strict=True)]


def cosine(x, y):
    inner = sum(a * b for a, b in zip(x, y, strict=True))
    return inner / (norm(x) * norm(y))


def norm(x):
    return sqrt(sum(a * a for a in x))
