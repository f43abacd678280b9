"""A loss with a parameter that says nothing."""

import math


def grpo_loss(new_logps, old_logps, advantages, mask, stuff):
    total = count = 0
    for i, adv in enumerate(advantages):
        for t in range(len(mask[i])):
            if mask[i][t]:
                total -= math.exp(new_logps[i][t] - old_logps[i][t]) * adv + stuff.extra(i, t)
                count += 1
    return total / count
