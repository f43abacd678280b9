"""What a `GRPOTrainer` is set to, as facts for the records."""

from __future__ import annotations

from typing import Any

_SCALES = {"group": "sample-std", "none": "none"}


def facts_of(trainer: Any) -> dict[str, Any]:
    """Facts by the names of `rlproof.watch.facts`; what can't be read is left out."""
    args = trainer.args
    found = {
        "beta": getattr(trainer, "beta", None),
        "clip_low": getattr(trainer, "epsilon_low", None),
        "clip_high": getattr(trainer, "epsilon_high", None),
        "accumulation": args.gradient_accumulation_steps,
        "longest": getattr(trainer, "max_completion_length", None),
        "precision": _precision(trainer),
        "engine": "other" if getattr(trainer, "use_vllm", False) else "same",
        **_advantages(trainer),
        **_tokens(trainer),
    }
    if getattr(trainer, "loss_type", "") in ("cispo", "vespo", "sapo"):
        found["clip_low"] = found["clip_high"] = None  # bounds of another meaning
    return {name: value for name, value in found.items() if value is not None}


def _advantages(trainer: Any) -> dict[str, Any]:
    scale = _SCALES.get(str(getattr(trainer, "scale_rewards", "")))
    how = getattr(trainer, "multi_objective_aggregation", "sum_then_normalize")
    if scale is None or how != "sum_then_normalize":
        return {}
    return {"baseline": "group-mean", "scale": scale}


def _tokens(trainer: Any) -> dict[str, Any]:
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    eos = getattr(trainer, "eos_token_ids", None)
    if eos is None and tokenizer.eos_token_id is not None:
        eos = [tokenizer.eos_token_id]
    return {"bos": tokenizer.bos_token_id, "eos": None if eos is None else list(eos)}


def _precision(trainer: Any) -> str:
    """The coarsest type that a forward pass goes through."""
    args = trainer.args
    own = str(next(trainer.model.parameters()).dtype).removeprefix("torch.")
    under = "bfloat16" if args.bf16 else "float16" if args.fp16 else own
    return own if own in ("bfloat16", "float16") else under
