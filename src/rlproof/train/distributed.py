"""What several processes share: sums, rows and gradients. One process needs no accelerate.

Every denominator and every metric goes through `Ranks.sum`, so it is that of all processes.
Shapes: N rows of this process, T slots.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rlproof.errors import ConfigError, TrainError

if TYPE_CHECKING:
    from rlproof.train.policy import Policy


class Ranks:
    """One process: everything is already the whole."""

    world = 1
    rank = 0

    @property
    def main(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def shard(self, policy: Policy) -> None:
        """Share the weights out, where they are shared; before an optimizer is made of them."""

    def whole(self, model: Any) -> AbstractContextManager[Any]:
        """The policy's model with all weights in this process; every process enters it."""
        return nullcontext(model)

    def gathered(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Whole tensors, for the main process; every process calls it."""
        return tensors

    def wrap(self, module: nn.Module) -> Any:
        """The module whose backward pass adds up the gradients of all processes."""
        return module

    def sum(self, values: Tensor) -> Tensor:
        """The sum over processes, elementwise."""
        return values

    def rows(self, values: Tensor) -> Tensor:
        """The rows of all processes in the order of their ranks, padded to one width."""
        return values

    def mine(self, values: Tensor) -> Tensor:
        """This process's share of what `rows` gave."""
        return values

    def all(self, value: Any) -> list[Any]:
        """The object of each process, in the order of their ranks."""
        return [value]

    def wait(self) -> None:
        """Until all processes are here."""

    def between(self, module: Any, last: bool) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Gradients are exchanged in the last backward pass of an update only."""
        return nullcontext()

    def backward(self, loss: Tensor) -> None:
        """Adds the gradient of this process's part of a loss with global denominators."""
        loss.backward()  # type: ignore[no-untyped-call]


class Launched(Ranks):
    """Processes that `accelerate launch` or `torchrun` started."""

    def __init__(self) -> None:
        from accelerate import Accelerator

        # [model] dtype says what is multiplied in what, wherever a forward pass is made
        self.accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision="no")
        self.world = int(self.accelerator.num_processes)
        self.rank = int(self.accelerator.process_index)
        launched = int(os.environ["WORLD_SIZE"])
        if self.world != launched:
            raise TrainError(
                f"{launched} processes were launched and accelerate knows {self.world}; expected "
                "all of them: start with `accelerate launch` or `torchrun`"
            )

    def wrap(self, module: nn.Module) -> Any:
        """Distributed data parallel."""
        return self.accelerator.prepare(module)

    def sum(self, values: Tensor) -> Tensor:
        """An all-reduce."""
        moved = values.to(self.accelerator.device)
        total: Tensor = self.accelerator.reduce(moved, reduction="sum")
        return total.to(values.device)

    def rows(self, values: Tensor) -> Tensor:
        """A gather, after padding."""
        moved = values.to(self.accelerator.device)
        if moved.ndim > 1:
            moved = self.accelerator.pad_across_processes(moved, dim=1)
        gathered: Tensor = self.accelerator.gather(moved)
        return gathered.to(values.device)

    def mine(self, values: Tensor) -> Tensor:
        """The rows of this rank."""
        size = len(values) // self.world
        return values[self.rank * size : (self.rank + 1) * size]

    def all(self, value: Any) -> list[Any]:
        """A gather of pickled objects."""
        from accelerate.utils import gather_object

        return list(gather_object([value]))

    def wait(self) -> None:
        """A barrier."""
        self.accelerator.wait_for_everyone()

    def between(self, module: Any, last: bool) -> AbstractContextManager[Any]:
        """No exchange before the last backward pass."""
        return nullcontext() if last else self.accelerator.no_sync(module)

    def backward(self, loss: Tensor) -> None:
        """The wrapper averages over processes; the parts are to be added."""
        self.accelerator.backward(loss * self.world)


_UNKNOWN = {
    "ACCELERATE_USE_DEEPSPEED": "DeepSpeed",
    "ACCELERATE_USE_MEGATRON_LM": "Megatron-LM",
    "ACCELERATE_USE_PARALLELISM_CONFIG": "a parallelism of several dimensions",
}
"""What accelerate can be launched with and is not known here."""


def ranks() -> Ranks:
    """The processes of this run.

    Raises:
        ConfigError: accelerate was told to share the work in a way that is not known here.
        TrainError: accelerate does not know all processes.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        return Ranks()
    for name, what in _UNKNOWN.items():
        if _told(name):
            raise ConfigError(
                f"accelerate was launched with {what}; expected DDP, or FSDP2 (`--use_fsdp "
                "--fsdp_version 2`)"
            )
    if _told("ACCELERATE_USE_FSDP"):
        from rlproof.train.sharded import Sharded

        return Sharded()
    return Launched()


def _told(name: str) -> bool:
    return os.environ.get(name, "false").lower() in ("true", "1")


def alone() -> str | None:
    """What to say where several processes were asked for and only this one was started."""
    asked = _told("ACCELERATE_USE_CPU") and "MASTER_ADDR" in os.environ
    if not asked or "WORLD_SIZE" in os.environ:
        return None
    return (
        "this is one process: `accelerate launch --cpu` starts one, whatever its --num_processes; "
        "`--multi_gpu --num_processes N` starts N, on CPUs too"
    )


def full(tensor: Tensor) -> Tensor:
    """All of a tensor that is in shards; every process calls it."""
    whole: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return whole


def as_shards(tensor: Tensor, like: Tensor) -> Tensor:
    """A whole tensor in the shards, or on the device, that another one has."""
    mesh = getattr(like, "device_mesh", None)
    moved = tensor.to(like.device)
    if mesh is None:
        return moved
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(moved, mesh, like.placements)  # type: ignore[attr-defined]


def total(group: Ranks, **parts: Tensor | float) -> dict[str, float]:
    """Sums over all processes by name, in double precision, in one exchange."""
    numbers = [torch.as_tensor(part, dtype=torch.float64).cpu() for part in parts.values()]
    summed = group.sum(torch.stack(numbers))
    return dict(zip(parts, summed.tolist(), strict=True))
