# entry: B147
# source: huggingface/trl#2698
# kind: run
# expect: ROL005
"""A dump: prompts that come again get the completions of the first step."""

import json

with open(PATH, "w") as file:
    for step in range(6):
        for prompt in range(3):
            for k in range(4):
                draw = k  # <- fault
                # twin: draw = 4 * step + k
                row = {
                    "step": step, "prompt": f"question {prompt}", "score": float(k == 0),
                    "completion": f"the long answer number {draw} to question {prompt}",
                }  # fmt: skip
                print(json.dumps(row), file=file)
