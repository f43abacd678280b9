# entry: B138
# source: OpenPipe/ART#140
# expect: SMP001
# repair: verified
"""A repetition penalty that the trainer's log-probs don't have."""

import torch


def token_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, loader, score):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for batch in loader:
        ids = model.generate(batch, do_sample=True, temperature=1.0, repetition_penalty=1.05)  # <- fault
        # twin: ids = model.generate(batch, do_sample=True, temperature=1.0, top_k=0, top_p=1.0)
        advantages = score(ids)
        logps = token_logps(model, ids)
        loss = -(torch.exp(logps - logps.detach()) * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
