"""What `generate` of transformers really draws from: ids and log-probs, without keeping logits.

The last of the logits processors sees the scores that a token is drawn from, after temperature,
top-k, top-p and penalties. Shapes: B rows, T sampled slots, V vocabulary.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Drawn:
    """One call of `generate`, as a logits processor that changes nothing."""

    def __init__(self) -> None:
        self.prompt_width = 0
        self.tokens: Any = None
        """Sampled ids (B, T), what follows the end token included; None before the end."""
        self._scores: Any = None
        self._logps: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """The scores as they came; the token that was drawn from the last ones is scored."""
        if self._scores is None:
            self.prompt_width = input_ids.shape[1]
        else:
            self._score(input_ids[:, -1])
        self._scores = scores
        return scores

    def _score(self, tokens_B: Any) -> None:
        scores_BV = self._scores.float()
        chosen = scores_BV.gather(1, tokens_B[:, None].to(scores_BV.device))[:, 0]
        self._logps.append(chosen - scores_BV.logsumexp(1))

    def end(self, sequences: Any) -> None:
        """The ids that `generate` returns (B, prompt and T)."""
        if self._scores is None or sequences.shape[0] != self._scores.shape[0]:
            return
        self.tokens = sequences[:, self.prompt_width :]
        if len(self._logps) == self.tokens.shape[1] - 1:
            self._score(self.tokens[:, -1])
        self._scores = None

    @property
    def logps(self) -> Any:
        """log-probs of the sampled ids (B, T), nats; None where not every id was seen."""
        import torch

        whole = self.tokens is not None and len(self._logps) == self.tokens.shape[1]
        return torch.stack(self._logps, 1) if whole and self._logps else None


@contextmanager
def watched_sampling() -> Iterator[list[Drawn]]:
    """Every call of `generate` in this thread while it lasts, of whichever model.

    Yields a list that fills up, one entry a call.
    """
    from transformers import GenerationMixin

    drawn: list[Drawn] = []
    thread = threading.get_ident()
    generate = GenerationMixin.generate
    processors = GenerationMixin._get_logits_processor

    def watched_processors(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = processors(self, *args, **kwargs)
        if drawn and drawn[-1].tokens is None and threading.get_ident() == thread:
            made.append(drawn[-1])
        return made

    def watched_generate(self: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != thread:
            return generate(self, *args, **kwargs)
        drawn.append(Drawn())
        output = generate(self, *args, **kwargs)
        drawn[-1].end(getattr(output, "sequences", output))
        return output

    GenerationMixin.generate = watched_generate
    GenerationMixin._get_logits_processor = watched_processors
    try:
        yield drawn
    finally:
        GenerationMixin.generate = generate
        GenerationMixin._get_logits_processor = processors
