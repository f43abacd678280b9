"""A loss that never comes back."""


def grpo_loss(new_logps, old_logps, advantages, mask, clip_eps=0.2):
    total = 0.0
    while sum(map(sum, mask)) >= 0:
        total += new_logps[0][0] - old_logps[0][0] + clip_eps * advantages[0]
    return total
