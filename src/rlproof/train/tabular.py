"""The tabular trainer step by step: `rlproof.tiny`, or any published objective on its table.

`tiny.train` gives its history when it is done. Here the same parts are called in the same order,
so that every step can be shown, logged and recorded while the run goes on.

Shapes: B rows, P prompts, T slots, V vocabulary.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlproof import tiny
from rlproof.errors import ConfigError
from rlproof.watch.record import Recorder

PROMPTS, MAX_LEN = (0, 1, 2, 3), 5
"""The task, as `tiny.train` has it by default."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A tabular run.

    Raises:
        ConfigError: a value that no run can have.
    """

    steps: int = 60
    group_size: int = 8
    epochs: int = 2
    """Updates on each batch."""
    lr: float = 2.0
    clip_eps: float | None = None
    """ε of the tiny trainer's clip; None is 0.2."""
    beta: float | None = None
    """β of the tiny trainer's KL term; None is 0.04."""
    seed: int = 0
    objective: str | None = None
    """A name of `rlproof.space.published`; None is the tiny trainer's own objective."""

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("group_size", 1), ("epochs", 1)):
            _require(name, getattr(self, name), getattr(self, name) >= least, f"{least} or more")
        _require("lr", self.lr, math.isfinite(self.lr) and self.lr > 0, "a number above 0")
        for name in ("clip_eps", "beta"):
            value = getattr(self, name)
            ok = value is None or (math.isfinite(value) and value >= 0)
            _require(name, value, ok, "a number from 0 on")
            if value is not None and self.objective is not None:
                raise ConfigError(
                    f"{_option(name)} is the tiny trainer's, and {self.objective} has its own: "
                    "leave one of the two out"
                )


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _require(name: str, value: object, ok: bool, expected: str) -> None:
    if not ok:
        raise ConfigError(f"{_option(name)} is {value}, expected {expected}")


@dataclass(frozen=True, slots=True)
class Sampled:
    """One batch, as `tiny.rollout` gives it, with log-probs (B, T) in nats."""

    rows: list[int]
    tokens: list[list[int]]
    mask: list[list[int]]
    rewards: list[float]
    old: tiny.Table
    ref: tiny.Table


class Rule(Protocol):
    """An objective on a table of logits."""

    @property
    def facts(self) -> dict[str, Any]:
        """What a record declares; see `rlproof.watch.facts`."""

    def advantages(self, batch: Sampled) -> Any:
        """One a row (B,), or one a token (B, T)."""

    def loss(self, new_BT: tiny.Table, batch: Sampled, advantages: Any) -> float:
        """What is minimised."""

    def gradient(self, theta: tiny.Table, batch: Sampled, advantages: Any) -> tiny.Table:
        """∂loss/∂θ (P, V)."""

    def clipped(self, new_BT: tiny.Table, batch: Sampled, advantages: Any) -> float | None:
        """The share of tokens whose ratio is outside the clip range; None where nothing clips."""


@dataclass(frozen=True, slots=True)
class TinyRule:
    """The objective of `rlproof.tiny`, by its own functions."""

    group_size: int
    clip_eps: float = 0.2
    beta: float = 0.04

    @property
    def facts(self) -> dict[str, Any]:
        """It is no recipe by name: all is said."""
        return {
            "baseline": "group-mean", "scale": "population-std", "estimator": "k3",
            "clip_low": self.clip_eps, "clip_high": self.clip_eps, "beta": self.beta,
        }  # fmt: skip

    def advantages(self, batch: Sampled) -> list[float]:
        """See `tiny.group_advantages`."""
        return tiny.group_advantages(batch.rewards, self.group_size)

    def loss(self, new_BT: tiny.Table, batch: Sampled, advantages: list[float]) -> float:
        """See `tiny.grpo_loss`."""
        return tiny.grpo_loss(
            new_BT, batch.old, batch.ref, advantages, batch.mask, self.clip_eps, self.beta
        )

    def gradient(self, theta: tiny.Table, batch: Sampled, advantages: list[float]) -> tiny.Table:
        """See `tiny.grpo_grad`."""
        fixed = (batch.rows, batch.tokens, batch.old, batch.ref, advantages, batch.mask)
        return tiny.grpo_grad(theta, *fixed, self.clip_eps, self.beta)

    def clipped(self, new_BT: tiny.Table, batch: Sampled, _advantages: list[float]) -> float:
        """See `tiny.clip_fraction`."""
        return tiny.clip_fraction(new_BT, batch.old, batch.mask, self.clip_eps)


def rule_of(settings: Settings) -> Rule:
    """The objective of a run.

    Raises:
        ConfigError: no published objective has this name.
    """
    if settings.objective is None:
        given = {"clip_eps": settings.clip_eps, "beta": settings.beta}
        chosen = {name: value for name, value in given.items() if value is not None}
        return TinyRule(settings.group_size, **chosen)
    from rlproof.train.tabular_published import PublishedRule

    return PublishedRule.of(settings.objective, settings.group_size, MAX_LEN)


