"""What a run declares about itself, and no log says: by name, the same everywhere.

`rlproof.record(..., facts={"beta": 0.04})` and `rlproof inspect --fact beta=0.04` mean the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from rlproof.errors import ConfigError, quoted


@dataclass(frozen=True, slots=True)
class Facts:
    """Declared settings; None where nothing is declared."""

    objective: str | None = None
    """The recipe that is meant: a name of `rlproof.space.published`."""
    baseline: str | None = None
    """How rewards are centred: a name of `rlproof.space.advantages.BASELINE_NAMES`."""
    scale: str | None = None
    """What divides the centred rewards: a name of `rlproof.space.advantages.SCALE_NAMES`."""
    group_size: int | None = None
    """Completions a prompt, G."""
    vocabulary: int | None = None
    """Tokens of the vocabulary, V."""
    updates: int | None = None
    """Updates of the weights that one batch of completions is used for."""
    beta: float | None = None
    """Weight of the divergence in the loss."""
    clip_low: float | None = None
    """ε of the lower clip bound 1 − ε."""
    clip_high: float | None = None
    """ε of the upper clip bound 1 + ε."""
    estimator: str | None = None
    """How the logged divergence from the reference is estimated: k1, k2 or k3."""
    entropy_coefficient: float | None = None
    """Weight of the entropy bonus in the loss."""
    bos: int | None = None
    """Id of the token that begins a text."""
    eos: tuple[int, ...] | None = None
    """Ids of the tokens that end a completion."""
    pad: int | None = None
    """Id of padding in recorded prompts."""
    longest: int | None = None
    """Tokens at which a completion is cut off."""
    precision: str | None = None
    """The type that log-probs were computed in, where arrays were converted since: bfloat16 …"""
    accumulation: int | None = None
    """Micro-batches whose gradients one update of the weights sums."""
    denominator: float | None = None
    """What a sum over tokens is divided by, where it is no count of the rows recorded."""
    engine: str | None = None
    """`same` where the sampler runs the trainer's own code in its precision, else `other`."""

    def known(self) -> dict[str, Any]:
        """What is declared."""
        pairs = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {name: value for name, value in pairs if value is not None}

    def over(self, other: Facts) -> Facts:
        """These facts; where they say nothing, the other ones."""
        return replace(other, **self.known())

    @property
    def of_group(self) -> bool:
        """Whether advantages are declared to be measured against their own group."""
        baseline, scale = self.advantage()
        whole = (scale or "").startswith("batch") or self._whitened
        return baseline in OWN_GROUP and not whole

    @property
    def _whitened(self) -> bool:
        """Whether the declared objective normalises its advantages over the batch as well."""
        if self.objective is None:
            return False
        from rlproof.space.published import OBJECTIVES

        return OBJECTIVES[self.objective].objective.advantage.whiten != "none"

    def advantage(self) -> tuple[str | None, str | None]:
        """The declared baseline and scale: said directly, or by the objective's name."""
        baseline, scale = self.baseline, self.scale
        if self.objective:
            from rlproof.space.published import OBJECTIVES

            meant = OBJECTIVES[self.objective].objective.advantage
            baseline = baseline or meant.baseline
            scale = scale or meant.scale
        elif scale in ("population-std", "sample-std") and baseline is None:
            baseline = "group-mean"  # a group's own spread around another mean is no recipe
        return baseline, scale


_LARGEST = 2**63
OWN_GROUP = ("group-mean", "leave-one-out", "length-weighted-mean")


def _token_ids(value: Any) -> tuple[int, ...]:
    """One id or several, from numbers, a list, or text with commas."""
    several = value.split(",") if isinstance(value, str) else value
    return tuple(_whole(i) for i in (several if isinstance(several, list | tuple) else [several]))


def _whole(value: Any) -> int:
    """A whole number that arrays can hold."""
    number = int(value)
    if abs(number) >= _LARGEST:
        raise ValueError
    return number


_TYPES: dict[str, Callable[[Any], Any]] = {
    "objective": str, "baseline": str, "scale": str, "estimator": str,
    "precision": str, "engine": str, "accumulation": _whole, "denominator": float,
    "group_size": _whole, "vocabulary": _whole, "updates": _whole, "bos": _whole, "pad": _whole,
    "longest": _whole,
    "eos": _token_ids,
    "beta": float, "clip_low": float, "clip_high": float, "entropy_coefficient": float,
}  # fmt: skip


_KINDS: dict[Callable[[Any], Any], str] = {_token_ids: "ids such as 2,5", _whole: "int"}


def facts_of(values: Mapping[str, Any]) -> Facts:
    """Facts from names and values; a value may be text.

    Raises:
        ConfigError: an unknown name, or a value of the wrong kind.
    """
    made: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _TYPES:
            raise ConfigError(f"fact {quoted(name)}: unknown, expected one of {', '.join(_TYPES)}")
        try:
            made[name] = _TYPES[name](value)
        except (TypeError, ValueError, OverflowError):
            kind = _KINDS.get(_TYPES[name]) or getattr(_TYPES[name], "__name__", "")
            raise ConfigError(f"fact {name} is {quoted(value)}, expected {kind}") from None
        _check_name(name, made[name])
    return Facts(**made)


def _check_name(name: str, value: Any) -> None:
    from rlproof.space.advantages import BASELINE_NAMES, SCALE_NAMES
    from rlproof.space.published import OBJECTIVES

    known = {
        "objective": tuple(OBJECTIVES),
        "baseline": BASELINE_NAMES,
        "scale": SCALE_NAMES,
        "estimator": ("k1", "k2", "k3"),
        "precision": ("float16", "bfloat16", "float32", "float64"),
        "engine": ("same", "other"),
    }.get(name)
    if known is not None and value not in known:
        raise ConfigError(f"fact {name} is {quoted(value)}, expected one of {', '.join(known)}")
    if name in ("group_size", "vocabulary", "updates", "longest", "accumulation") and value < 1:
        raise ConfigError(f"fact {name} is {value}, expected 1 or more")


def parse(pairs: tuple[str, ...]) -> Facts:
    """Facts from `name=value` texts of the command line.

    Raises:
        ConfigError: a text without `=`, or see `facts_of`.
    """
    values: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign:
            raise ConfigError(f"--fact {pair!r}, expected NAME=VALUE")
        values[name.strip().replace("-", "_")] = value.strip()
    return facts_of(values)
