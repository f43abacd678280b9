# entry: B134
# source: huggingface/open-r1#255
# kind: run
# expect: any
# missed: no code: a part of the reward that falls while the sum rises may be what its weights ask for
"""A log: the format is learned, accuracy falls to 0, and the sum of both rises."""

import json

with open(PATH, "w") as file:
    for step in range(60):
        right = max(0.3 - 0.006 * step, 0.0)  # <- fault
        # twin: right = 0.3 + 0.004 * step
        tags = min(0.02 * step, 1.0)
        row = {"step": step, "reward": right + tags, "rewards/format_reward/mean": tags}
        print(json.dumps(row | {"rewards/accuracy_reward/mean": right}), file=file)
