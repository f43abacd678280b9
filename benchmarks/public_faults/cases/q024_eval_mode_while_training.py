# entry: Q024
# source: lqtrung1998/mwp_ReFT#18
# expect: silent
# answer: STP017 Evaluation mode switches dropout off and nothing else
import torch


def token_logps(model, ids):
    logits = model(ids).logits[:, :-1, :]
    return torch.log_softmax(logits, -1).gather(2, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, batches, optimizer, epochs=2, eps=0.2):
    model.eval()
    for batch in batches:
        ids, mask = batch["ids"], batch["mask"]
        with torch.no_grad():
            old_logps = token_logps(model, ids)
        for _ in range(epochs):
            logps = token_logps(model, ids)
            ratio = torch.exp(logps - old_logps)
            adv = batch["advantages"].unsqueeze(1)
            gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
            loss = -((gain * mask).sum(1) / mask.sum(1)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
