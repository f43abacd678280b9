"""Which engine samples, and whether an environment answers. Shapes: B rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rlproof.errors import ConfigError
from rlproof.train.config import TrainConfig
from rlproof.train.distributed import Ranks
from rlproof.train.policy import Policy
from rlproof.train.rollout.batch import RolloutBatch
from rlproof.train.rollout.engine import Engine
from rlproof.train.rollout.local import LocalEngine
from rlproof.train.rollout.turns import Environment, Limits, converse


@dataclass(frozen=True, slots=True)
class Sampler:
    """Completions of one or several turns, at the present weights."""

    engine: Engine
    policy: Policy
    ranks: Ranks
    environment: Environment | None = None
    limits: Limits | None = None

    def __call__(self, prompts: Sequence[Sequence[int]], version: int) -> RolloutBatch:
        """A completion for each prompt, after `version` updates of the weights.

        Raises:
            RolloutError: the engine or the environment failed.
            ConfigError: the engine has no way to take the weights.
        """
        own = isinstance(self.engine, LocalEngine)
        if own or self.ranks.main:
            self.engine.update(self.policy.model, version)
        if not own:
            self.ranks.wait()
        with self.policy.precision():
            if self.environment is None:
                batch = self.engine.generate(prompts)
            else:
                batch = converse(
                    self.engine, prompts, self.environment, pad=self.policy.pad,
                    limits=self.limits, tokenizer=self.policy.tokenizer,
                )  # fmt: skip
        return batch.to(self.policy.device)

    @property
    def exact(self) -> bool:
        """Whether the sampler's log-probs can stand for the old policy's."""
        return self.engine.exact and self.policy.dtype == "float32"


def engine_of(own: Policy, config: TrainConfig, ranks: Ranks) -> Engine:
    """The engine of the settings.

    Raises:
        ConfigError: a setting of a server is missing or wrong.
    """
    how = config.engine
    common: dict[str, Any] = {"eos": own.eos, "pad": own.pad, "stream": ranks.rank}
    if how.kind == "local":
        return LocalEngine(own.model, config.sampling, **common)
    if not how.url or not how.model or not how.weights:
        raise ConfigError(
            f"[engine] url is {how.url!r}, model {how.model!r} and weights {how.weights!r}; a "
            "server needs all three: where it is, what it calls the model, and a folder that both "
            "can read"
        )
    return _server(own, config, common)


def _server(own: Policy, config: TrainConfig, common: dict[str, Any]) -> Engine:
    from rlproof.train.rollout.push import VllmReload
    from rlproof.train.rollout.server import ServerEngine

    how = config.engine
    return ServerEngine(
        str(how.url), str(how.model), config.sampling, logprobs=how.logprobs, timeout=how.timeout,
        push=VllmReload(str(how.url), str(how.weights), timeout=how.timeout),
        vocabulary=own.vocabulary, context=own.context, **common,
    )  # fmt: skip
