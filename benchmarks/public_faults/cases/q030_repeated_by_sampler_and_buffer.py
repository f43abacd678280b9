# entry: Q030
# source: huggingface/trl#3532
# expect: silent
# answer: LOP001 say the same thing twice
import torch


def token_logps(model, ids):
    logps = torch.log_softmax(model(ids).logits[:, :-1].float(), dim=-1)
    return logps.gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def repeated(batches, steps_per_generation):
    """The sampler: every batch of prompts comes once for each step that uses it."""
    for batch in batches:
        for _ in range(steps_per_generation):
            yield batch


def train(model, batches, reward_fn, optimizer, steps_per_generation=4, eps=0.2):
    buffer = []
    for step, batch in enumerate(repeated(batches, steps_per_generation)):
        if step % steps_per_generation == 0:
            ids = model.generate(batch["prompts"], do_sample=True, temperature=1.0)
            with torch.no_grad():
                old = token_logps(model, ids)
            rewards = reward_fn(ids)
            adv = rewards - rewards.mean()
            rows = torch.randperm(len(ids)).chunk(steps_per_generation)
            buffer = [(ids[r], old[r], adv[r]) for r in rows]
        ids, old, adv = buffer[step % steps_per_generation]
        ratio = torch.exp(token_logps(model, ids) - old)
        adv = adv.unsqueeze(1)
        loss = -torch.min(ratio * adv, ratio.clamp(1 - eps, 1 + eps) * adv).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
