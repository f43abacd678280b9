# entry: B089
# source: NVIDIA-NeMo/RL#935
# expect: LGP001
# repair: verified
"""A loop that samples at 0.7 and scores what it sampled without it."""

import torch


def token_logps(model, ids):
    logits = model(ids).logits[:, :-1, :]
    # twin: logits = logits / 0.7
    logps = torch.log_softmax(logits, dim=-1)
    return logps.gather(2, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, prompts, score, optimizer, epochs=2, eps=0.2):
    for batch in prompts:
        ids = model.generate(batch, do_sample=True, temperature=0.7, top_p=1.0, top_k=0)  # <- here
        advantages, mask = score(ids)
        with torch.no_grad():
            old_logps = token_logps(model, ids)
        for _ in range(epochs):
            ratio = torch.exp(token_logps(model, ids) - old_logps)
            adv = advantages.unsqueeze(1)
            gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
            loss = -((gain * mask).sum(1) / mask.sum(1)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
