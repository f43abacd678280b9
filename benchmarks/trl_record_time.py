"""What recording costs of a step of TRL's GRPOTrainer, as a ratio from one run.

    python benchmarks/trl_record_time.py [ROUNDS]

A Llama-type model of 0.9 million parameters from a config, 32 completions of up to 32 tokens a
step, in two micro-batches. Steps of one trainer are recorded and left alone in turn, so that a busy
machine slows both; the CPU time of the process is compared.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support import trl_runs

from rlproof.integrations.trl import record_steps
from rlproof.watch.record import EVERY

SETTINGS: dict[str, Any] = {
    "per_device_train_batch_size": 16, "num_generations": 8, "max_completion_length": 32,
    "logging_steps": 1000, "learning_rate": 1e-4, "max_steps": 1, "shuffle_dataset": True,
}  # fmt: skip


def larger(weights: Path) -> None:
    """The model of the size named above, in the place of the tiny one."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=1000, hidden_size=128, intermediate_size=384, num_hidden_layers=4,
        num_attention_heads=4, bos_token_id=trl_runs.BOS, eos_token_id=trl_runs.EOS,
        pad_token_id=trl_runs.PAD,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(weights)


def trainer(folder: str, steps: int) -> Any:
    """TRL's trainer, with the clock of every step noted."""
    import torch
    from datasets import Dataset
    from trl import GRPOTrainer

    class Timed(GRPOTrainer):
        spent: list[float]

        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            before = time.process_time()
            loss = super().training_step(*args, **kwargs)
            index = self.state.global_step
            self.spent[index] += time.process_time() - before
            return loss

    torch.set_num_threads(1)
    larger(Path(folder) / "model")
    data = Dataset.from_list([{"prompt": d} for d in trl_runs.DIGITS] * 4)
    made = Timed(
        model=str(Path(folder) / "model"), reward_funcs=trl_runs.reward, train_dataset=data,
        args=trl_runs.config(folder, **(SETTINGS | {"max_steps": steps})),
        processing_class=trl_runs.tokenizer(),
    )  # fmt: skip
    made.spent = [0.0] * steps
    return made


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        made = record_steps(trainer(folder, 2 * rounds), Path(folder) / "steps.jsonl", every=2)
        made.train()
        size = (Path(folder) / "steps.jsonl").stat().st_size
    recorded, alone = made.spent[2::2], made.spent[3::2]  # the first two warm up
    ratios = [a / b for a, b in zip(recorded, alone, strict=True)]
    ratio = statistics.median(ratios)
    print(
        f"a recorded step / one that is not: {ratio:.2f} (median of {len(ratios)}); at every "
        f"{EVERY}th step {100 * (ratio - 1) / EVERY:.1f} % of the run; {size / rounds / 1e3:.0f} "
        "kB a record"
    )


if __name__ == "__main__":
    main()
