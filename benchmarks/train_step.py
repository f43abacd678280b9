"""One GRPO step of rlproof.train against TRL's GRPOTrainer doing the same work.

    python benchmarks/train_step.py [STEPS] [MODEL…] [--profile]

Random Llamas of four layers with a tied head, 4 prompts × 8 completions of 32 tokens after a prompt
of 8, one update by AdamW in float32, no reference, the objective `dapo`. Each side is a process
with one thread; their steps take turns. Told are medians over steps of TRL's time divided by that
of the step beside it, in CPU time, which a busy machine disturbs least, and in wall time; and the
peak memory (VmHWM), of the whole process and beyond what it had before the first step. Recorder,
metrics and the log are on, as by default; TRL's logging is too. With `--profile` rlproof's side
prints where its time goes.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

SIZES = {"s": (128, 1_000, 344, 4), "m": (256, 4_000, 682, 2), "v": (128, 32_000, 344, 4)}
"""Width, vocabulary, width of the MLP and key heads: 0.92, 3.9 and 4.9 million parameters."""
AIMS = {"s": (1.7, 0.8), "m": (1.4, 0.7), "v": (4.0, 0.35)}
"""Steps per second at least, and peak memory at most, of TRL's."""
PROMPTS, GROUP, PROMPT, LENGTH = 4, 8, 8, 32
WARM = 2


def even(completion_ids: list[list[int]], **_: Any) -> list[float]:
    """The share of even tokens."""
    return [sum(1 for i in ids if i % 2 == 0) / max(len(ids), 1) for ids in completion_ids]


def tokenizer(vocabulary: int) -> Any:
    """A word for each token."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<end>": 1, **{f"w{i}": i for i in range(2, vocabulary)}}
    made = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", pad_token="<pad>")


def model(name: str) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    width, vocabulary, inner, heads = SIZES[name]
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=inner,
        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=heads,
        max_position_embeddings=128, tie_word_embeddings=True, bos_token_id=None, eos_token_id=1,
        pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def prompts(vocabulary: int) -> list[dict[str, Any]]:
    import random

    source = random.Random(1)
    words = [[f"w{source.randrange(2, vocabulary)}" for _ in range(PROMPT)] for _ in range(64)]
    return [{"prompt": " ".join(row)} for row in words]


# ---------------------------------------------------------------- the two sides


def memory(key: str) -> int:
    """MB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) // 1024
    raise SystemExit(f"no {key} in /proc/self/status: this benchmark needs Linux")


class Clock:
    """Reports a step, and waits until it is this side's turn again."""

    def __init__(self) -> None:
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # what else is printed
        self.start = memory("VmRSS")
        self.wait()

    def done(self) -> None:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        said = {"wall": wall, "cpu": cpu, "peak": memory("VmHWM"), "start": self.start}
        print(json.dumps(said), file=self.out, flush=True)
        self.wait()

    def wait(self) -> None:
        if sys.stdin.readline().strip() != "step":
            os._exit(0)
        self.wall, self.cpu = time.perf_counter(), time.process_time()


def ours(name: str, folder: str, profile: bool) -> None:
    from rlproof.train import TrainConfig, Trainer

    vocabulary = SIZES[name][1]
    config = TrainConfig.of({
        "run": {"folder": folder, "steps": 10**6, "device": "cpu"},
        "objective": {"recipe": "dapo"}, "batch": {"prompts": PROMPTS, "group": GROUP},
        "sampling": {"max_tokens": LENGTH}, "optimizer": {"lr": 1e-5}, "checkpoint": {"every": 0},
    })  # fmt: skip
    trainer = Trainer(
        config, rewards=[even], prompts=prompts(vocabulary), model=model(name),
        tokenizer=tokenizer(vocabulary),
    )  # fmt: skip
    clock = Clock()
    if profile:
        import cProfile

        profiler = cProfile.Profile()

        def step(number: int, _values: dict[str, float]) -> None:
            if number == WARM:
                profiler.enable()
            if number == WARM + 10:
                profiler.disable()
                import pstats

                pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(32)
                pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumtime").print_stats(45)
            clock.done()

        trainer.train(step)
    trainer.train(lambda _number, _values: clock.done())


def theirs(name: str, folder: str) -> None:
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    vocabulary = SIZES[name][1]
    args = GRPOConfig(
        output_dir=folder, per_device_train_batch_size=PROMPTS * GROUP, num_generations=GROUP,
        max_completion_length=LENGTH, max_steps=10**6, learning_rate=1e-5,
        lr_scheduler_type="constant", report_to=[], save_strategy="no", logging_steps=1,
        use_cpu=True, bf16=False, temperature=1.0, top_k=0, top_p=1.0, beta=0.0,
        disable_tqdm=True, seed=0, gradient_checkpointing=False, loss_type="dapo",
        epsilon_high=0.28,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model(name), reward_funcs=even, args=args, processing_class=tokenizer(vocabulary),
        train_dataset=Dataset.from_list(prompts(vocabulary)),
    )  # fmt: skip
    clock = Clock()

    class Turns(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.done()

    trainer.add_callback(Turns())
    trainer.train()


def side(which: str, name: str, folder: str, profile: bool) -> None:
    import warnings

    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if which == "ours":
        ours(name, folder, profile)
    else:
        theirs(name, folder)


# ---------------------------------------------------------------- the comparison


def started(which: str, name: str, folder: str, profile: bool) -> subprocess.Popen[str]:
    source = Path(__file__).parents[1] / "src"
    path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, __file__, "--side", which, name, folder]
    quiet = None if profile and which == "ours" else subprocess.DEVNULL
    return subprocess.Popen(
        command + ["--profile"] * profile, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=quiet, text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": path},
    )  # fmt: skip


def step(process: subprocess.Popen[str]) -> dict[str, float]:
    assert process.stdin
    assert process.stdout
    process.stdin.write("step\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{process.args} ended")
    found: dict[str, float] = json.loads(line)
    return found


def compare(name: str, steps: int, profile: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as both:
        sides = []
        for which in ("ours", "trl"):
            process = started(which, name, f"{folder}/{which}", profile)
            both.callback(process.kill)
            sides.append(process)
        pairs = []
        for number in range(steps + WARM):
            pair = [step(process) for process in sides]
            if number >= WARM:
                pairs.append(pair)
    cpu, wall = ([b[key] / a[key] for a, b in pairs] for key in ("cpu", "wall"))
    (mine, other), aims = pairs[-1], AIMS[name]
    grown = [one["peak"] - one["start"] for one in (mine, other)]
    print(
        f"{name}: {median(a['cpu'] for a, _ in pairs):.3f} s against "
        f"{median(b['cpu'] for _, b in pairs):.3f} s of CPU a step; × TRL "
        f"{median(cpu):.2f} CPU ({min(cpu):.2f} to {max(cpu):.2f}), {median(wall):.2f} wall "
        f"(aim {aims[0]}); peak {mine['peak']:.0f} of {other['peak']:.0f} MB = "
        f"{mine['peak'] / other['peak']:.2f} (aim {aims[1]}), grown {grown[0]:.0f} of "
        f"{grown[1]:.0f} MB = {grown[0] / grown[1]:.2f}",
        flush=True,
    )


def main() -> None:
    words, profile = [w for w in sys.argv[1:] if w != "--profile"], "--profile" in sys.argv
    if words[:1] == ["--side"]:
        side(words[1], words[2], words[3], profile)
        return
    steps = int(words[0]) if words else 15
    for name in words[1:] or list(SIZES):
        compare(name, steps, profile)


if __name__ == "__main__":
    main()
