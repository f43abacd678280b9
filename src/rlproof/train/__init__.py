"""GRPO for language models on PyTorch, with the objectives of `rlproof.space`."""
