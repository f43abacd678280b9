"""A NumPy trainer with two faults that its reward does not show, recorded step by step."""

import numpy as np

import rlproof

PROMPTS, GROUP, LENGTH, WORDS = 4, 8, 5, 4


def log_probs(theta, tokens):
    logits = np.repeat(theta, GROUP, axis=0)[:, None] + np.zeros((1, LENGTH, 1))
    logits = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return np.take_along_axis(logits, tokens[..., None], -1)[..., 0], np.exp(logits)


rng = np.random.default_rng(0)
theta = np.zeros((PROMPTS, WORDS))
with open("metrics.jsonl", "w") as log:
    for step in range(40):
        chances = np.exp(theta) / np.exp(theta).sum(-1, keepdims=True)
        tokens = np.array(
            [rng.choice(WORDS, LENGTH, p=p) for p in np.repeat(chances, GROUP, axis=0)]
        )
        mask = (np.arange(LENGTH) < rng.integers(1, LENGTH + 1, (len(tokens), 1))).astype(float)
        wanted = np.repeat(np.arange(PROMPTS), GROUP)[:, None]
        rewards = ((tokens == wanted) * mask).sum(1) / mask.sum(1)
        advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-6)  # of the batch
        old, _ = log_probs(theta, tokens)
        for update in range(2):
            new, chance = log_probs(theta, tokens)
            ratio = np.exp(new - old)
            gain = np.minimum(
                ratio * advantages[:, None], np.clip(ratio, 0.8, 1.2) * advantages[:, None]
            )
            loss = -gain.mean()  # over padding too
            rlproof.record(
                step=step, update=update, rewards=rewards, groups=GROUP, advantages=advantages,
                new_logps=new, old_logps=old, mask=mask, tokens=tokens, loss=loss,
                path="steps.jsonl", every=4,
            )  # fmt: skip
            held = ratio * advantages[:, None] > np.clip(ratio, 0.8, 1.2) * advantages[:, None]
            slope = np.where(held, 0, -ratio * advantages[:, None]) / mask.size
            rise = slope[..., None] * (np.eye(WORDS)[tokens] - chance)
            theta -= 4 * rise.sum(1).reshape(PROMPTS, GROUP, WORDS).sum(1)
        dead = np.mean([len(set(group)) == 1 for group in rewards.reshape(PROMPTS, GROUP)])
        row = f'"reward": {rewards.mean():.4f}, "adv_std": {advantages.std():.6f}'
        print(f'{{"step": {step}, {row}, "zero_std_frac": {dead}}}', file=log)
