"""The loop: sample, reward, advantages, updates, log, checkpoint.

    from rlproof.train import Trainer, TrainConfig
    Trainer(TrainConfig.of({...}), rewards=[exact]).train()

Shapes: N rows of this process, T slots, K reward functions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from rlproof.space.batch import Rollout
from rlproof.train import checkpoint, optimizer, start
from rlproof.train.atomic import Write, write_folder
from rlproof.train.config import TrainConfig
from rlproof.train.data import Prompt
from rlproof.train.distributed import alone, ranks
from rlproof.train.engines import Sampler, engine_of
from rlproof.train.first_step import check_gradient
from rlproof.train.prepare import (
    Step,
    advantages_of,
    counted,
    in_advantages,
    needs_reference,
    reward_metrics,
    weighted,
)
from rlproof.train.rewards import RewardFunction, named_function
from rlproof.train.rollout.batch import RolloutBatch
from rlproof.train.rollout.engine import Engine
from rlproof.train.rollout.turns import Environment, Limits
from rlproof.train.step import Updater, update_metrics
from rlproof.train.written import Say, Written

OnStep = Callable[[int, dict[str, float]], None]


def _silent(_text: str) -> None:
    """What other processes than the main one say."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run gave."""

    folder: Path
    steps: int
    """Steps done in all, those before it was resumed included."""
    history: list[dict[str, float]]
    """Metrics of each step of this call."""


