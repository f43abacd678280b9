# entry: B040
# source: huggingface/trl#3493
# expect: any
# repair: verified
"""Old log-probs are the current ones although a generation batch lasts several updates."""

import torch


def token_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, loader, score, accumulation=4, steps_per_generation=6, eps=0.2):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for prompts in loader:
        ids = model.generate(prompts, do_sample=True, temperature=1.0)
        advantages = score(ids)
        # twin: old = token_logps(model, ids).detach()
        # twin: old_parts = old.chunk(steps_per_generation)
        parts = list(zip(ids.chunk(steps_per_generation), advantages.chunk(steps_per_generation)))
        for k, (part, adv) in enumerate(parts):
            logps = token_logps(model, part)
            old_logps = logps.detach()  # <- fault
            # twin: old_logps = old_parts[k]
            ratio = torch.exp(logps - old_logps)
            loss = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
            (loss / accumulation).backward()
            if (k + 1) % accumulation == 0:
                optimizer.step()
                optimizer.zero_grad()
