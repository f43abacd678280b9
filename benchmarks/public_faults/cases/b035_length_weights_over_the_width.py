# entry: B035
# source: huggingface/trl#6654
# expect: MSK001|MSK002|AGG004
# also: MSK001 MSK002 AGG004
# repair: verified
"""A length-unbiased objective: the token losses of a row are to be summed."""

import torch


def luspo_loss(per_token_logps, old_per_token_logps, advantages, completion_mask, epsilon=0.2):
    coef_1 = torch.exp(per_token_logps - old_per_token_logps)
    coef_2 = coef_1.clamp(1 - epsilon, 1 + epsilon)
    adv = advantages.unsqueeze(1)
    per_token_loss = -torch.min(coef_1 * adv, coef_2 * adv)
    return (per_token_loss * completion_mask.sum(1, keepdim=True)).mean()  # <- fault
    # twin: return (per_token_loss * completion_mask).sum(1).mean()
