"""Another engine's completion, checked before anything is trained on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rlproof.errors import RolloutError
from rlproof.train.rollout.batch import Row

ROUNDING = 1e-3
"""How far above 0 an engine's log-prob may be, nats."""
NO_LOGPROB = -9999.0
"""What vLLM sends for −∞."""


def row_of_answer(
    i: int,
    prompt: Sequence[int],
    limit: int,
    answer: Any,
    eos: Sequence[int],
    vocabulary: int | None,
) -> Row:
    """The completion in an answer of `/v1/completions`.

    Ids are taken from `token_ids` (vLLM with `return_token_ids`), or from tokens that are written
    `token_id:17`. Text is never encoded.

    Raises:
        RolloutError: ids or log-probs are missing, or they can't be those of the completion.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise _wrong(i, f"{str(answer)[:120]!r}", "a completion with one choice")
    choice = choices[0]
    sent = choice.get("prompt_token_ids", answer.get("prompt_token_ids"))
    if sent is not None and sent != list(prompt):
        raise _wrong(
            i, f"a completion of another prompt ({str(sent)[:60]})",
            "the ids that were sent: does the server add special tokens?",
        )  # fmt: skip
    logprobs = choice.get("logprobs") or {}
    ids = choice.get("token_ids")
    ids = _written_ids(logprobs.get("tokens")) if ids is None else ids
    if ids is None:
        raise _wrong(
            i, "text without token ids",
            "`token_ids`: text that is encoded again gives other tokens than were sampled. vLLM "
            "has them since 0.10.2 (`return_token_ids`)",
        )  # fmt: skip
    return checked_row(
        i, prompt, limit, ids, logprobs.get("token_logprobs"), choice.get("finish_reason"), eos,
        vocabulary,
    )  # fmt: skip


def checked_row(
    i: int,
    prompt: Sequence[int],
    limit: int,
    ids: Any,
    logps: Any,
    reason: Any,
    eos: Sequence[int],
    vocabulary: int | None,
) -> Row:
    """A row of what an engine gave.

    Args:
        i: the row, for messages.
        prompt: its ids.
        limit: most tokens that were asked for.
        ids: the sampled ids, the end token included.
        logps: one for each, nats.
        reason: `stop` or `length`.
        eos: ids that end a completion.
        vocabulary: ids that there are; None if that isn't known.

    Raises:
        RolloutError: something of it can't be right.
    """
    if not isinstance(ids, (list, tuple)) or not ids or not all(_is_id(n, vocabulary) for n in ids):
        raise _wrong(i, f"the ids {str(ids)[:60]}", "one whole number or more, of the vocabulary")
    if not isinstance(logps, (list, tuple)) or len(logps) != len(ids):
        count = len(logps) if isinstance(logps, (list, tuple)) else 0
        raise _wrong(i, f"{len(ids)} ids and {count} log-probs", "one log-prob for each id")
    for t, logp in enumerate(logps):
        if not isinstance(logp, (int, float)) or not NO_LOGPROB < logp <= ROUNDING:
            raise _wrong(i, f"the log-prob {logp!r} at token {t}", "a finite number, at most 0")
    if len(ids) > limit:
        raise _wrong(i, f"{len(ids)} tokens", f"at most {limit}")
    ends = set(eos)
    if any(n in ends for n in ids[:-1]):
        raise _wrong(i, "tokens after an end token", "nothing after it")
    finished = ids[-1] in ends
    if reason not in ("stop", "length") or (reason == "stop" and not finished):
        raise _wrong(
            i, f"a completion that ended by {reason!r} with the id {ids[-1]}",
            f"the end token as its last id ({sorted(ends)}), or 'length'",
        )  # fmt: skip
    return Row(
        list(prompt), list(ids), [True] * len(ids), [min(float(x), 0.0) for x in logps], finished
    )


def _written_ids(tokens: Any) -> list[int] | None:
    """Ids of tokens that are written `token_id:17`; None if they aren't."""
    if not isinstance(tokens, list) or not tokens:
        return None
    parts = [str(token).partition("token_id:") for token in tokens]
    if any(before or not mark or not number.isdigit() for before, mark, number in parts):
        return None
    return [int(number) for _, _, number in parts]


def _is_id(value: Any, vocabulary: int | None) -> bool:
    below = math.inf if vocabulary is None else vocabulary
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < below


def _wrong(i: int, got: str, expected: str) -> RolloutError:
    return RolloutError(f"the engine's answer for row {i} has {got}; expected {expected}")
