"""Small trees and softmaxes in plain Python, for the tests of the C claims."""

from itertools import product
from math import exp, prod, sqrt

from rlproof.lab.fixtures import P4_LOGITS, P4_REWARDS, normal


def softmax(logits):
    total = sum(map(exp, logits))
    return [exp(z) / total for z in logits]


PI = softmax(P4_LOGITS)
VALUE = sum(p * r for p, r in zip(PI, P4_REWARDS, strict=True))
ADV = [r - VALUE for r in P4_REWARDS]


def shifted(shift=(0.6, -0.4, 0.2, -0.5)):
    """P4 with moved logits, and the ratios to P4."""
    new = softmax([z + d for z, d in zip(P4_LOGITS, shift, strict=True)])
    return new, [n / p for n, p in zip(new, PI, strict=True)]


def pull(weights, policy):
    """Σ_a w_a·(e_a − π)."""
    total = sum(weights)
    return [w - total * p for w, p in zip(weights, policy, strict=True)]


def norm(x):
    return sqrt(sum(a * a for a in x))


def error(x, y):
    return norm([a - b for a, b in zip(x, y, strict=True)]) / norm(y)


def cosine(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / norm(x) / norm(y)


def held(adv, ratio):
    """Whether min-clip with ε = .2 gives no slope."""
    return (adv > 0 and ratio > 1.2) or (adv < 0 and ratio < 0.8)


class Tree:
    """`tree_of(draw, depth)` and the policy that moved away from it, as tables by prefix."""

    def __init__(self, draw, delta, depth=3):
        prefixes = [p for t in range(depth) for p in product(range(3), repeat=t)]
        size = 3 * len(prefixes)
        drawn = [float(x) for x in normal(2 * size + 3**depth, draw)]
        turn = [float(x) for x in normal(size, 1000 + draw)]
        self.depth, self.old, self.new = depth, {}, {}
        for row, prefix in enumerate(prefixes):
            logits = drawn[3 * row : 3 * row + 3]
            self.old[prefix] = softmax(logits)
            self.new[prefix] = softmax(
                [z + delta * turn[3 * row + v] for v, z in enumerate(logits)]
            )
        self.rewards = dict(zip(product(range(3), repeat=depth), drawn[2 * size :], strict=True))

    def prob(self, sequence, table):
        return prod(table[sequence[:t]][v] for t, v in enumerate(sequence))

    def q(self, prefix, table):
        """Expected reward from a prefix on."""
        if len(prefix) == self.depth:
            return self.rewards[prefix]
        return sum(table[prefix][v] * self.q((*prefix, v), table) for v in range(3))

    def gradient(self, reach, follow, tokens):
        """Rows of Σ_x reach(x)·Σ_a tokens(a|x)·Q_follow(x, a)·∇log new(a|x), as one list.

        With all three from one policy this is the policy gradient of that policy.
        """
        rows = []
        for prefix in self.new:
            arrived = self.prob(prefix, reach)
            weights = [arrived * tokens[prefix][v] * self.q((*prefix, v), follow) for v in range(3)]
            rows += pull(weights, self.new[prefix])
        return rows

    def right(self):
        return self.gradient(self.new, self.new, self.new)

    def by_token_ratio(self):
        return self.gradient(self.old, self.old, self.new)

    def without_ratio(self):
        """The baseline V_old counts here: scores of new have no mean 0 under old."""
        start, rows = self.q((), self.old), []
        for prefix in self.new:
            arrived = self.prob(prefix, self.old)
            weights = [
                arrived * self.old[prefix][v] * (self.q((*prefix, v), self.old) - start)
                for v in range(3)
            ]
            rows += pull(weights, self.new[prefix])
        return rows

    def root_mean(self, prefix=(), power=1.0):
        """E_old[(ρ_seq)^power], down the tree."""
        if len(prefix) == self.depth:
            return 1.0
        return sum(
            p * (n / p) ** power * self.root_mean((*prefix, v), power)
            for v, (p, n) in enumerate(zip(self.old[prefix], self.new[prefix], strict=True))
        )

    def by_root(self):
        """E_old[(R − V_old)·ρ_seq^(1/T)·Σ_t ∇log new(a_t)]."""
        start = self.q((), self.old)
        weights = {prefix: [0.0] * 3 for prefix in self.new}
        for sequence, reward in self.rewards.items():
            old, new = self.prob(sequence, self.old), self.prob(sequence, self.new)
            weight = old * (new / old) ** (1 / self.depth) * (reward - start)
            for t, v in enumerate(sequence):
                weights[sequence[:t]][v] += weight
        return [x for prefix, w in weights.items() for x in pull(w, self.new[prefix])]

    def surrogate(self):
        """L = Σ_t E_{x~old}E_{a~new}[Q_old(x, a) − V_old(x)]."""
        return sum(
            self.prob(prefix, self.old)
            * sum(
                (n - p) * self.q((*prefix, v), self.old)
                for v, (p, n) in enumerate(zip(self.old[prefix], self.new[prefix], strict=True))
            )
            for prefix in self.new
        )

    def improvement(self):
        return self.q((), self.new) - self.q((), self.old)

    def bound(self):
        """2·T·(T − 1)·max|A|·TV²."""
        largest = max(
            abs(self.q((*x, v), self.old) - self.q(x, self.old)) for x in self.old for v in range(3)
        )
        tv = max(
            sum(abs(n - p) for n, p in zip(self.new[x], self.old[x], strict=True)) / 2
            for x in self.old
        )
        return 2 * self.depth * (self.depth - 1) * largest * tv**2
