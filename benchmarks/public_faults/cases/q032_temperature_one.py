# entry: Q032
# source: modelscope/ms-swift#4997
# expect: silent
# answer: LGP001 plain sampling, and gives another text at every call
import torch


def token_logps(model, ids, temperature=1.0):
    logits = model(ids).logits[:, :-1].float() / temperature
    return torch.log_softmax(logits, -1).gather(-1, ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def rollout(model, prompts, num_generations=8, temperature=1.0):
    ids = model.generate(
        prompts.repeat_interleave(num_generations, 0), do_sample=True, temperature=temperature
    )
    with torch.no_grad():
        return ids, token_logps(model, ids, temperature)