class Trainer:
    """Trains a causal language model on an objective of `rlproof.space`.

    Args:
        config: the run.
        rewards: reward functions, in place of those that the settings name.
        prompts: rows with a prompt and columns, in place of a file or dataset.
        model: a causal model of transformers, in place of one that the settings name.
        tokenizer: its tokenizer, with it.
        engine: what samples, in place of what the settings say.
        environment: answers the policy, for several turns.
        resume: go on from the last checkpoint in the run's folder.
        root: folder in which modules of reward functions are looked for.
        say: takes lines about what is worth knowing.

    Raises:
        ConfigError: settings that don't fit each other, the model or the folder.
        DataError: no prompts, or prompts that can't be used.
        CheckpointError: a checkpoint can't be read.
        TrainError: the run that is to be resumed had other settings.
    """

    def __init__(
        self,
        config: TrainConfig,
        *,
        rewards: Sequence[RewardFunction] | None = None,
        prompts: Iterable[Mapping[str, Any]] | None = None,
        model: Any = None,
        tokenizer: Any = None,
        engine: Engine | None = None,
        environment: Environment | None = None,
        resume: bool = False,
        root: Path | None = None,
        say: Say = _silent,
    ) -> None:
        self.config, self.folder = config, Path(config.run.folder)
        self.objective = start.objective(config)
        self.rewards = start.functions(config, rewards, root)
        self.ranks = ranks()
        say = say if self.ranks.main else _silent
        if (single := alone()) is not None:
            say(f"note: {single}")
        start.check_share(config, self.ranks)
        last = start.found(self.folder, resume, self.ranks)
        self.policy = start.made_policy(config, model, tokenizer)
        if environment is None and config.turns.environment is not None:
            environment = named_function(config.turns.environment, root)
        limits = Limits(config.turns.turns, config.turns.tokens)
        longest = config.sampling.max_tokens if environment is None else limits.tokens
        self.prompts = start.prompts(config, self.policy, prompts, longest)
        if self.prompts.dropped:
            say(f"note: {self.prompts.dropped} prompts are too long for the context: dropped")
        self.engine = engine or engine_of(self.policy, config, self.ranks)
        self.sampler = Sampler(self.engine, self.policy, self.ranks, environment, limits)
        self.folder.mkdir(parents=True, exist_ok=True)
        start.keep_initial(
            self.policy, self.objective, config, last is not None, model is not None, self.ranks
        )
        self.ranks.shard(self.policy)
        own = optimizer.made(self.policy.trained(), config.optimizer)
        self.updater = Updater(self.policy, self.objective, config, self.ranks, own)
        self.step = 0
        sizes = self._restored(last)
        self.written = Written(
            config, self.objective, self.policy.vocabulary, self.ranks, sizes, say
        )

    # ------------------------------------------------------------ the loop

    def train(self, on_step: OnStep | None = None) -> Result:
        """All steps that are left; then the model is written in the format of transformers.

        Args:
            on_step: called after each step with its number, from 0, and its metrics.

        Raises:
            RewardError: a reward function failed.
            RolloutError: sampling failed.
            CheckpointError: a checkpoint could not be written.
            FirstStepError: `check_first_step` is set and found an error.
            TrainError: a gradient is not finite.
        """
        history, every = [], self.config.checkpoint.every
        try:
            while self.step < self.config.run.steps:
                values = self._one_step()
                history.append(values)
                if on_step is not None and self.ranks.main:
                    on_step(self.step, values)
                self.step += 1
                if self.step == self.config.run.steps or (every and self.step % every == 0):
                    self.save()
            with self._whole_model() as export:
                if self.ranks.main:
                    write_folder(self.folder / "model", {"": export})
        finally:
            self.written.close()
        return Result(self.folder, self.step, history)

    def _one_step(self) -> dict[str, float]:
        """Sample, reward, advantages, updates, log; the metrics."""
        clock = [time.perf_counter()]
        chosen, rollout = self._sample()
        clock.append(time.perf_counter())
        rewards_NK, said = self._reward(chosen, rollout)
        clock.append(time.perf_counter())
        step, values = self._prepare(rollout, rewards_NK)
        values |= self._update(step)
        clock.append(time.perf_counter())
        values |= self._lengths(rollout) | self._each_reward(rewards_NK) | said
        values |= _times(clock, values["completion_length"] * self.config.rows)
        self.written.step(self.step, values)
        texts = self._texts(chosen, rollout.completions())
        self.written.completions(self.step, chosen, texts, step.rewards.tolist())
        return values

    def _sample(self) -> tuple[list[Prompt], RolloutBatch]:
        """This process's prompts, each G times, and a completion for each."""
        batch = self.config.batch
        prompts = self.prompts.take(self.step * batch.prompts, batch.prompts)
        own = len(prompts) // self.ranks.world
        mine = prompts[self.ranks.rank * own : (self.ranks.rank + 1) * own]
        chosen = [prompt for prompt in mine for _ in range(batch.group)]
        version = self.step * self.config.updates
        return chosen, self.sampler([prompt.ids for prompt in chosen], version)

    def _reward(
        self, chosen: list[Prompt], rollout: RolloutBatch
    ) -> tuple[list[list[float]], dict[str, float]]:
        """The rewards (N, K) of this process's completions, and metrics that functions logged."""
        ids, logged = rollout.completions(), dict[str, float]()
        columns = {k: [p.columns.get(k) for p in chosen] for p in chosen for k in p.columns}
        about: dict[str, Any] = {
            "trainer_state": SimpleNamespace(
                global_step=self.step, max_steps=self.config.run.steps
            ),
            "log_metric": logged.__setitem__,
            "log_extra": lambda _column, _values: None,
        }
        texts, said = self._texts(chosen, ids), [p.said for p in chosen]
        return self.rewards(said, texts, ids, {**columns, **about}), logged

    def _prepare(
        self, rollout: RolloutBatch, rewards_NK: list[list[float]]
    ) -> tuple[Step, dict[str, float]]:
        """Everything that is constant over the updates, and what to log of it."""
        how, group = self.objective, self.config.batch.group
        mask_NT = counted(how, rollout)
        table = torch.tensor(rewards_NK, dtype=torch.float64)
        rewards_N = weighted(table, how.advantage.reward_weights)
        step = Step(rollout, group, rewards_N, mask_NT, torch.zeros_like(mask_NT[:, 0]))
        if self._reused or in_advantages(how):
            old_NT = rollout.logps if self.sampler.exact else self.updater.score(step)[0]
            step = replace(step, old=old_NT)
        if needs_reference(how):
            step = replace(step, ref=self.updater.reference(step))
        shaping = None
        if in_advantages(how):
            shaping = Rollout(step.old, mask_NT, step.ref, rollout.logps)
        adv, kept_N = advantages_of(how, rewards_NK, group, mask_NT, self.ranks, shaping)
        step = replace(step, advantages=adv, kept=kept_N, old=step.old if self._reused else None)
        return step, reward_metrics(rewards_N, adv, mask_NT, group, self.ranks)

    def _update(self, step: Step) -> dict[str, float]:
        """All updates of a step; the means of their metrics."""
        batch = self.config.batch
        rate = optimizer.rate(self.step, self.config.run.steps, self.config.optimizer)
        found: list[dict[str, float]] = []
        entropy = self.written.wants_entropy(self.step)
        if self.written.judges(self.step):
            check_gradient(self.updater.agreement(step), self.config.model.dtype)
        for _ in range(batch.epochs):
            for part in step.parts(batch.minibatches):
                update = self.updater.gradient(part, entropy)
                self.written.record(self.step, update, len(found))
                found.append(update_metrics(self.objective, update, self.ranks))
                self.updater.apply(rate)
        means = {name: sum(one[name] for one in found) / len(found) for name in found[0]}
        return {**means, "sampler_gap": found[0]["sampler_gap"], "lr": rate}

    @property
    def _reused(self) -> bool:
        """Whether the policy moves while a step's completions are in use."""
        return self.config.updates > 1

    def _texts(self, chosen: list[Prompt], ids: list[list[int]]) -> list[Any]:
        """Completions as TRL's reward functions take them."""
        texts = self.policy.tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [
            [{"role": "assistant", "content": text}] if prompt.conversational else text
            for prompt, text in zip(chosen, texts, strict=True)
        ]

    def _lengths(self, rollout: RolloutBatch) -> dict[str, float]:
        lengths_N = self.ranks.rows(rollout.mask.sum(1).double())
        ended_N = self.ranks.rows(rollout.finished.double())
        return {
            "completion_length": float(lengths_N.mean()),
            "truncated_frac": float(1 - ended_N.mean()),
        }

    def _each_reward(self, rewards_NK: list[list[float]]) -> dict[str, float]:
        """The mean of each reward function, where there are several."""
        table = self.ranks.rows(torch.tensor(rewards_NK, dtype=torch.float64))
        names = self.rewards.names
        pairs = zip(names, table.nanmean(0).tolist(), strict=True)
        return {f"rewards/{name}": mean for name, mean in pairs} if len(names) > 1 else {}

    # ------------------------------------------------------------ checkpoints

    def save(self) -> None:
        """Write a checkpoint of what comes next.

        Raises:
            CheckpointError: it could not be written; older ones are as they were.
        """
        states = self.ranks.all(checkpoint.generators(self.engine.state()))
        trained = self.policy.trained()
        moments = checkpoint.moments_of(trained, self.updater.optimizer)
        tensors = self.ranks.gathered(trained), self.ranks.gathered(moments)
        how = self.config.checkpoint
        with self._whole_model() if how.export else nullcontext() as export:
            if self.ranks.main:
                state = checkpoint.State(self.step, self.written.sizes(), self.config.plain())
                more = {} if export is None else {"model": export}
                checkpoint.write(self.folder, state, *tensors, states, how.keep, more)
        self.ranks.wait()

    def export(self, folder: Path) -> None:
        """Write the model and its tokenizer in the format of transformers (peft's, with LoRA).

        Every process calls it; the main one writes.
        """
        with self._whole_model() as export:
            if self.ranks.main:
                export(folder)

    @contextmanager
    def _whole_model(self) -> Iterator[Write]:
        """What writes the model into a folder; every process enters."""
        with self.ranks.whole(self.policy.model) as model:

            def export(folder: Path) -> None:
                model.save_pretrained(folder)
                self.policy.tokenizer.save_pretrained(folder)

            yield export

    def _restored(self, last: Path | None) -> Mapping[str, int]:
        """Everything as a checkpoint has it, or at its start; the sizes of the logs then."""
        if last is None:
            checkpoint.seed(self.config.run.seed, self.ranks.rank)
            return {}
        state = checkpoint.read_state(last)
        start.check_same(state.config, self.config)
        checkpoint.restore(last, self.policy.trained(), self.updater.optimizer)
        self.engine.restore(checkpoint.restore_generators(last, self.ranks.rank))
        self.step = state.step
        return state.sizes


def _times(clock: list[float], tokens: float) -> dict[str, float]:
    names = ("seconds_sampling", "seconds_rewards", "seconds_updates")
    spans = {n: b - a for n, a, b in zip(names, clock, clock[1:], strict=False)}
    seconds = clock[-1] - clock[0]
    return {"tokens_per_second": tokens / seconds, "seconds": seconds, **spans}