@dataclass(slots=True)
class Run:
    """A run that can be watched: `for values in run.steps(): …`.

    Every step's values have the names of metrics.toml: those of the batch as it was sampled
    (reward, kl, entropy, loss, grad_norm and more, before the first update), and clip_frac, the
    largest share after any update, as in the history of `tiny.train`.
    """

    settings: Settings
    recorder: Recorder | None = None
    theta: tiny.Table = field(init=False)
    rule: Rule = field(init=False)

    def __post_init__(self) -> None:
        self.theta = [[0.0] * tiny.VOCAB for _ in PROMPTS]
        self.rule = rule_of(self.settings)

    @property
    def expected_reward(self) -> float:
        """The exact reward of the policy as it is: the mean over prompts of π_p(target)."""
        logps = (tiny.log_softmax(self.theta[p])[tiny.target(p)] for p in PROMPTS)
        return mean([math.exp(x) for x in logps])

    def steps(self) -> Iterator[dict[str, float]]:
        """Train; the metrics of each step.

        Raises:
            ConfigError: a logit, or what is computed of it, left the range of floats.
        """
        rng = random.Random(self.settings.seed)
        ref = [row[:] for row in self.theta]
        for step in range(self.settings.steps):
            yield {"step": step, **self._step(step, ref, rng)}

    def _step(self, step: int, ref: tiny.Table, rng: random.Random) -> dict[str, float]:
        rows, tokens, mask, rewards = tiny.rollout(
            self.theta, PROMPTS, self.settings.group_size, MAX_LEN, rng
        )
        logps = (tiny.token_logps(table, rows, tokens) for table in (self.theta, ref))
        batch = Sampled(rows, tokens, mask, rewards, *logps)
        advantages = self.rule.advantages(batch)
        values = batch_metrics(self.theta, batch, advantages, self.settings.group_size)
        new = batch.old
        for update in range(self.settings.epochs):
            grad = self.rule.gradient(self.theta, batch, advantages)
            if update == 0 or self._due(step):
                loss = self.rule.loss(new, batch, advantages)
                self._record(step, update, new, batch, advantages, loss)
            if update == 0:
                values |= {"loss": loss, "grad_norm": math.hypot(*(g for row in grad for g in row))}
            self._descend(grad, step)
            new = tiny.token_logps(self.theta, rows, tokens)
            outside = self.rule.clipped(new, batch, advantages)
            if outside is not None:
                values["clip_frac"] = max(values.get("clip_frac", 0.0), outside)
        self._check(step, values.values())
        return values

    def _descend(self, grad: tiny.Table, step: int) -> None:
        lr = self.settings.lr
        moved = [
            [x - lr * slope for x, slope in zip(row, slopes, strict=True)]
            for row, slopes in zip(self.theta, grad, strict=True)
        ]
        self._check(step, (x for row in moved for x in row))
        self.theta = moved

    def _check(self, step: int, numbers: Iterable[float]) -> None:
        if not all(map(math.isfinite, numbers)):
            beta = "" if self.settings.beta is None else f" and --beta {self.settings.beta:g}"
            raise ConfigError(
                f"step {step + 1}: the logits left the range of floats at --lr "
                f"{self.settings.lr:g}{beta}; lower it"
            )

    def _due(self, step: int) -> bool:
        return self.recorder is not None and self.recorder.due(step)

    def _record(
        self, step: int, update: int, new_BT: tiny.Table, batch: Sampled, adv: Any, loss: float
    ) -> None:
        if self.recorder is None:
            return
        size, epochs = self.settings.group_size, self.settings.epochs
        shape = {"group_size": size, "vocabulary": tiny.VOCAB, "updates": epochs}
        self.recorder.record(
            step=step, update=update, rewards=batch.rewards, groups=size, advantages=adv,
            new_logps=new_BT, old_logps=batch.old, ref_logps=batch.ref, mask=batch.mask,
            tokens=batch.tokens, loss=loss, facts={**self.rule.facts, **shape},
        )  # fmt: skip


def batch_metrics(
    theta: tiny.Table, batch: Sampled, advantages: Any, group_size: int
) -> dict[str, float]:
    """Metrics of a batch under the policy that sampled it.

    `kl` is k3 to the reference, averaged over the real tokens (nats), and `entropy` that of the
    policy at each of them (nats).
    """
    real = [(i, t) for i, row in enumerate(batch.mask) for t, m in enumerate(row) if m]
    gaps = [batch.ref[i][t] - batch.old[i][t] for i, t in real]
    adv = [float(a) for a in advantages] if _flat(advantages) else [
        float(advantages[i][t]) for i, t in real
    ]  # fmt: skip
    groups = range(0, len(batch.rewards), group_size)
    parts = [batch.rewards[start : start + group_size] for start in groups]
    own = {p: entropy(theta[p]) for p in set(batch.rows)}
    return {
        "reward": mean(batch.rewards),  # as `tiny.train` has it, to the bit
        "reward_std": spread(batch.rewards),
        "zero_std_frac": mean([float(min(part) == max(part)) for part in parts]),
        "adv_mean": mean(adv),
        "adv_std": spread(adv),
        "adv_max": max(adv),
        "adv_min": min(adv),
        "kl": mean([math.exp(min(gap, 700.0)) - gap - 1 for gap in gaps]),
        "entropy": mean([own[batch.rows[i]] for i, _ in real]),
        "length": len(real) / len(batch.mask),
    }


def mean(values: Sequence[float]) -> float:
    """A plain sum over the number: those of `statistics` are ten times slower, or overflow."""
    return sum(values) / len(values)


def spread(values: Sequence[float]) -> float:
    """The population standard deviation."""
    middle = mean(values)
    return math.hypot(*(x - middle for x in values)) / math.sqrt(len(values))


def entropy(logits: list[float]) -> float:
    """−Σ_v π(v) log π(v), in nats."""
    return -sum(math.exp(x) * x for x in tiny.log_softmax(logits))


def _flat(advantages: Any) -> bool:
    return not hasattr(advantages[0], "__len__")
