"""verl's own worker, engine and optimizer on a tiny model, in this process, without Ray.

Shapes: B rows, G group, P prompt, T response.
"""

import hashlib
import os
from functools import partial

os.environ |= {
    "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "VERL_PLATFORM": "cpu",
}  # fmt: skip

import torch
from tensordict import TensorDict
from transformers import Qwen2Config, Qwen2ForCausalLM
from verl.trainer.config import CheckpointConfig
from verl.utils import tensordict_utils as tu
from verl.workers.config import (
    FSDPActorConfig,
    FSDPEngineConfig,
    FSDPOptimizerConfig,
    HFModelConfig,
    PolicyLossConfig,
    TrainingWorkerConfig,
)
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.engine_workers import TrainingWorker
from verl.workers.utils.losses import ppo_loss
from verl.workers.utils.padding import (
    left_right_2_no_padding,
    no_padding_2_padding,
)

B, G, P, T, WORDS = 16, 4, 3, 6, 32
MINI, MICRO, EPOCHS = 8, 4, 2


def start():
    """One process that is all ranks."""
    torch.set_num_threads(1)
    store = torch.distributed.TCPStore("127.0.0.1", 0, 1, is_master=True)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    backends = {"model_type": "language_model", "backend": ["fsdp", "fsdp2"], "device": ["cpu"]}
    EngineRegistry.register(**backends)(FSDPEngineWithLMHead)


def model(folder):
    torch.manual_seed(0)
    shape = Qwen2Config(
        vocab_size=WORDS, hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, initializer_range=0.3,
    )  # fmt: skip
    Qwen2ForCausalLM(shape).save_pretrained(f"{folder}/model")


def worker(folder, mode, micro=MICRO, **options):
    """The class that verl runs in a Ray actor, with a new copy of the model."""
    whole = dict.fromkeys(("param_dtype", "reduce_dtype", "buffer_dtype"), "fp32")
    made = TrainingWorker(TrainingWorkerConfig(
        model_type="language_model",
        model_config=HFModelConfig(
            path=f"{folder}/model", load_tokenizer=False, use_remove_padding=False,
            enable_gradient_checkpointing=False, override_config={"attn_implementation": "eager"},
        ),
        engine_config=FSDPEngineConfig(
            strategy="fsdp2", use_torch_compile=False, model_dtype="fp32", mixed_precision=whole,
            micro_batch_size_per_gpu=micro, infer_micro_batch_size_per_gpu=MICRO,
            use_dynamic_bsz=False,
        ),
        optimizer_config=FSDPOptimizerConfig(
            lr=3e-2, total_training_steps=100, lr_warmup_steps=0
        ),
        checkpoint_config=CheckpointConfig(),
    ))  # fmt: skip
    made.reset()
    actor = FSDPActorConfig(
        strategy="fsdp2", rollout_n=G, ppo_micro_batch_size_per_gpu=micro,
        policy_loss=PolicyLossConfig(loss_mode=mode), **options,
    )  # fmt: skip
    made.set_loss_fn(partial(ppo_loss, config=actor))
    return made


def rollout(source):
    """Completions of a sampler that chooses evenly, and their rewards."""
    prompts = torch.randint(WORDS, (B // G, P), generator=source).repeat_interleave(G, 0)
    responses = torch.randint(WORDS, (B, T), generator=source)
    mask = (torch.arange(T) < torch.randint(2, T + 1, (B, 1), generator=source)).long()
    rewards = ((responses < 8) * mask).sum(1) / mask.sum(1)
    tensors = {
        "prompts": prompts, "responses": responses, "response_mask": mask,
        "input_ids": torch.cat([prompts, responses], 1),
        "attention_mask": torch.cat([torch.ones_like(prompts), mask], 1),
        "position_ids": torch.arange(P + T).expand(B, -1).contiguous(),
    }  # fmt: skip
    return tensors, rewards


def batch(tensors, **settings):
    made = left_right_2_no_padding(TensorDict(dict(tensors), batch_size=B))
    tu.assign_non_tensor(made, temperature=1.0, calculate_entropy=False, **settings)
    return made


def digest(training):
    """Of all weights."""
    found = hashlib.sha256()
    for _, weights in sorted(training.engine.module.state_dict().items()):
        found.update(weights.full_tensor().detach().contiguous().numpy().tobytes())
    return found.hexdigest()


def scored(training, tensors):
    """Log-probs of the present weights (B, T)."""
    given = batch(tensors, compute_loss=False, global_token_num=[P + T] * B)
    found = tu.get(training.infer_batch(given), "log_probs")
    return no_padding_2_padding(found, batch(tensors)).detach()


def update(training, tensors):
    """Every completion twice, in mini-batches; the metrics."""
    given = batch(
        tensors, compute_loss=True, global_batch_size=MINI, mini_batch_size=MINI, epochs=EPOCHS,
        seed=1, dataloader_kwargs={"shuffle": False},
    )  # fmt: skip
    return tu.get(training.train_mini_batch(given), "metrics")
