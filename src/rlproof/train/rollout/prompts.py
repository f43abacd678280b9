"""Whether a model can continue the prompts. Every refusal names the row."""

from __future__ import annotations

from collections.abc import Sequence

from rlproof.errors import RolloutError


def check_prompts(
    prompts: Sequence[Sequence[int]],
    max_tokens: int,
    *,
    context: int | None = None,
    vocabulary: int | None = None,
    limits: Sequence[int] | None = None,
) -> list[int]:
    """Most tokens of each row: `limits`, or `max_tokens` for all.

    Args:
        prompts: token ids.
        max_tokens: of a completion.
        context: positions that the model has; None if it has no bound.
        vocabulary: ids that the model knows; None if that isn't known.
        limits: most tokens of each row, where that is less than `max_tokens`.

    Raises:
        RolloutError: there are no prompts, or one is empty, too long for the context, or has ids
            outside the vocabulary.
    """
    if not prompts:
        raise RolloutError("there are no prompts; expected one or more to sample completions for")
    if limits is not None and len(limits) != len(prompts):
        raise RolloutError(f"{len(limits)} limits for {len(prompts)} prompts; expected one each")
    most = [min(max_tokens, n) for n in limits] if limits else [max_tokens] * len(prompts)
    for i, (prompt, limit) in enumerate(zip(prompts, most, strict=True)):
        _check_ids(i, prompt, vocabulary)
        if limit < 1:
            raise RolloutError(f"the limit of prompt {i} is {limit} tokens; expected 1 or more")
        if context is not None and len(prompt) + limit > context:
            raise RolloutError(
                f"prompt {i} has {len(prompt)} tokens, with {limit} for its completion "
                f"{len(prompt) + limit}, and the model has {context} positions; expected at most "
                f"{context - limit}: shorten or drop the prompt, or lower max_tokens"
            )
    return most


def _check_ids(i: int, prompt: Sequence[int], vocabulary: int | None) -> None:
    if not len(prompt):
        raise RolloutError(
            f"prompt {i} is empty; expected at least one token to continue, such as the start token"
        )
    low, high = min(prompt), max(prompt)
    if low < 0 or (vocabulary is not None and high >= vocabulary):
        known = "0 or more" if vocabulary is None else f"0 to {vocabulary - 1}"
        raise RolloutError(
            f"prompt {i} has the id {low if low < 0 else high}; expected {known}: is it the "
            "tokenizer of another model?"
        )
