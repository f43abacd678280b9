"""Real runs of TRL's GRPOTrainer on a tiny random model, healthy and with one thing wrong.

The task: prompts of one digit, completions of letters; the reward is the share of the letter `a`.
Everything is built here, so no network is needed.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

LETTERS = "abcdefgh"
DIGITS = "0123456789"
PAD, BOS, EOS = 0, 1, 2
LONGEST = 12
GROUP = 4


def tokenizer(double_bos: bool = False) -> Any:
    """Letters, digits and pairs of letters, one token each; BOS is put before every text."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<s>", "</s>", *DIGITS, *LETTERS, "ab"]
    vocabulary = {word: i for i, word in enumerate(words)}
    merges = [("a", "b")]
    made = Tokenizer(models.BPE(vocabulary, merges, unk_token=None))
    made.pre_tokenizer = pre_tokenizers.Split("\n", "removed")
    front = "<s> <s> $A" if double_bos else "<s> $A"
    made.post_processor = processors.TemplateProcessing(single=front, special_tokens=[("<s>", BOS)])
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )


def model(dropout: float = 0.0, seed: int = 0) -> Any:
    """A random Llama of 20 thousand parameters, sure enough of itself to be told apart."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(DIGITS) + len(LETTERS) + 4, hidden_size=32, intermediate_size=64,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, bos_token_id=BOS,
        eos_token_id=EOS, pad_token_id=PAD, attention_dropout=dropout, initializer_range=0.3,
        tie_word_embeddings=False, max_position_embeddings=64,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def reward(completions: list[str], **_: Any) -> list[float]:
    """The share of `a`."""
    return [text.count("a") / max(len(text), 1) for text in completions]


def nothing(completions: list[str], **_: Any) -> list[float]:
    """The same for all: dead groups."""
    return [0.5 for _ in completions]


def config(folder: Any, **settings: Any) -> Any:
    """Eight completions a micro-batch, two of them a step; every run ends after `max_steps`."""
    from trl import GRPOConfig

    usual = {
        "output_dir": str(folder), "per_device_train_batch_size": 8, "num_generations": GROUP,
        "gradient_accumulation_steps": 2, "max_completion_length": LONGEST, "max_steps": 6,
        "learning_rate": 3e-3, "report_to": [], "save_strategy": "no", "logging_steps": 1,
        "use_cpu": True, "bf16": False, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "beta": 0.04,
        "disable_tqdm": True, "seed": 0, "gradient_checkpointing": False, "loss_type": "grpo",
        "shuffle_dataset": False,
    }  # fmt: skip
    return GRPOConfig(**(usual | settings))


def trainer(
    folder: Any, kind: Any = None, *, rewarded: Any = reward, dropout: float = 0.0,
    double_bos: bool = False, adapter: Any = None, **settings: Any,
) -> Any:  # fmt: skip
    """A trainer of TRL, or of a subclass, ready to train."""
    from datasets import Dataset
    from trl import GRPOTrainer

    data = Dataset.from_list([{"prompt": digit} for digit in DIGITS[:8]])
    weights = os.path.join(folder, "model")
    model(dropout).save_pretrained(weights)
    return (kind or GRPOTrainer)(
        model=weights, reward_funcs=rewarded, args=config(folder, **settings),
        train_dataset=data, eval_dataset=data, processing_class=tokenizer(double_bos),
        peft_config=adapter,
    )  # fmt: skip
