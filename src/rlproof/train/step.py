"""One update: micro-batches with the denominators of the whole, then clip and optimizer.

Shapes: B rows of the update in this process, T slots, H hidden, V vocabulary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from rlproof.errors import TrainError
from rlproof.space.aggregation import Scope
from rlproof.space.objective import Objective
from rlproof.space.terms import terms
from rlproof.train.config import TrainConfig
from rlproof.train.denominators import needs_policy, scope_of
from rlproof.train.distributed import Ranks, full, total
from rlproof.train.fused.batch import FusedBatch, FusedResult
from rlproof.train.fused.heads import head_loss
from rlproof.train.fused.plain import plain_loss
from rlproof.train.pieces import rows_at_once
from rlproof.train.policy import Policy, Scorer
from rlproof.train.prepare import Step


@dataclass(frozen=True, slots=True)
class Update:
    """What one update was computed from and gave, over its rows in this process."""

    part: Step
    new: Tensor
    """Log-probs at the weights before the update (B, T), nats."""
    entropy: Tensor | None
    """(B, T), nats, where it was asked for or the objective needs it."""
    loss: float
    """Of all processes."""
    grad_norm: float
    """Of all processes, before the clip."""
    scope: Scope


@dataclass
class Updater:
    """Takes steps on the policy."""

    policy: Policy
    objective: Objective
    config: TrainConfig
    ranks: Ranks
    optimizer: torch.optim.Optimizer
    scorer: Any = field(init=False)
    """The scorer, wrapped for the exchange of gradients."""

    def __post_init__(self) -> None:
        self.scorer = self.ranks.wrap(self.policy.scorer)

    def gradient(self, part: Step, entropy: bool = True) -> Update:
        """Adds up ∂L/∂θ of all rows of an update; the weights stay as they are.

        Entropies cost about an eighth of the output layer, and are left out unless asked for or
        needed.
        """
        self.optimizer.zero_grad(set_to_none=True)
        scope = self._scope(part)
        pieces = part.pieces(self._rows_at_once(part))
        found: list[FusedResult] = []
        for n, piece in enumerate(pieces):
            with self.ranks.between(self.scorer, n == len(pieces) - 1):
                result = self._forward(
                    self.scorer, piece, fused_batch(piece, scope), self.objective, entropy
                )
                self.ranks.backward(result.loss)
            found.append(result)
        new_BT, entropy_BT = _joined(found)
        loss = total(self.ranks, loss=sum(float(result.loss.detach()) for result in found))["loss"]
        return Update(part, new_BT, entropy_BT, loss, self._clip(), scope)

    def apply(self, rate: float) -> None:
        """One step of the optimizer at a learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def score(
        self, part: Step, scorer: Scorer | None = None, entropy: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Log-probs and entropies (B, T) in nats of all rows, without a gradient."""
        found = []
        plain = Objective(temperature=self.objective.temperature)
        for piece in part.pieces(self.config.batch.micro):
            constant = FusedBatch(piece.mask, torch.zeros_like(piece.rewards))
            with torch.no_grad():
                own = scorer or self.policy.scorer
                found.append(self._forward(own, piece, constant, plain, entropy))
        return _joined(found)

    def agreement(self, part: Step) -> float:
        """How far the gradient of the loss at the last states is from that of autograd.

        The fused loss makes its gradients by hand; autograd goes through all logits, of the first
        rows only. Their advantages are 1 and −1 in turn, so that there is a gradient to compare.
        The largest difference, relative to the largest entry.
        """
        few = part.rows(0, min(len(part), part.group))
        turns_B = 1.0 - 2.0 * (torch.arange(len(few), device=part.mask.device) % 2)
        few = replace(few, advantages=turns_B, kept=torch.ones_like(turns_B))
        batch = fused_batch(few, self._scope(few))
        found: list[Tensor] = []

        def head(hidden_BTH: Tensor, output: nn.Module) -> FusedResult:
            after, tokens = self.policy.after, few.rollout.tokens

            def logits(rows: Tensor) -> Tensor:
                return output(rows) if after is None else after(output(rows))

            states_BTH = hidden_BTH.detach().requires_grad_()
            own = head_loss(output, states_BTH, tokens, batch, self.objective, after=after)
            plain = plain_loss(logits, states_BTH, tokens, batch, self.objective)
            for one in (own, plain):
                found.extend(torch.autograd.grad(one.loss, states_BTH))
            return own

        with self.policy.precision():
            self.policy.scorer(few.rollout, head)
        largest = float(found[1].abs().max())
        gap = float((found[0] - found[1]).abs().max())
        return gap / largest if largest else gap

    def reference(self, part: Step) -> Tensor:
        """Log-probs of the reference (B, T), nats."""
        scorer, context = self.policy.referring()
        with context:
            return self.score(part, scorer)[0]

    def _rows_at_once(self, part: Step) -> int | None:
        """As set; else cut where that saves memory and costs nothing."""
        causal = self.policy.scorer.causal
        free = self.policy.device.type == "cpu" and self.ranks.world == 1 and not causal.training
        if self.config.batch.micro is None and free:
            return rows_at_once(part, causal.config)
        return self.config.batch.micro

    def _scope(self, part: Step) -> Scope:
        new_BT: Tensor = torch.zeros_like(part.mask)
        entropy_BT: Tensor | None = torch.ones_like(part.mask)
        if needs_policy(self.objective):
            new_BT, entropy_BT = self.score(part, entropy=True)
        batch = fused_batch(part, Scope(length=self.config.length)).space(new_BT, entropy_BT)
        return scope_of(self.objective, batch, part.group, self.config.length, self.ranks)

    def _forward(
        self, scorer: Any, piece: Step, batch: FusedBatch, objective: Objective, entropy: bool
    ) -> FusedResult:
        def head(hidden_BTH: Tensor, output: nn.Module) -> FusedResult:
            return head_loss(
                output, hidden_BTH, piece.rollout.tokens, batch, objective,
                after=self.policy.after, entropy=entropy,
            )  # fmt: skip

        with self.policy.precision():
            result: FusedResult = scorer(piece.rollout, head)
        return result

    def _clip(self) -> float:
        """The norm of the gradient; scales it down to the bound, where there is one."""
        bound = self.config.optimizer.clip_norm or math.inf
        parameters = [p for g in self.optimizer.param_groups for p in g["params"]]
        norm = float(full(torch.nn.utils.clip_grad_norm_(parameters, bound)))
        if not math.isfinite(norm):
            raise TrainError(
                f"the gradient has norm {norm}: no update was made; look at the last record with "
                "`rlproof inspect`, and resume from the last checkpoint with a lower learning rate"
            )
        return norm


def _joined(found: list[FusedResult]) -> tuple[Tensor, Tensor | None]:
    """Log-probs and entropies of all micro-batches."""
    entropies = [r.entropy.float() for r in found if r.entropy is not None]
    logps = torch.cat([r.logps.float() for r in found])
    return logps, torch.cat(entropies) if entropies else None


def fused_batch(part: Step, scope: Scope) -> FusedBatch:
    """The constants of a loss."""
    whole = len(part) % part.group == 0
    return FusedBatch(
        mask=part.mask, advantages=part.advantages, old=part.old, ref=part.ref,
        sampler=part.rollout.logps, groups=part.group if whole else None, scope=scope,
        kept=part.kept,
    )  # fmt: skip


def slope(objective: Objective, update: Update) -> Tensor:
    """∂L/∂log π (B, T) of an update, by autograd through the objective's value."""
    leaf_BT = update.new.detach().clone().requires_grad_()
    batch = fused_batch(update.part, update.scope).space(leaf_BT, update.entropy)
    (found_BT,) = torch.autograd.grad(objective.loss(batch)[0], leaf_BT)
    return found_BT


def update_metrics(objective: Objective, update: Update, ranks: Ranks) -> dict[str, float]:
    """What an update says about the policy, over all processes, by the names of the vocabulary."""
    part = update.part
    batch = fused_batch(part, update.scope).space(update.new, update.entropy)
    found = terms(objective, batch)
    mask, ratio = part.mask, found.ratio.value
    adv = part.advantages if part.advantages.ndim == 2 else part.advantages[:, None]
    low, high = objective.clip.bounds
    clips = objective.surrogate in _CLIPPING
    cut = ((ratio > high) & (adv > 0)) | ((ratio < low) & (adv < 0))
    old = update.new if part.old is None else part.old
    gap = (part.rollout.logps - update.new).abs()
    sums = total(
        ranks,
        tokens=mask.sum(),
        clip=(cut * mask).sum() if clips else 0.0,
        ratio=(ratio * mask).sum(),
        moved=((old - update.new) * mask).sum(),
        gap=(gap * mask).sum(),
        entropy=0.0 if update.entropy is None else (update.entropy * mask).sum(),
        pull=(found.penalty[0] * mask).sum(),
    )
    count = max(sums["tokens"], 1.0)
    values = {
        "loss": update.loss,
        "grad_norm": update.grad_norm,
        "ratio_mean": sums["ratio"] / count,
        "approx_kl": sums["moved"] / count,
        "sampler_gap": sums["gap"] / count,
    }
    if update.entropy is not None:
        values["entropy"] = sums["entropy"] / count
    if clips:
        values["clip_frac"] = sums["clip"] / count
    if part.ref is not None and objective.divergence.place == "loss":
        values["kl"] = sums["pull"] / count
    return values


_CLIPPING = ("min-clip", "dual-clip", "two-sided", "masked-ratio", "cispo")
"""Surrogates with bounds on the ratio."""
