# entry: B089
# source: OpenRLHF/OpenRLHF#853
# expect: LGP001
# repair: verified
"""One script: generate at 0.7, log-probs at 1."""

import torch

TEMPERATURE = 0.7


def log_probs_from_logits(logits, labels):
    log_probs = torch.log_softmax(logits.float(), dim=-1)
    return log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def action_log_probs(actor, sequences, attention_mask):
    logits = actor(input_ids=sequences, attention_mask=attention_mask).logits
    # twin: logits = logits / TEMPERATURE
    return log_probs_from_logits(logits[:, :-1], sequences[:, 1:])  # <- here


def train(actor, loader, reward, optimizer):
    for prompts, attention_mask in loader:
        sequences = actor.generate(prompts, do_sample=True, temperature=TEMPERATURE)  # <- here
        advantages = reward(sequences)
        log_probs = action_log_probs(actor, sequences, attention_mask)
        loss = -(torch.exp(log_probs - log_probs.detach()) * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
