"""Language models small enough for a test: random weights, a byte-level tokenizer, no network."""

from __future__ import annotations

from typing import Any

CHARS = "0123456789+=ab"


def tokenizer(chars: str | None = CHARS) -> Any:
    """Bytes as tokens, or just some characters, with an end and a padding token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if chars is None else list(chars)
    vocabulary = {"<pad>": 0, "<end>": 1, **{c: n + 2 for n, c in enumerate(alphabet)}}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", pad_token="<pad>")


def llama(vocabulary: int = len(CHARS) + 2, width: int = 16, **settings: Any) -> dict[str, Any]:
    """The settings of a Llama of two layers."""
    return {
        "model_type": "llama", "vocab_size": vocabulary, "hidden_size": width,
        "intermediate_size": 2 * width, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0,
        "bos_token_id": None, "eos_token_id": 1, **settings,
    }  # fmt: skip


def gpt2(vocabulary: int = len(CHARS) + 2, width: int = 16) -> dict[str, Any]:
    """The settings of a GPT-2 of two layers, with tied embeddings and dropout."""
    return {
        "model_type": "gpt2", "vocab_size": vocabulary, "n_embd": width, "n_layer": 2, "n_head": 2,
        "n_positions": 64, "bos_token_id": 1, "eos_token_id": 1, "resid_pdrop": 0.1,
    }  # fmt: skip


def model(settings: dict[str, Any] | None = None, seed: int = 0) -> Any:
    """Fresh random weights."""
    from rlproof.train.config import Model
    from rlproof.train.policy import load_model

    return load_model(Model(config=settings or llama()), seed)


def share_of_a(completions: list[Any], **_: Any) -> list[float]:
    """The share of the letter a: what a model can learn in a few steps."""
    texts = [c if isinstance(c, str) else c[0]["content"] for c in completions]
    return [text.count("a") / max(len(text), 1) for text in texts]


PROMPTS = [{"prompt": f"{n}+{n}=", "answer": str(2 * n)} for n in range(8)]
