"""Words that many rows of the tables share."""

from __future__ import annotations

TRL_TOKENS = (
    "To 1.9.0 the divisor is the tokens of the generation batch: that of the optimizer step only "
    "where steps_per_generation = gradient_accumulation_steps, the default."
)
LIGER_TOKENS = "Pass num_items_in_batch: without it the count is that of the micro-batch."
NEMO = "use_leave_one_out_baseline=False, reference_policy_kl_penalty=0"


def swift_tokens(first: str) -> str:
    """Since when ms-swift computes a token mean where nothing is accumulated."""
    return (
        f"From {first} on without gradient accumulation: to 4.5.3 the loss is divided by its steps "
        "once more."
    )


def skyrl_tokens(first: str) -> str:
    """Since when SkyRL computes it by the micro-batch."""
    return f"From {first} on by the micro-batch."


def verl_tokens(first: str) -> str:
    """Since when verl computes it, in the releases that count tokens by the micro-batch."""
    if first.startswith("0.7"):
        return (
            f"From {first} on with trainer.use_legacy_worker_impl='disable', else by micro-batch."
        )
    return (
        f"From {first} on by the micro-batch; in 0.7.x by the step with "
        "trainer.use_legacy_worker_impl='disable'."
    )
