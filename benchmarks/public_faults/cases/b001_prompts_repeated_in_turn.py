# entry: B001
# source: PrimeIntellect-ai/prime-rl#600
# expect: ADV002
# repair: verified
"""Prompts are repeated for the engine, rewards are cut into windows of one problem each."""

import torch


def compute_advantages(rewards, samples_per_problem):
    """Rewards of a window minus the mean of the window."""
    groups = rewards.view(-1, samples_per_problem)  # <- here
    return (groups - groups.mean(dim=1, keepdim=True)).flatten()


def token_logprobs(model, input_ids):
    logits = model(input_ids).logits[:, :-1]
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    return logprobs.gather(-1, input_ids[:, 1:].unsqueeze(-1)).squeeze(-1)


def train(model, problems, score, n=8):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)
    for batch in problems:
        prompts = [row["prompt"] for row in batch]
        repeated = prompts * n  # <- fault
        # twin: repeated = [prompt for prompt in prompts for _ in range(n)]
        input_ids = model.generate(repeated, do_sample=True, temperature=1.0)
        rewards = torch.tensor(score(input_ids))
        advantages = compute_advantages(rewards, n)  # <- here
        logprobs = token_logprobs(model, input_ids)
        ratio = torch.exp(logprobs - logprobs.detach())
        loss = -(ratio * advantages.unsqueeze(1)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
