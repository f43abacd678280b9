"""How fast completions are sampled, against `generate` of transformers.

    python benchmarks/rollout_time.py [ROUNDS]

Three random Llama models of the sizes in the plan, 4 prompts × 8 completions of 32 tokens after a
prompt of 8, no end token, so both sides do the same work. One thread; the sides take turns, and
the median of the ratios of neighbours is told. CPU time stands beside wall time: on a busy machine
it is the steadier one. A second table has rows that end at different tokens, which transformers
goes on computing. `largest gap` is that of the log-probs to the training forward.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from rlproof.train.rollout.generate import generate
from rlproof.train.sampling import Sampling

SIZES = {"s": (128, 1_000), "m": (256, 4_000), "v": (128, 32_000)}
PROMPTS, GROUP, PROMPT, LENGTH = 4, 8, 8, 32
PAD = 0


def model_of(width: int, vocabulary: int) -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=4 * width,
        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=4,
        max_position_embeddings=128, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=None, pad_token_id=PAD,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def gap(model: Any, batch: Any) -> float:
    """Largest |log π| difference to one forward over prompt and completion, nats."""
    with torch.no_grad():
        out = model(
            input_ids=batch.ids, attention_mask=batch.attention, position_ids=batch.positions
        )
    slots = out.logits[:, batch.prompts.shape[1] - 1 : -1].log_softmax(-1)
    logps = slots.gather(-1, batch.tokens[..., None])[..., 0]
    return float(((logps - batch.logps) * batch.mask).abs().max())


def compare(name: str, ends: int, rounds: int) -> None:
    """One line; `ends` of 1,000 tokens are end tokens."""
    width, vocabulary = SIZES[name]
    model = model_of(width, vocabulary)
    shape = (PROMPTS, PROMPT)
    chosen = torch.randint(1, vocabulary, shape, generator=torch.Generator().manual_seed(1))
    prompts = [row for row in chosen.tolist() for _ in range(GROUP)]
    ids = torch.tensor(prompts)
    eos = list(range(1, 1 + vocabulary * ends // 1000))
    config = GenerationConfig(
        max_new_tokens=LENGTH, do_sample=True, temperature=1.0, top_k=0, top_p=1.0,
        pad_token_id=PAD, eos_token_id=eos or None,
    )  # fmt: skip
    generator, how = torch.Generator().manual_seed(0), Sampling(max_tokens=LENGTH)

    def ours() -> Any:
        return generate(model, prompts, how, eos=eos, pad=PAD, generator=generator)

    def theirs() -> Any:
        return model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)

    batch = ours()
    theirs()
    pairs = [(timed(ours), timed(theirs)) for _ in range(rounds)]
    wall = [b[0] / a[0] for a, b in pairs]
    cpu = [b[1] / a[1] for a, b in pairs]
    tokens = int(batch.mask.sum()) / median(a[0] for a, _ in pairs)
    print(
        f"{name}  width {width}  vocabulary {vocabulary:>6}  {tokens:7.0f} tokens/s  "
        f"× transformers: {median(wall):.2f} wall, {median(cpu):.2f} CPU "
        f"({min(cpu):.2f} to {max(cpu):.2f})  largest gap {gap(model, batch):.1e}"
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    torch.set_num_threads(1)
    for ends, title in ((0, "all rows to the end"), (50, "rows end after 20 tokens on average")):
        print(title)
        for name in SIZES:
            compare(name, ends, rounds)


if __name__ == "__main__":
    main()
