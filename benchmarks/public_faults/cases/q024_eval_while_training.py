# entry: Q024
# source: lqtrung1998/mwp_ReFT#18
# expect: silent
# answer: LOP012 `model.eval()` switches it off and leaves gradients as they are
import torch


def token_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, loader, optimizer, epochs=2, eps=0.2):
    model.eval()
    for batch in loader:
        ids, mask = batch["ids"], batch["mask"]
        with torch.no_grad():
            old_logps = token_logps(model, ids)
        for _ in range(epochs):
            ratio = torch.exp(token_logps(model, ids) - old_logps)
            adv = batch["advantages"].unsqueeze(1)
            gain = torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv)
            loss = -(gain * mask).sum() / mask.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
