"""Several turns with an environment: tools, games, questions back.

What the environment says is appended as ids and masked out of the loss. The past is never encoded
again: encoding text anew can give other tokens than were sampled, with other log-probs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlproof.errors import ConfigError, RolloutError
from rlproof.train.rollout.batch import RolloutBatch, Row, stack
from rlproof.train.rollout.engine import Engine


@dataclass(frozen=True, slots=True)
class Turn:
    """What the policy has just said, as an environment gets it."""

    row: int
    """Which row of the batch."""
    number: int
    """0 for the first turn."""
    prompt: tuple[int, ...]
    """Ids of the prompt."""
    ids: tuple[int, ...]
    """Ids sampled in this turn, the end token included."""
    completion: tuple[int, ...]
    """All ids after the prompt, those of the environment included."""
    text: str | None
    """`ids` as text, without special tokens; None without a tokenizer."""


Environment = Callable[[Turn], "Sequence[int] | str | None"]
"""Gives ids, or text, to append; None ends the row."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a row is cut.

    Raises:
        ConfigError: a limit is below 1.
    """

    turns: int = 8
    """Turns of the policy."""
    tokens: int = 4096
    """Tokens of the completion, those of the environment included."""

    def __post_init__(self) -> None:
        for name in ("turns", "tokens"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} is {value!r}; expected a whole number, 1 or more")


def converse(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    environment: Environment,
    *,
    pad: int,
    limits: Limits | None = None,
    tokenizer: Any = None,
) -> RolloutBatch:
    """Turns of policy and environment until each row has ended.

    A row is finished if its last turn ended by an end token and the environment had no more to
    say, or the turns were used up. It is cut, and not finished, if a turn has no end token, or if
    what the environment says leaves no room for a further token: that is then not appended.

    Args:
        engine: what samples; its `max_tokens` holds for each turn.
        prompts: token ids.
        environment: called after each turn that ended by an end token, row after row.
        pad: the id for padding.
        limits: turns and tokens of a row.
        tokenizer: encodes what the environment says as text, and decodes turns for it.

    Raises:
        RolloutError: a prompt and the tokens of a row are more than the model has positions; the
            engine fails; the environment does, or gives what is no ids or text, or text without
            a tokenizer. No part of the batch is then returned.
    """
    bounds = limits or Limits()
    longest = max((len(prompt) for prompt in prompts), default=0)
    if engine.context is not None and longest + bounds.tokens > engine.context:
        raise RolloutError(
            f"the longest prompt has {longest} tokens, with {bounds.tokens} for its turns "
            f"{longest + bounds.tokens}, and the model has {engine.context} positions; expected "
            "no more than those: lower the limit of tokens, or drop the prompt"
        )
    rows = [Row(list(prompt), [], [], []) for prompt in prompts]
    live, version = list(range(len(rows))), None
    for number in range(bounds.turns):
        batch = engine.generate(
            [rows[i].prompt + rows[i].tokens for i in live],
            limits=[bounds.tokens - len(rows[i].tokens) for i in live],
        )
        version = batch.version if version is None else version
        last = number + 1 == bounds.turns
        talk = _Talk(environment, tokenizer, number, bounds.tokens)
        said = list(zip(live, _sampled(batch), strict=True))
        live = [i for i, new in said if talk.goes_on(i, rows[i], *new, last=last)]
        if not live:
            break
    return stack(rows, pad, version)


def _sampled(batch: RolloutBatch) -> list[tuple[list[int], list[float], bool]]:
    """Ids, log-probs and whether it finished, of each row of one turn."""
    logps, finished = batch.logps.tolist(), batch.finished.tolist()
    ids = batch.completions()
    return [(new, logps[j][: len(new)], finished[j]) for j, new in enumerate(ids)]


@dataclass(frozen=True, slots=True)
class _Talk:
    """One turn of all rows."""

    environment: Environment
    tokenizer: Any
    number: int
    most: int

    def goes_on(
        self, i: int, row: Row, new: list[int], logps: list[float], ended: bool, *, last: bool
    ) -> bool:
        """Appends what was sampled and what the environment says; whether a turn follows."""
        row.tokens += new
        row.logps += logps
        row.sampled += [True] * len(new)
        row.finished = ended
        if not ended or last:
            return False
        reply = self._reply(i, row, new)
        if reply is None:
            return False
        if len(row.tokens) + len(reply) >= self.most:
            row.finished = False
            return False
        row.tokens += reply
        row.logps += [0.0] * len(reply)
        row.sampled += [False] * len(reply)
        return True

    def _reply(self, i: int, row: Row, new: list[int]) -> list[int] | None:
        text = None
        if self.tokenizer is not None:
            text = self.tokenizer.decode(new, skip_special_tokens=True)
        turn = Turn(i, self.number, tuple(row.prompt), tuple(new), tuple(row.tokens), text)
        try:
            reply = self.environment(turn)
        except Exception as error:
            raise RolloutError(
                f"the environment failed in turn {self.number} of row {i}: "
                f"{type(error).__name__}: {error}"
            ) from error
        return None if reply is None else self._ids(i, reply)

    def _ids(self, i: int, reply: Sequence[int] | str) -> list[int]:
        if isinstance(reply, str):
            if self.tokenizer is None:
                raise self._wrong(i, f"the text {reply[:40]!r}", "ids, or a tokenizer for text")
            reply = self.tokenizer.encode(reply, add_special_tokens=False)
        try:
            ids = [int(n) for n in reply]
            whole = all(n == m for n, m in zip(ids, reply, strict=True))
        except (TypeError, ValueError):
            ids, whole = [], False
        if not ids or not whole or min(ids) < 0:
            raise self._wrong(i, repr(reply)[:60], "ids or text of one token or more, or None")
        return ids

    def _wrong(self, i: int, got: str, expected: str) -> RolloutError:
        return RolloutError(
            f"the environment gave {got} in turn {self.number} of row {i}; expected {expected}"
        )
