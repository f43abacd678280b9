"""The nine repairs of broken_trainer.py: fault code to (lines as they are, lines as they should be).

LOP001 moves a line, so its two halves are one replacement from the first place to the second.
"""

REPAIRS = {
    "ADV001": (
        """\
    mean = sum(rewards) / len(rewards)
    std = (sum((r - mean) ** 2 for r in rewards) / len(rewards)) ** 0.5
    return [(r - mean) / std for r in rewards]
""",
        """\
    result = []
    for start in range(0, len(rewards), group_size):
        group = rewards[start : start + group_size]
        mean = sum(group) / len(group)
        std = (sum((r - mean) ** 2 for r in group) / len(group)) ** 0.5
        result += [(r - mean) / std for r in group]
    return result
""",
    ),
    "ADV004": ("(r - mean) / std for", "(r - mean) / (std + eps) for"),
    "MSK001": (
        """\
        for t in range(len(mask[i])):
""",
        """\
        for t in range(len(mask[i])):
            if not mask[i][t]:
                continue
""",
    ),
    "SUR001": (
        "ratio = new_logps[i][t] / old_logps[i][t]",
        "ratio = math.exp(new_logps[i][t] - old_logps[i][t])",
    ),
    "SUR004": ("surrogate = max(plain, clipped)", "surrogate = min(plain, clipped)"),
    "SUR005": ("total += surrogate + beta * kl", "total += -surrogate + beta * kl"),
    "LOP001": (
        """\
        for _ in range(epochs):
            old_logps = token_logps(theta, rows, tokens)
""",
        """\
        old_logps = token_logps(theta, rows, tokens)
        for _ in range(epochs):
""",
    ),
    "MET001": (
        "clip_fraction(now, old_logps, mask))",
        "clip_fraction(now, old_logps, mask, clip_eps=loss_kwargs.get(\"clip_eps\", 0.2)))",
    ),
}
"""MSK001 and MSK002 have one repair: a padded slot that is skipped is not counted either."""
