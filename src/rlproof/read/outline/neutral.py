"""Values of settings that leave the mathematics alone, by the last part of their name.

One process on one CPU, training, no accumulation, every optional correction off. docs/roles.md
says so to users, and shows these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NEUTRAL: Mapping[str, Any] = {
    # where it runs
    "device": "cpu", "device_type": "cpu", "local_rank": 0, "rank": 0, "process_index": 0,
    "is_main_process": True, "is_local_main_process": True, "sync_gradients": True,
    "num_processes": 1, "world_size": 1, "dp_size": 1, "cp_size": 1, "dp_world_size": 1,
    # training, one step of accumulation
    "training": True, "current_gradient_accumulation_steps": 1,
    "gradient_accumulation_steps": 1, "grad_accum_steps": 1, "grad_acc_steps": 1,
    "accumulation_steps": 1, "steps_per_generation": 1, "loss_scale": 1.0,
    "num_micro_batches": 1, "num_microbatches": 1, "grad_acc_step": 1, "accum_steps": 1,
    "num_passes": 1, "n_passes": 1, "num_accumulation_steps": 1, "examples_per_rank": 1,
    "examples_per_step": 1, "batches_per_rank": 1, "batches_per_step": 1, "prompts_per_rank": 1,
    # corrections that are off
    "delta": None, "off_policy_mask_threshold": None, "top_entropy_quantile": 1.0,
    "use_vllm": False, "vllm_importance_sampling_correction": False, "use_liger_loss": False,
    "use_liger_kernel": False, "use_bias_correction_kl": False, "aux_loss_enabled": False,
    "_entropy_bonus_enabled": False, "router_aux_loss_coef": 0.0, "entropy_coef": 0.0,
    "entropy_coeff": 0.0, "vf_coef": 0.0, "vf_coeff": 0.0, "value_coef": 0.0,
    "value_loss_coef": 0.0, "critic_loss_coef": 0.0, "value_loss_weight": 0.0,
    "entropy_weight": 0.0, "entropy_loss_coef": 0.0, "entropy_beta": 0.0,
    "entropy_bonus": 0.0, "ent_coef": 0.0, "rollout_is_weights": None,
    "off_policy_correction": None, "importance_sampling_ratio": None, "global_batch_info": {},
    "temperature": 1.0,
    "return_outputs": False, "num_items_in_batch": None, "tool_mask": None,
    "off_policy_mask": None, "entropy_mask": None, "mask_truncated_completions": False,
    "use_adaptive_entropy": False, "sapo_temperature_pos": 1.0, "sapo_temperature_neg": 1.05,
    "tau_pos": 1.0, "tau_neg": 1.05, "vespo_k_pos": 2.0, "vespo_lambda_pos": 3.0,
    "vespo_k_neg": 3.0, "vespo_lambda_neg": 2.0, "unscorable_mask": None,
    "debug": False, "verbose": False, "log_metrics": False,
}  # fmt: skip

COUNTS = frozenset({
    "num_items_in_batch", "batch_num_tokens", "total_response_len", "num_target_tokens",
    "total_tokens", "num_tokens", "total_response_tokens", "num_response_tokens",
    "total_valid_tokens", "global_valid_toks", "num_valid_tokens", "n_tokens", "token_count",
    "total_completion_tokens", "total_num_tokens", "num_loss_tokens", "num_valid", "n_valid",
})  # fmt: skip
"""Numbers of real tokens, which the mask gives."""

ROW_COUNTS = frozenset({
    "global_valid_seqs", "num_valid_seqs", "n_valid_seqs", "num_valid_sequences",
    "global_valid_sequences", "total_valid_seqs",
})  # fmt: skip
"""Numbers of rows."""

OUTSIDE = frozenset({
    "absl", "accelerate", "aiohttp", "argparse", "asyncio", "csv", "datasets", "deepspeed",
    "draccus", "fire", "gym", "gymnasium", "hydra", "io", "json", "lightning", "multiprocessing",
    "omegaconf", "openai", "os", "peft", "pickle", "queue", "ray", "requests", "safetensors",
    "sglang", "simple_parsing", "socket", "subprocess", "swanlab", "sys", "tensorboard", "time",
    "tqdm", "transformers", "tyro", "vllm", "wandb", "yaml",
})  # fmt: skip
"""Packages whose calls read, ask or tell something outside of the mathematics."""

GATHERS = frozenset({
    "gather", "gather_for_metrics", "pad_across_processes", "all_reduce", "reduce", "all_gather",
    "unwrap_model",
})  # fmt: skip
"""Calls with one argument that give that argument on one process."""

DROPPED_CONTEXTS = frozenset({
    "autocast", "accumulate", "no_sync", "record_function", "profile", "timer", "nullcontext",
    "join_uneven_inputs", "amp_autocast", "compute_loss_context_manager", "catch_warnings",
    "simple_timer", "Timer", "time_logger", "trange", "annotate", "set_device", "device",
})  # fmt: skip
"""Contexts that change precision, timing or communication, and no formula."""
