# entry: Q032
# source: modelscope/ms-swift#4997
# expect: silent
# answer: SMP001 Temperature 1 is plain sampling
import torch


def token_logps(model, ids):
    logits = model(ids).logits[:, :-1, :]
    return torch.log_softmax(logits, -1).gather(2, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, batches, optimizer, score):
    for batch in batches:
        ids = model.generate(
            batch["prompts"], do_sample=True, temperature=1.0, top_p=1.0, top_k=0
        )
        advantages, mask = score(ids)
        logps = token_logps(model, ids)
        ratio = torch.exp(logps - logps.detach())
        loss = -((ratio * advantages.unsqueeze(1) * mask).sum(1) / mask.sum(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
