"""`generate` of the policy that stands in: really sampled, and what was drawn from is kept.

Settings are those of Hugging Face's `generate` (documentation of GenerationConfig, as of
transformers 4.57): processors in its order, penalties first, then temperature, then cuts. A
setting that changes the distribution and isn't known here is refused.

Shapes: B rows, L slots, C of the completion, V words.
"""

from __future__ import annotations

from typing import Any

from rlproof.bind.child.load import UnavailableError
from rlproof.bind.child.rehearsal.settings import (
    COMPLETION,
    EOS,
    PROMPT,
    WORDS,
    generator,
    prompt_ids,
    seed_of,
)  # fmt: skip
from rlproof.bind.child.standin import Output

_CHANGING = {
    "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "min_new_tokens",
    "no_repeat_ngram_size", "min_length", "min_tokens",
}  # fmt: skip
_QUIET = {
    "attention_mask", "bos_token_id", "do_sample", "eos_token_id", "generation_config", "input_ids",
    "inputs", "max_length", "max_new_tokens", "max_tokens", "num_return_sequences", "output_logits",
    "output_scores", "pad_token_id", "position_ids", "return_dict_in_generate", "synced_gpus",
    "use_cache", "logits_to_keep", "cache_implementation", "disable_compile", "num_beams",
    "n", "tokenizer", "prompts", "use_model_defaults", "stop_strings",
}  # fmt: skip


def generate(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Rows of prompts and completions (B, L), ended by EOS and filled up with the padding id."""
    import torch

    recorder = model.recorder
    settings = _settings(kwargs)
    prompts = _prompts(args, kwargs)
    many = settings.get("num_return_sequences") or settings.get("n") or 1
    prompts = [p for p in prompts for _ in range(int(many))]
    ids = torch.tensor(prompts)
    draws = [recorder.draws(tuple(p)) for p in prompts]
    width = min(int(settings.get("max_new_tokens") or COMPLETION), COMPLETION)
    ended = torch.zeros(len(ids), dtype=torch.bool)
    kept = []
    for k in range(width):
        scores = model.lines(ids)[:, -1]
        chances = distribution(scores, ids, k, settings)
        if settings.get("do_sample") is False or settings.get("temperature") == 0:
            chosen = chances.argmax(-1)
        else:
            chosen = torch.stack(
                [
                    _drawn(row, generator("draw", *d, k))
                    for row, d in zip(chances, draws, strict=True)
                ]
            )
        chosen = torch.where(ended, torch.tensor(recorder.settings.pad), chosen)
        kept.append(chances)
        ended = ended | (chosen == EOS)
        ids = torch.cat([ids, chosen.unsqueeze(1)], dim=1)
    greedy = settings.get("do_sample") is False or settings.get("temperature") == 0
    recorder.sampled(ids, None if greedy else torch.stack(kept, dim=1))
    if settings.get("return_dict_in_generate"):
        return Output(sequences=ids)
    return ids


def _settings(kwargs: dict[str, Any]) -> dict[str, Any]:
    """What is set, the call's own last."""
    config = kwargs.get("generation_config") or kwargs.get("sampling_params")
    given = dict(vars(config)) if config is not None else {}
    given |= {k: v for k, v in kwargs.items() if k not in ("generation_config", "sampling_params")}
    known = _CHANGING | _QUIET
    strange = [k for k, v in given.items() if k not in known and v is not None]
    if strange:
        raise UnavailableError(f"the stand-in for the policy samples without `{strange[0]}`")
    if (given.get("num_beams") or 1) != 1:
        raise UnavailableError("the stand-in for the policy searches no beams")
    return given


def _prompts(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[list[int]]:
    """Ids of each prompt, from ids, from what a tokenizer returns, or from texts."""
    import torch

    given: Any = args[0] if args else None
    for name in ("input_ids", "inputs", "prompts"):
        given = kwargs.get(name) if given is None else given
    if hasattr(given, "keys") and "input_ids" in given:
        given = given["input_ids"]
    if torch.is_tensor(given) and given.dim() == 2 and not given.is_floating_point():
        return [list(row) for row in given.tolist()]
    if isinstance(given, list | tuple) and given:
        return [encoded(one) for one in given]
    raise UnavailableError("the stand-in for the policy wants prompts as ids or as texts")


def encoded(one: Any) -> list[int]:
    """The ids of one prompt: a text names its number."""
    import torch

    if isinstance(one, str):
        digits = [part for part in one.split() if part.isdigit()]
        if digits:
            return prompt_ids(int(digits[0]))
    if torch.is_tensor(one) and one.dim() == 1 and len(one) == PROMPT:
        return [int(x) for x in one.tolist()]
    if isinstance(one, list) and len(one) == PROMPT and all(isinstance(x, int) for x in one):
        return one
    raise UnavailableError("the stand-in for the policy wants prompts as ids or as texts")


def distribution(scores: Any, ids: Any, step: int, settings: dict[str, Any]) -> Any:
    """Probabilities (B, V) of the next token under the settings of a call."""
    import torch

    low = float("-inf")
    scores = scores.clone()
    if (penalty := settings.get("repetition_penalty")) not in (None, 1, 1.0):
        seen = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, ids, True)
        scores = torch.where(
            seen, torch.where(scores < 0, scores * penalty, scores / penalty), scores
        )
    for row, banned in _repeats(ids, int(settings.get("no_repeat_ngram_size") or 0)):
        scores[row, banned] = low
    least = settings.get("min_new_tokens") or settings.get("min_tokens") or 0
    least = max(int(least), int(settings.get("min_length") or 0) - ids.shape[1] + step)
    if step < least:
        scores[:, EOS] = low
    if (heat := settings.get("temperature")) not in (None, 0, 0.0):
        scores = scores / float(heat)
    top = int(settings.get("top_k") or 0)
    if 0 < top < WORDS:
        scores = scores.masked_fill(scores < scores.topk(top).values[:, -1:], low)
    if 0 < (share := float(settings.get("top_p") or 1.0)) < 1:
        ordered, places = scores.sort(descending=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        scores = scores.scatter(1, places, ordered.masked_fill(before >= share, low))
    if least_share := float(settings.get("min_p") or 0):
        chances = scores.softmax(-1)
        scores = scores.masked_fill(chances < least_share * chances.amax(-1, keepdim=True), low)
    return scores.softmax(-1)


def _repeats(ids: Any, size: int) -> list[tuple[int, int]]:
    """Tokens that would repeat a run of `size` tokens, by row."""
    if size < 1:
        return []
    found = []
    for i, row in enumerate(ids.tolist()):
        last = row[len(row) - size + 1 :]
        found += [
            (i, row[k + size - 1])
            for k in range(len(row) - size + 1)
            if row[k : k + size - 1] == last
        ]
    return found


def _drawn(chances: Any, draws: Any) -> Any:
    import torch

    return torch.multinomial(chances, 1, generator=draws)[0]


def stand_for(number: int) -> str:
    """A prompt as a text."""
    return f"question {number} ?"


__all__ = ["distribution", "encoded", "generate", "seed_of", "stand_for"]
