"""Makes everything the training needs: prompts, a tokenizer, and a model that half knows how to add.

    python warm_up.py [--seed 0] [--steps 600] [--folder start]

The model is a Llama of 0.4 million weights with fresh random values. It sees some solved sums, so
that some of its answers are right: a reward of 0 for everything teaches nothing.
"""

import argparse
import json
from pathlib import Path

import torch
from task import sums
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

SOLVED, LENGTH = 1000, 10
IGNORED = -100  # what transformers leaves out of its loss


def tokenizer():
    """One token for each byte, and one for the end."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: n for n, token in enumerate(["<end>", *letters])}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<end>", eos_token="<end>")


def model(bytes_and_end):
    """Two layers, random weights."""
    end = bytes_and_end.eos_token_id
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(bytes_and_end), hidden_size=128, intermediate_size=256,
            num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
            max_position_embeddings=16, tie_word_embeddings=True,
            bos_token_id=None, eos_token_id=end, pad_token_id=end,
        )
    )


def rows(pairs, tokenizer):
    """Token ids and labels, (sums, LENGTH): only the answer and its end are learnt."""
    ids = torch.full((len(pairs), LENGTH), tokenizer.eos_token_id)
    labels = torch.full((len(pairs), LENGTH), IGNORED)
    for n, (prompt, answer) in enumerate(pairs):
        start = tokenizer(prompt)["input_ids"]
        whole = start + tokenizer(answer)["input_ids"] + [tokenizer.eos_token_id]
        ids[n, : len(whole)] = torch.tensor(whole)
        labels[n, len(start) : len(whole)] = torch.tensor(whole[len(start) :])
    return ids, labels


def train(policy, ids, labels, steps, lr=2e-3, batch=128):
    """Cross-entropy on the solved sums."""
    optimizer = torch.optim.AdamW(policy.parameters(), lr=lr, betas=(0.9, 0.98))
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = lr * min((step + 1) / 20, 1)
        chosen = torch.randint(len(ids), (batch,))
        loss = policy(input_ids=ids[chosen], labels=labels[chosen]).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % 100 == 0:
            print(f"warm-up {step + 1}/{steps}  loss {loss.item():.3f}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--steps", type=int, default=600)
    options.add_argument("--folder", type=Path, default=Path(__file__).parent / "start")
    given = options.parse_args()

    torch.manual_seed(given.seed)
    trained, _held_out = sums()
    bytes_and_end = tokenizer()
    policy = model(bytes_and_end)
    train(policy, *rows(trained[:SOLVED], bytes_and_end), given.steps)
    policy.save_pretrained(given.folder)
    bytes_and_end.save_pretrained(given.folder)
    with open(given.folder / "prompts.jsonl", "w", encoding="utf-8") as file:
        for prompt, answer in trained:
            file.write(json.dumps({"prompt": prompt, "answer": answer}) + "\n")


if __name__ == "__main__":
    main()
