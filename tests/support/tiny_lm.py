"""Small random language models of several architectures, made from a configuration."""

from __future__ import annotations

from typing import Any

VOCABULARY, CONTEXT = 211, 64
_LLAMA = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": CONTEXT,
}  # fmt: skip
_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": CONTEXT}
_NONE = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", _LLAMA),
    "llama-tied": ("llama", {**_LLAMA, "tie_word_embeddings": True}),
    "qwen2": ("qwen2", _LLAMA),
    "qwen3": ("qwen3", _LLAMA),
    "gpt2": ("gpt2", _GPT2),
    "gemma3": ("gemma3_text", {**_LLAMA, "sliding_window": 6}),
    "mistral-sliding": ("mistral", {**_LLAMA, "sliding_window": 6}),
    "mamba": ("mamba", {"hidden_size": 32, "num_hidden_layers": 2}),
}


def tiny_lm(name: str = "llama", seed: int = 0, std: float = 0.15, **settings: Any) -> Any:
    """A causal language model with normal weights, so that its logits differ clearly."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    kind, base = KINDS[name]
    config = AutoConfig.for_model(kind, vocab_size=VOCABULARY, **{**_NONE, **base, **settings})
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=std)
    return model.eval()


def trained_logps(model: Any, batch: Any, temperature: float = 1.0) -> Any:
    """Log-probs (B, T) of the completions by one forward over prompt and completion."""
    import torch

    with torch.no_grad():
        logits = model(
            input_ids=batch.ids, attention_mask=batch.attention, position_ids=batch.positions
        ).logits
    slots = logits[:, batch.prompts.shape[1] - 1 : -1].float() / temperature
    return slots.log_softmax(-1).gather(-1, batch.tokens[..., None])[..., 0]
