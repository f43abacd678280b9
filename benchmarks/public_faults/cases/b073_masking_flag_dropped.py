# entry: B073
# source: allenai/open-instruct#1202
# expect: any
# repair: verified
"""A refactored call loses the flag that masks tool output."""

import torch


def grpo_loss(logps, old_logps, advantages, response_mask, tool_mask, mask_tool_use=False):
    mask = response_mask * tool_mask if mask_tool_use else response_mask
    ratio = torch.exp(logps - old_logps)
    adv = advantages.unsqueeze(1)
    per_token = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv)
    return (per_token * mask).sum() / mask.sum()


def training_step(model, batch, args):
    logps = model.log_probs(batch["ids"])
    return grpo_loss(
        logps,
        batch["old_logps"],
        batch["advantages"],
        batch["response_mask"],
        batch["tool_mask"],  # <- here
        # twin: mask_tool_use=True,
    )
