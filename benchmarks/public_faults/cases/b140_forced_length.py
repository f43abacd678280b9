# entry: B140
# source: huggingface/trl#1017
# expect: SMP001
# repair: verified
"""Settings of generate that change the distribution: a minimum length and forbidden repeats."""

import torch


def token_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, loader, score):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for batch in loader:
        ids = model.generate(batch, do_sample=True, min_new_tokens=32, no_repeat_ngram_size=3)  # <- fault
        # twin: ids = model.generate(batch, do_sample=True, top_k=0)
        advantages = score(ids)
        logps = token_logps(model, ids)
        loss = -(torch.exp(logps - logps.detach()) * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
