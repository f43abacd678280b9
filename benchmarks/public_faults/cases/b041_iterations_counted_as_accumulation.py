# entry: B041
# source: tenstorrent/tt-blacksmith#731
# expect: LOP001
# repair: verified
"""Two iterations over each batch; the old policy is scored at the start of each of them."""

import torch


def token_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, loader, score, num_iterations=2, eps=0.2):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for prompts in loader:
        ids = model.generate(prompts, do_sample=True, temperature=1.0)
        advantages = score(ids)
        # twin: with torch.no_grad():
        # twin:     old_logps = token_logps(model, ids)
        for _ in range(num_iterations):
            with torch.no_grad():  # <- drop
                old_logps = token_logps(model, ids)  # <- fault
            logps = token_logps(model, ids)
            ratio = torch.exp(logps - old_logps)
            clipped = ratio.clamp(1 - eps, 1 + eps)
            loss = -torch.min(ratio * advantages, clipped * advantages).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
