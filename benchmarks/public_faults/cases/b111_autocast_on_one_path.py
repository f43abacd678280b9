# entry: B111
# source: jingyaogong/minimind#814
# expect: LOP008
"""A GRPO epoch in mixed precision; the rollout scores its own tokens."""

import torch


def per_token_logps(model, ids, n_keep):
    logits = model(ids).logits[:, :-1, :]
    logps = torch.log_softmax(logits, dim=-1)
    return logps.gather(2, ids[:, 1:].unsqueeze(-1)).squeeze(-1)[:, -n_keep:]


def grpo_train_epoch(model, optimizer, batches, epsilon=0.2):
    autocast_ctx = torch.cuda.amp.autocast(dtype=torch.bfloat16)
    for batch in batches:
        ids, n_keep, mask = batch["ids"], batch["n_keep"], batch["mask"]
        # twin: with torch.no_grad(), autocast_ctx:
        with torch.no_grad():  # <- drop
            old_logps = per_token_logps(model, ids, n_keep)  # <- here
        with autocast_ctx:
            logps = per_token_logps(model, ids, n_keep)
        ratio = torch.exp(logps - old_logps)
        adv = batch["advantages"].unsqueeze(1)
        gain = torch.min(ratio * adv, torch.clamp(ratio, 1 - epsilon, 1 + epsilon) * adv)
        loss = -((gain * mask).sum(1) / mask.sum(1)).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
