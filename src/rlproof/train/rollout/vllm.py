"""Completions from a vLLM engine in this process. Executed with vLLM 0.32.0 on a CPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlproof.errors import ConfigError
from rlproof.train.rollout.answer import checked_row
from rlproof.train.rollout.batch import RolloutBatch, stack
from rlproof.train.rollout.prompts import check_prompts
from rlproof.train.rollout.push import save_weights
from rlproof.train.rollout.seeds import first_seed
from rlproof.train.sampling import Sampling


class VllmEngine:
    """Samples from a `vllm.LLM`. Its log-probs are the sampler's, never the old policy's.

    Args:
        llm: the engine, made with the options that the machine needs; with
            `logprobs_mode="processed_logprobs"` unless the temperature is 1 without a cut.
        sampling: how tokens are drawn.
        eos: ids that end a completion.
        pad: the id for padding.
        folder: where `update` writes weights for the engine to read; None if they never change.
        stream: another one for each process that samples at once.

    Raises:
        ConfigError: the engine's log-probs would be of another distribution than the tokens.
    """

    exact = False

    def __init__(
        self,
        llm: Any,
        sampling: Sampling,
        *,
        eos: Sequence[int],
        pad: int,
        folder: str | os.PathLike[str] | None = None,
        stream: int = 0,
    ) -> None:
        config = llm.llm_engine.vllm_config.model_config
        mode = str(getattr(config, "logprobs_mode", "raw_logprobs"))
        if mode != "processed_logprobs" and (sampling.temperature != 1 or sampling.cut):
            told = sampling.cut or f"temperature {sampling.temperature}"
            raise ConfigError(
                f"the engine's log-probs are {mode}, of the softmax at temperature 1, and tokens "
                f'are drawn with {told}: make it with logprobs_mode="processed_logprobs", or '
                "sample at temperature 1 without a cut"
            )
        self.sampling, self.version = sampling, 0
        self.context: int | None = config.max_model_len
        self._llm, self._vocabulary = llm, config.get_vocab_size()
        self._eos, self._pad, self._stream, self._batches = list(eos), pad, stream, 0
        self._folder = None if folder is None else Path(folder).absolute()

    def generate(
        self, prompts: Sequence[Sequence[int]], *, limits: Sequence[int] | None = None
    ) -> RolloutBatch:
        """One completion for each prompt, each with a seed of its own.

        Args:
            prompts: token ids.
            limits: most tokens of each row, where that is less than `sampling.max_tokens`.

        Raises:
            RolloutError: a prompt can't be continued, or an answer can't be right.
        """
        most = check_prompts(
            prompts, self.sampling.max_tokens,
            context=self.context, vocabulary=self._vocabulary, limits=limits,
        )  # fmt: skip
        first = first_seed(self.sampling.seed, self._stream, self._batches)
        self._batches += 1
        asked = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        how = [self._params(limit, (first + i) % 2**31) for i, limit in enumerate(most)]
        rows = []
        for i, answer in enumerate(self._llm.generate(asked, how, use_tqdm=False)):
            given = answer.outputs[0]
            ids = list(given.token_ids)
            logps = [slot[n].logprob for slot, n in zip(given.logprobs or (), ids, strict=False)]
            rows.append(
                checked_row(
                    i, prompts[i], most[i], ids, logps, given.finish_reason, self._eos,
                    self._vocabulary,
                )
            )  # fmt: skip
        return stack(rows, self._pad, self.version)

    def update(self, model: Any, version: int) -> None:
        """Has the engine read the weights of this model, and forget cached prefixes.

        Raises:
            ConfigError: the engine was made without a folder.
        """
        if self._folder is None:
            raise ConfigError(
                f"the engine would go on with the weights of version {self.version}: expected "
                "folder=, where weights are written for it to read"
            )
        save_weights(model, self._folder)
        self._llm.collective_rpc("reload_weights", kwargs={"weights_path": str(self._folder)})
        self._llm.reset_prefix_cache()
        self.version = version

    def state(self) -> dict[str, Any]:
        """How many batches were sampled, of which the seeds are made, and the version."""
        return {"batches": self._batches, "version": self.version}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on with the seeds where `state` was taken; the weights are not changed."""
        self._batches, self.version = state["batches"], state["version"]

    def _params(self, limit: int, seed: int) -> Any:
        from vllm import SamplingParams

        how = self.sampling
        return SamplingParams(
            n=1, max_tokens=limit, seed=seed, temperature=how.temperature, top_p=how.top_p,
            top_k=how.top_k, min_p=how.min_p, stop_token_ids=self._eos, logprobs=0,
            detokenize=False,
        )  # fmt: skip
