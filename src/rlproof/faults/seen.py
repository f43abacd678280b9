"""What the probes saw of a script: the data that every detector reads.

Shapes: B rows, T slots. Log-probabilities in nats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rlproof.faults.model import Evidence, Sighting

Rows = list[list[float]]
Point = Mapping[str, str | float]


@dataclass(frozen=True, slots=True)
class Place:
    """A span of the script: lines from 1, columns from 0, `end_col` exclusive."""

    function: str
    line: int
    end_line: int
    col: int = 0
    end_col: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Arguments of a loss: log-probs (B, T), advantages (B,), mask (B, T), coefficients.

    A coefficient of None leaves the script's own default.
    """

    new: Rows
    old: Rows
    ref: Rows
    advantages: list[float]
    mask: list[list[int]]
    low: float | None = 0.2
    high: float | None = 0.2
    beta: float | None = 0.0
    cap: float | None = None
    second: Any = None
    """What a loss with two masks is given as the second one; None gives it the first again."""

    def but(self, **changes: Any) -> Batch:
        """The same batch with some fields replaced."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a loss returned for one batch, and its gradient by the new log-probs (B, T)."""

    value: float
    gradient: Rows


@dataclass(frozen=True, slots=True)
class LossSeen:
    """One loss function: the point of the space it computes, and how to ask it again."""

    function: str
    slots: frozenset[str]
    where: Mapping[str, Place]
    point: Point
    """Identified coordinates; an axis that could not be identified is missing."""
    run: Callable[[Batch], Answer]
    predict: Callable[[Point, Batch], Answer]
    """The value and gradient that a point of the space gives for a batch."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Measured numbers that are not coordinates, by name (see `rlproof.judge.losses`)."""
    declared: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class AdvantagesSeen:
    """One advantage function. `run` gives the advantages, or raises `ScriptError`."""

    function: str
    slots: frozenset[str]
    where: Mapping[str, Place]
    point: Point
    run: Callable[[list[float], int], list[float]]
    facts: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True, slots=True)
class MetricSeen:
    """One clip-fraction function; `run(new, old, mask, eps, advantage=1.0)` gives its value."""

    function: str
    slots: frozenset[str]
    where: Mapping[str, Place]
    run: Callable[..., float]
    bounds: frozenset[str] = frozenset()
    """Which of the lower and the upper clip range it takes apart from the other."""
    complete: bool = False
    """Whether it was given everything that it takes, options included."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """Arguments of a token log-prob function: logits (B, T, V), tokens (B, T), mask (B, T).

    A temperature of None leaves the script's own default.
    """

    logits: list[Rows]
    tokens: list[list[int]]
    temperature: float | None = None
    mask: list[list[int]] | None = None


@dataclass(frozen=True, slots=True)
class LogProbsSeen:
    """One token log-prob function; `run` gives one list a row, or raises `ScriptError`."""

    function: str
    slots: frozenset[str]
    where: Mapping[str, Place]
    point: Point
    run: Callable[[Scoring], Rows]
    words: int = 4
    """The size of the vocabulary that it works with."""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sign(self) -> float:
        """−1 where it returns negative log-probs."""
        return -1.0 if self.point.get("sign") == "negative" else 1.0

    def line(self, first: float) -> list[float]:
        """One logit, and 0 for every other word."""
        return [first, *[0.0] * (self.words - 1)]

    def shown(self, first: str) -> str:
        """The same for evidence."""
        return (
            f"({first}, {', '.join('0' * (self.words - 1))})"
            if self.words < 6
            else (f"({first}, 0, …, 0) of {self.words} words")
        )

    @property
    def times(self) -> int:
        """How many of two tokens of a row the first number returned adds up."""
        whole = str(self.point.get("pairing", "same slot")) == "same slot"
        return 2 if whole and self.point.get("reduction") == "sum" else 1

    @property
    def summed(self) -> str:
        """What to say of that in evidence."""
        return ", summed over two such tokens" if self.times == 2 else ""


@dataclass(frozen=True, slots=True)
class ExtractionSeen:
    """One function that reads log-probs off a model, asked with a model of known logits."""

    function: str
    slots: frozenset[str]
    where: Mapping[str, Place]
    point: Point
    proofs: Mapping[str, Evidence] = field(default_factory=dict)
    """For every way in which it is off (see `rlproof.judge.extraction`) what showed it."""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShapingSeen:
    """One function that puts a divergence into the rewards; `run` gives the new rewards."""

    function: str
    where: Mapping[str, Place]
    point: Point
    run: Callable[[Batch], list[Any]]
    slots: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GaugeSeen:
    """A small function of known meaning: an entropy, a divergence estimate, a mask builder.

    `run` takes a value for each slot and gives what the function returns, as plain lists.
    """

    role: str
    function: str
    slots: frozenset[str]
    where: Mapping[str, Place]
    run: Callable[[Mapping[str, Any]], Any]
    doc: str = ""


@dataclass(frozen=True, slots=True)
class RewardSeen:
    """One reward function of texts, with what it gave right, wrong and empty ones."""

    function: str
    where: Mapping[str, Place]
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LoopSeen:
    """One recorded training function: what its parts were given, rollout by rollout."""

    function: str
    where: Mapping[str, Place]
    facts: Mapping[str, Any]


class ScriptError(Exception):
    """The script's own function raised; carries where and what."""

    def __init__(
        self,
        kind: str,
        message: str,
        line: int | None = None,
        function: str | None = None,
        own: bool = True,
    ) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind = kind
        self.own = own
        """Whether the script's own code raised it, not a library on account of the machine."""
        self.line = line
        self.function = function


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything seen of one script."""

    losses: tuple[LossSeen, ...] = ()
    advantages: tuple[AdvantagesSeen, ...] = ()
    metrics: tuple[MetricSeen, ...] = ()
    loops: tuple[LoopSeen, ...] = ()
    log_probs: tuple[LogProbsSeen, ...] = ()
    extractions: tuple[ExtractionSeen, ...] = ()
    shaping: tuple[ShapingSeen, ...] = ()
    gauges: tuple[GaugeSeen, ...] = ()
    rewards: tuple[RewardSeen, ...] = ()
    other: tuple[tuple[Place, Mapping[str, Any]], ...] = ()
    """Functions of any role, with what happened to their arguments."""
    source: tuple[tuple[str, Sighting], ...] = ()
    """What the source of a loop that was not run proves, by code."""

    def written(self, code: str) -> Iterator[Sighting]:
        """The sightings of one fault in the source."""
        yield from (sighting for own, sighting in self.source if own == code)
