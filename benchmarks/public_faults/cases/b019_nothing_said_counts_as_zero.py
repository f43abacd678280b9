# entry: B019
# source: huggingface/trl#5902
# kind: run
# facts: objective=grpo
# expect: ROL003
"""A table of completions: a completion that no reward function scored has an advantage."""

import json

rewards = [None, -1.0, -1.0, -1.0]
with open(PATH, "w") as file:
    for step in range(3):
        for prompt in range(2):
            known = [r if r is not None else 0.0 for r in rewards]  # <- fault
            # twin: known = [r for r in rewards if r is not None] + [1.0, 0.0]
            mean = sum(known) / len(known)
            std = (sum((r - mean) ** 2 for r in known) / len(known)) ** 0.5
            for k, reward in enumerate(rewards):
                value = reward if reward is not None else 0.0
                advantage = (value - mean) / (std + 1e-4)
                # twin: if reward is None: advantage = 0.0
                row = {
                    "step": step,
                    "prompt": f"prompt {step}/{prompt}",
                    "completion": f"completion {k}",
                    "reward": reward,
                    "advantage": advantage,
                }
                # twin: if reward is None: row["reward"], row["advantage"] = 0.0, 0.0
                print(json.dumps(row), file=file)
