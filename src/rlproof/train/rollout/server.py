"""Completions from an OpenAI-compatible server, such as vLLM's.

The server's log-probs are those of its own kernels and of weights that may be some updates old:
they are the sampler's, never the old policy's. The batch carries the version of its weights.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any

from rlproof.errors import ConfigError
from rlproof.train.rollout.answer import row_of_answer
from rlproof.train.rollout.batch import RolloutBatch, Row, stack
from rlproof.train.rollout.http import Client
from rlproof.train.rollout.prompts import check_prompts
from rlproof.train.rollout.seeds import first_seed
from rlproof.train.sampling import Sampling

LOGPROBS = ("raw", "drawn")
Push = Callable[[Any, int], None]


class ServerEngine:
    """Samples from a server. One request a row, each with a seed of its own.

    Equal seeds in one batch would give a group of equal completions. Whatever a server takes as
    default from the model's generation settings (top-p, penalties) is overruled by neutral values.

    Args:
        url: where the server is, such as http://localhost:8000.
        model: the name under which it serves the model.
        sampling: how tokens are drawn.
        eos: ids that end a completion, sent as `stop_token_ids`.
        pad: the id for padding.
        logprobs: what the server's log-probs are of. `raw`: of softmax(z), vLLM's default; fits
            temperature 1 without a cut alone. `drawn`: of what is drawn from, vLLM's
            `--logprobs-mode processed_logprobs`.
        push: gives the server the weights after an update: called with model and version. See
            `rlproof.train.rollout.push`.
        api_key: sent as a bearer token.
        workers: requests at once.
        timeout: seconds for one try of one request.
        tries: how often a request is sent at most.
        wait: seconds before the second try; doubled before each further one.
        extra: fields of the request to set; None leaves out one that a server doesn't know.
        vocabulary: ids that the model knows, to check prompts and answers.
        context: positions that the model has, to check prompts.
        stream: another one for each process that samples at once.

    Raises:
        ConfigError: a setting is wrong, or the log-probs would be of another distribution than
            the tokens.
    """

    exact = False

    def __init__(
        self,
        url: str,
        model: str,
        sampling: Sampling,
        *,
        eos: Sequence[int],
        pad: int,
        logprobs: str = "raw",
        push: Push | None = None,
        api_key: str | None = None,
        workers: int = 32,
        timeout: float = 600.0,
        tries: int = 4,
        wait: float = 0.5,
        extra: Mapping[str, Any] | None = None,
        vocabulary: int | None = None,
        context: int | None = None,
        stream: int = 0,
    ) -> None:
        if logprobs not in LOGPROBS:
            raise ConfigError(f"logprobs is {logprobs!r}; expected one of {', '.join(LOGPROBS)}")
        if logprobs == "raw" and (sampling.temperature != 1 or sampling.cut):
            told = sampling.cut or f"temperature {sampling.temperature}"
            raise ConfigError(
                f"the server's log-probs are of the whole softmax at temperature 1, tokens are "
                f"drawn with {told}: start vLLM with --logprobs-mode processed_logprobs and set "
                'logprobs = "drawn", or sample at temperature 1 without a cut'
            )
        if workers < 1:
            raise ConfigError(f"workers is {workers}; expected 1 or more")
        self.client = Client(url, timeout=timeout, tries=tries, wait=wait, api_key=api_key)
        self.model, self.sampling, self.version = model, sampling, 0
        self._eos, self._pad, self._push, self._workers = list(eos), pad, push, workers
        self._extra, self._vocabulary, self._stream = dict(extra or {}), vocabulary, stream
        self.context = context
        self._batches = 0

    def generate(
        self, prompts: Sequence[Sequence[int]], *, limits: Sequence[int] | None = None
    ) -> RolloutBatch:
        """One completion for each prompt.

        Args:
            prompts: token ids, sent as they are.
            limits: most tokens of each row, where that is less than `sampling.max_tokens`.

        Raises:
            RolloutError: a prompt can't be continued, a request failed for good, or an answer
                can't be right. The other requests are then called off.
        """
        most = check_prompts(
            prompts, self.sampling.max_tokens,
            context=self.context, vocabulary=self._vocabulary, limits=limits,
        )  # fmt: skip
        first = first_seed(self.sampling.seed, self._stream, self._batches)
        self._batches += 1
        off = threading.Event()
        pool = ThreadPoolExecutor(min(self._workers, len(prompts)))
        try:
            jobs = [
                pool.submit(self._row, i, list(prompts[i]), most[i], (first + i) % 2**31, off)
                for i in range(len(prompts))
            ]
            done, _ = wait_for(jobs, return_when=FIRST_EXCEPTION)
            rows = [job.result() for job in jobs if job in done]
        finally:
            self.client.call_off(off)
            pool.shutdown(wait=False, cancel_futures=True)
        return stack(rows, self._pad, self.version)

    def update(self, model: Any, version: int) -> None:
        """Gives the server the weights after `version` updates.

        Raises:
            ConfigError: the engine was made without `push`.
            RolloutError: the server didn't take them.
        """
        if self._push is None:
            raise ConfigError(
                f"the server at {self.client.url} would go on with the weights of version "
                f"{self.version}: there is no way to send version {version}. Pass push=, such as "
                "rlproof.train.rollout.push.VllmReload for vLLM in development mode"
            )
        self._push(model, version)
        self.version = version

    def state(self) -> dict[str, Any]:
        """How many batches were sampled, of which the seeds are made, and the version."""
        return {"batches": self._batches, "version": self.version}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on with the seeds where `state` was taken; the server's weights are not changed."""
        self._batches, self.version = state["batches"], state["version"]

    def _row(self, i: int, prompt: list[int], limit: int, seed: int, off: threading.Event) -> Row:
        how = self.sampling
        body = {
            "model": self.model, "prompt": prompt, "max_tokens": limit, "n": 1, "seed": seed,
            "temperature": how.temperature, "top_p": how.top_p, "top_k": how.top_k,
            "min_p": how.min_p, "repetition_penalty": 1.0, "presence_penalty": 0.0,
            "frequency_penalty": 0.0, "stop_token_ids": self._eos, "logprobs": 1,
            "return_token_ids": True, "add_special_tokens": False,
        }  # fmt: skip
        body = {k: v for k, v in {**body, **self._extra}.items() if v is not None}
        answer = self.client.post("/v1/completions", body, off)
        return row_of_answer(i, prompt, limit, answer, self._eos, self._vocabulary)
