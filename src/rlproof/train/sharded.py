"""The policy in shards (FSDP2): each process keeps 1/world of every weight, gradient and moment.

    accelerate launch --use_fsdp --fsdp_version 2 --num_processes 2 -m rlproof train run.toml

`fully_shard` is called here and not by accelerate, which does so on GPUs only and wraps an
optimizer in the same call. Choices:

- The layers that transformers says not to split are one group each, the rest (embeddings, last
  norm, output matrix) is one. A group is gathered while it is used, so the fused loss sees the
  whole output matrix, and its gradient is scattered back.
- Processes sample different numbers of tokens, and a sharded model needs all of them in each
  forward pass. So weights are gathered into a plain copy for sampling and for exports, whose
  memory is given back after: between them a process holds its shards and one group.
- Each micro-batch scatters its gradients; none keeps a whole one.
- A checkpoint is gathered by the main process: the same files as without shards.

Zhao et al., PyTorch FSDP, arXiv 2304.11277, is the idea; `fully_shard` differs from it in keeping
parameters apart, and no paper on it was looked for.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from rlproof.errors import ConfigError
from rlproof.train.distributed import Launched, full
from rlproof.train.policy import Head, Policy, Scorer
from rlproof.train.rollout.batch import RolloutBatch

_REFUSED = {
    "FSDP_OFFLOAD_PARAMS": "weights offloaded to the CPU are not supported",
    "FSDP_ACTIVATION_CHECKPOINTING": "set [model] gradient_checkpointing in place of it",
}
"""Settings of accelerate that would change what is kept where."""


class ShardedScorer(Scorer):
    """A scorer that `fully_shard` can wrap: it looks for tensors in tuples, not in dataclasses."""

    def forward(self, rows: RolloutBatch, head: Head) -> Any:
        """The loss, if there is one, beside the result."""
        result = super().forward(rows, head)
        return getattr(result, "loss", None), result

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result."""
        return super().__call__(*args, **kwargs)[1]


class Sharded(Launched):
    """Processes that share one set of weights.

    Raises:
        ConfigError: accelerate was told something that is not done here.
    """

    def __init__(self) -> None:
        version = os.environ.get("FSDP_VERSION", "1")
        if version != "2":
            raise ConfigError(
                f"accelerate was launched with FSDP version {version}, expected 2: add "
                "`--fsdp_version 2`, or leave out `--use_fsdp` for DDP"
            )
        for name, reason in _REFUSED.items():
            if os.environ.get(name, "false").lower() == "true":
                raise ConfigError(
                    f"accelerate was launched with --{name.lower()} true; {reason}; expected false"
                )
        # transformers would load the weights in the main process only, before they can be shared
        os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] = "false"
        with _environment("ACCELERATE_USE_FSDP", "false"):  # its plugin is not used
            super().__init__()
        self._copy: Any = None

    def shard(self, policy: Policy) -> None:
        """Shard the policy and its reference in place, equal to the main process's at first."""
        for scorer in filter(None, (policy.scorer, policy.reference)):
            _as_main(scorer)
        self._copy = copy.deepcopy(policy.model)
        _release(self._copy)
        policy.scorer = _sharded(policy.scorer, self.world)
        if policy.reference is not None:
            policy.reference = _sharded(policy.reference, self.world)

    def wrap(self, module: nn.Module) -> Any:
        """It is wrapped since `shard`."""
        return module

    def between(self, module: Any, last: bool) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Each backward pass adds to the shards of the gradient."""
        return nullcontext()

    @contextmanager
    def whole(self, model: Any) -> Iterator[Any]:
        """A plain model with the present weights; every process enters, none trains it."""
        present = dict(model.named_parameters())
        try:
            for name, parameter in self._copy.named_parameters():
                parameter.data = full(present[name].detach())
            yield self._copy
        finally:
            _release(self._copy)

    def gathered(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Whole tensors on the CPU of the main process, one after the other; {} elsewhere."""
        found = {}
        for name, tensor in tensors.items():
            one = full(tensor.detach())
            if self.main:
                found[name] = one.cpu()
        return found


def _sharded(scorer: Scorer, world: int) -> Scorer:
    """The scorer with every weight in shards over all processes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    kept = set(getattr(scorer.causal, "_no_split_modules", None) or ())
    device = next(scorer.parameters()).device
    mesh = init_device_mesh(device.type, (world,))
    own = ShardedScorer(scorer.model)
    own.train(scorer.training)
    for module in list(own.modules()):
        if type(module).__name__ in kept:
            fully_shard(module, mesh=mesh, reshard_after_forward=True)
    # the root too: after a forward pass without a backward one, gathered weights would grow stale
    fully_shard(own, mesh=mesh, reshard_after_forward=True)
    return own


@torch.no_grad()
def _as_main(module: nn.Module) -> None:
    """Parameters and buffers of the main process, everywhere."""
    for tensor in (*module.parameters(), *module.buffers()):
        torch.distributed.broadcast(tensor.data, src=0)


def _release(model: nn.Module) -> None:
    """Gives back the memory of the weights; their shapes come with the next ones."""
    for parameter in model.parameters():
        parameter.data = parameter.data.new_empty(0)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
