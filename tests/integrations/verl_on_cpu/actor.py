"""verl's own worker, engine and optimizer train a tiny model for three batches.

    python actor.py FOLDER LOSS_MODE [noisy-old]

Prints a digest of the weights. FOLDER/metrics.jsonl is written by verl's `Tracking`.
Shapes: B rows, G group, P prompt, T response.
"""

import hashlib
import os
import sys
from functools import partial

folder, mode, fault = sys.argv[1], sys.argv[2], sys.argv[3:]
os.environ |= {
    "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "VERL_PLATFORM": "cpu",
    "VERL_FILE_LOGGER_PATH": f"{folder}/metrics.jsonl",
}  # fmt: skip

import torch  # noqa: E402
from tensordict import TensorDict  # noqa: E402
from transformers import Qwen2Config, Qwen2ForCausalLM  # noqa: E402
from verl.trainer.config import CheckpointConfig  # noqa: E402
from verl.utils import tensordict_utils as tu  # noqa: E402
from verl.utils.tracking import Tracking  # noqa: E402
from verl.workers.config import (  # noqa: E402
    FSDPActorConfig,
    FSDPEngineConfig,
    FSDPOptimizerConfig,
    HFModelConfig,
    PolicyLossConfig,
    TrainingWorkerConfig,
)
from verl.workers.engine import EngineRegistry  # noqa: E402
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead  # noqa: E402
from verl.workers.engine_workers import TrainingWorker  # noqa: E402
from verl.workers.utils.losses import ppo_loss  # noqa: E402
from verl.workers.utils.padding import (  # noqa: E402
    left_right_2_no_padding,
    no_padding_2_padding,
)

B, G, P, T, WORDS = 16, 4, 3, 6, 32
MINI, MICRO, EPOCHS = 8, 4, 2


def worker():
    """The class that verl runs in a Ray actor, here in this process."""
    torch.set_num_threads(1)
    store = torch.distributed.TCPStore("127.0.0.1", 0, 1, is_master=True)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    backends = {"model_type": "language_model", "backend": ["fsdp", "fsdp2"], "device": ["cpu"]}
    EngineRegistry.register(**backends)(FSDPEngineWithLMHead)
    torch.manual_seed(0)
    shape = Qwen2Config(
        vocab_size=WORDS, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, initializer_range=0.3,
    )  # fmt: skip
    Qwen2ForCausalLM(shape).save_pretrained(f"{folder}/model")
    whole = dict.fromkeys(("param_dtype", "reduce_dtype", "buffer_dtype"), "fp32")
    made = TrainingWorker(TrainingWorkerConfig(
        model_type="language_model",
        model_config=HFModelConfig(
            path=f"{folder}/model", load_tokenizer=False, use_remove_padding=False,
            enable_gradient_checkpointing=False, override_config={"attn_implementation": "eager"},
        ),
        engine_config=FSDPEngineConfig(
            strategy="fsdp2", use_torch_compile=False, model_dtype="fp32", mixed_precision=whole,
            micro_batch_size_per_gpu=MICRO, infer_micro_batch_size_per_gpu=MICRO,
            use_dynamic_bsz=False,
        ),
        optimizer_config=FSDPOptimizerConfig(
            lr=3e-2, total_training_steps=100, lr_warmup_steps=0
        ),
        checkpoint_config=CheckpointConfig(),
    ))  # fmt: skip
    made.reset()
    actor = FSDPActorConfig(
        strategy="fsdp2", rollout_n=G, ppo_micro_batch_size_per_gpu=MICRO,
        policy_loss=PolicyLossConfig(loss_mode=mode),
    )  # fmt: skip
    made.set_loss_fn(partial(ppo_loss, config=actor))
    return made


def rollout(source):
    """Completions of a sampler that chooses evenly, and advantages of their groups."""
    prompts = torch.randint(WORDS, (B // G, P), generator=source).repeat_interleave(G, 0)
    responses = torch.randint(WORDS, (B, T), generator=source)
    mask = (torch.arange(T) < torch.randint(2, T + 1, (B, 1), generator=source)).long()
    rewards = (((responses < 8) * mask).sum(1) / mask.sum(1)).view(-1, G)
    centred = rewards - rewards.mean(1, keepdim=True)
    advantages = (centred / (rewards.std(1, keepdim=True) + 1e-6)).flatten()[:, None] * mask
    tensors = {
        "prompts": prompts, "responses": responses, "response_mask": mask,
        "input_ids": torch.cat([prompts, responses], 1),
        "attention_mask": torch.cat([torch.ones_like(prompts), mask], 1),
        "position_ids": torch.arange(P + T).expand(B, -1).contiguous(),
    }  # fmt: skip
    return tensors, advantages


def batch(tensors, **settings):
    made = left_right_2_no_padding(TensorDict(dict(tensors), batch_size=B))
    tu.assign_non_tensor(made, temperature=1.0, calculate_entropy=False, **settings)
    return made


def main():
    training, source = worker(), torch.Generator().manual_seed(1)
    tracking = Tracking("project", "experiment", ["file"])
    for step in range(3):
        tensors, advantages = rollout(source)
        given = batch(tensors, compute_loss=False, global_token_num=[P + T] * B)
        scored = tu.get(training.infer_batch(given), "log_probs")
        old = no_padding_2_padding(scored, batch(tensors)).detach()
        if "noisy-old" in fault:
            old += 0.3 * torch.randn(old.shape, generator=source)
        given = batch(
            {**tensors, "old_log_probs": old, "advantages": advantages}, compute_loss=True,
            global_batch_size=MINI, mini_batch_size=MINI, epochs=EPOCHS, seed=1,
            dataloader_kwargs={"shuffle": False},
        )  # fmt: skip
        metrics = tu.get(training.train_mini_batch(given), "metrics")
        means = {key: sum(values) / len(values) for key, values in metrics.items() if "pg" in key}
        tracking.log(means, step)
    tracking.finish()
    digest = hashlib.sha256()
    for _, weights in sorted(training.engine.module.state_dict().items()):
        digest.update(weights.full_tensor().detach().contiguous().numpy().tobytes())
    print("weights", digest.hexdigest())


main()
