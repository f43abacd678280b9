"""What several processes share: sums, rows and gradients. One process needs no accelerate.

Every denominator and every metric goes through `Ranks.sum`, so it is that of all processes.
Shapes: N rows of this process, T slots.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from rlproof.errors import TrainError


class Ranks:
    """One process: everything is already the whole."""

    world = 1
    rank = 0

    @property
    def main(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

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

        self.accelerator = Accelerator(cpu=not torch.cuda.is_available())
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


def ranks() -> Ranks:
    """The processes of this run."""
    return Launched() if int(os.environ.get("WORLD_SIZE", "1")) > 1 else Ranks()


def total(group: Ranks, **parts: Tensor | float) -> dict[str, float]:
    """Sums over all processes by name, in double precision, in one exchange."""
    numbers = [torch.as_tensor(part, dtype=torch.float64).cpu() for part in parts.values()]
    summed = group.sum(torch.stack(numbers))
    return dict(zip(parts, summed.tolist(), strict=True))
