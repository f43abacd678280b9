# entry: B107
# source: Goekdeniz-Guelmez/mlx-lm-lora#65
# expect: LGP007|SUR012
# repair: verified
"""Log-probs come from a function that records nothing, so the loss has no gradient."""

import torch


@torch.no_grad()  # <- fault
def get_logps(model, input_ids, attention_mask):
    logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, :-1]
    logps = torch.log_softmax(logits.float(), dim=-1)
    return logps.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)  # <- here


def loss_fn(model, batch, clip=0.2):
    policy_logps = get_logps(model, batch["input_ids"], batch["attention_mask"])
    ratio = torch.exp(policy_logps - batch["old_logps"])
    adv = batch["advantages"].unsqueeze(1)
    loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
    return (loss * batch["mask"]).sum() / batch["mask"].sum()
