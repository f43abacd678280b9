"""One micro-batch from its loss to its backward pass. Shapes: B rows, T slots."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rlproof.integrations.trl.declared import facts_of
from rlproof.integrations.trl.rollouts import SAMPLER, loss_mask

if TYPE_CHECKING:
    from rlproof.integrations.trl.recording import Session

_GLOBAL = ("dapo", "cispo", "vespo")
"""Loss types that TRL divides by the tokens of the whole optimizer step."""


class Update:
    """Gathers what the loss is computed from, and writes it when the gradient is there."""

    def __init__(self, trainer: Any, session: Session, inputs: Any) -> None:
        self.trainer, self.session, self.inputs = trainer, session, inputs
        self.values: dict[str, Any] = {}
        self.scale = 1.0
        self._logps: Any = None

    def take(self, found: tuple[Any, ...], again: Callable[[], tuple[Any, ...]]) -> None:
        """Log-probs and entropy of the loss, and a second pass of the same weights."""
        try:
            self._logps = found[0]
            self.values = {"new_logps": found[0].detach(), "entropy": found[1]}
            with _quiet(self.trainer.model):
                self.values["repeat_logps"] = again()[0]
        except Exception as error:
            self.session.failed(error)

    def await_gradient(self, loss: Any) -> None:
        """Write at the backward pass: the gradient then holds every division of the loss."""
        if self._logps is None or not loss.requires_grad:
            return
        value = loss.detach().clone()
        loss.register_hook(lambda grad: setattr(self, "scale", float(grad) / _amp(self.trainer)))
        self._logps.register_hook(lambda grad: self._write(value, grad))
        self._logps = None

    def _write(self, loss: Any, grad: Any) -> None:
        try:
            self._record(float(loss) * self.scale, grad.detach() / _amp(self.trainer))
        except Exception as error:
            self.session.failed(error)

    def _record(self, loss: float, grad: Any) -> None:
        trainer, inputs, step = self.trainer, self.inputs, self.session.step
        sampler = inputs.get("sampling_per_token_logps", inputs.get(SAMPLER))
        self.session.recorder.record(
            step=step,
            update=int(trainer.state.global_step) - step,
            advantages=inputs["advantages"],
            old_logps=inputs.get("old_per_token_logps"),
            ref_logps=inputs.get("ref_per_token_logps"),
            sampler_logps=sampler,
            mask=loss_mask(inputs),
            tokens=inputs["completion_ids"],
            loss=loss,
            grad=grad,
            facts=facts_of(trainer) | self._denominator(),
            **self.values,
        )

    def _denominator(self) -> dict[str, float]:
        """Tokens that the sum over a micro-batch is divided by, where they are of all of them."""
        trainer, inputs = self.trainer, self.inputs
        if getattr(trainer, "loss_type", "") not in _GLOBAL or "num_items_in_batch" not in inputs:
            return {}
        share = trainer.current_gradient_accumulation_steps / trainer.args.steps_per_generation
        tokens = float(inputs["num_items_in_batch"]) / trainer.accelerator.num_processes
        return {"denominator": max(tokens, 1.0) * share}


def _amp(trainer: Any) -> float:
    """What mixed precision multiplies the loss by on its way back."""
    scaler = getattr(trainer.accelerator, "scaler", None)
    return float(scaler.get_scale()) if scaler is not None else 1.0


@contextmanager
def _quiet(model: Any) -> Iterator[None]:
    """Evaluation mode without gradients or drawn numbers; every module as before afterwards."""
    import torch

    from rlproof.train.rollout.forward import evaluating

    devices = [model.device] if getattr(model, "device", torch.device("cpu")).type == "cuda" else []
    with torch.no_grad(), torch.random.fork_rng(devices), evaluating(model):
        yield
