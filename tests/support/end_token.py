"""Completions of a stateless policy that ends them itself: at most 5 tokens of 4; token 3 ends."""

from itertools import product
from math import exp, prod

LOGITS = (0.2, 0.0, -0.1, -0.3)


def sequences():
    """Up to 5 tokens of 4; token 3 ends."""
    for length in range(1, 6):
        for tokens in product(range(4), repeat=length):
            if 3 not in tokens[:-1] and (length == 5 or tokens[-1] == 3):
                yield tokens


def types(logits=LOGITS):
    """(length, reward) to [probability, probability times score]."""
    total = sum(map(exp, logits))
    probs = [exp(z) / total for z in logits]
    found = {}
    for tokens in sequences():
        chance = prod(probs[v] for v in tokens)
        key = (len(tokens), int(0 in tokens[:2]))
        own = found.setdefault(key, [0.0, [0.0] * 4])
        own[0] += chance
        for v in range(4):
            own[1][v] += chance * (tokens.count(v) - len(tokens) * probs[v])
    return found
