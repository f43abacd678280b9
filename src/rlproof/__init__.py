"""rlproof: finds the bugs in a GRPO training script and proves each one with numbers."""

__version__ = "0.1.0"
