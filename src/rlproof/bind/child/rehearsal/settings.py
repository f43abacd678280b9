"""How one rehearsal is set up, and the random numbers of its stand-ins.

Shapes: B rows, P prompts, G completions of a prompt, L slots of a row (prompt and completion),
C of them of the completion, V words. B, P, G, L and C differ, and so do L − 1 and C: what is
broadcast along a wrong axis raises instead of giving another number.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

PROMPT = 5
COMPLETION = 16
LENGTH = PROMPT + COMPLETION
WORDS = 128
EOS = 2
PAD = 1
FIRST = 8
"""The first id that is an ordinary word."""


class NoStandInError(AttributeError):
    """A stand-in lacks what it is asked for; `hasattr` says so, too."""


@dataclass(slots=True)
class Settings:
    """One setting of the stage; sent by the parent."""

    rows: int = 24
    group: int = 3
    grouped: bool = False
    """Whether the script samples several completions for a prompt."""
    order: list[int] = field(default_factory=list)
    """Which prompt, or row of a batch, stands where; empty for the usual order."""
    width: str = "full"
    """Slots of what a batch holds for each token: `full` L, `shifted` L − 1, `completion` C."""
    advantages: str = "row"
    """Shape of advantages in a batch: `row` (B,), `column` (B, 1), `token` (B, slots)."""
    score: str = "row"
    """What a reward function returns: `row` (B,), `column` (B, 1), `list`, `pair` with a mask."""
    asked: str = "text"
    """How prompts are given: `text` a list of texts, `ids` (P, slots), `mapping` of both."""
    values: str = "varied"
    """Rewards and advantages: `varied`, `zero`, `by prompt`,
    `one`: of one row alone, `flat`: by prompt for every other prompt."""
    marked: int = 0
    """The row that `one` is about."""
    move: str = "really"
    """What an optimizer's step does: `really` steps, `frozen` nothing, `moved` a set distance."""
    weight: float = 0.0
    """What multiplies terms beside the surrogate, where the script leaves it open."""
    pad_is_eos: bool = False
    steps: int = 6
    """Steps of an optimizer after which a run has shown enough."""
    forwards: int = 60

    @property
    def prompts(self) -> int:
        """How many prompts a loader gives at once."""
        return self.rows // self.group if self.grouped else self.rows

    @property
    def slots(self) -> int:
        """How many slots a column of a batch has for each row."""
        return {"full": LENGTH, "shifted": LENGTH - 1}.get(self.width, COMPLETION)

    @property
    def pad(self) -> int:
        """The id that fills up rows."""
        return EOS if self.pad_is_eos else PAD

    def ordered(self, count: int) -> list[int]:
        """Which of `count` things stands where."""
        return self.order if len(self.order) == count else list(range(count))


def seed_of(*parts: object) -> int:
    """A seed that depends on what it is for, the same in every process."""
    return zlib.crc32("|".join(map(str, parts)).encode())


def generator(*parts: object) -> Any:
    """A generator of random numbers of its own."""
    import torch

    return torch.Generator().manual_seed(seed_of(*parts))


def draw(*parts: object) -> float:
    """One number between −1 and 1."""
    return seed_of(*parts) / 0xFFFFFFFF * 2 - 1


def by_prompt(number: int) -> float:
    """A reward of all completions of a prompt; sums of it are exact in any precision."""
    return 1 + seed_of("prompt value", number) % 8 * 0.25


def prompt_ids(number: int) -> list[int]:
    """The ids of a prompt: no two prompts have the same first one."""
    rest = [FIRST + seed_of("prompt", number, k) % 40 for k in range(PROMPT - 1)]
    return [60 + number % 60, *rest]


def prompt_of(ids: list[int]) -> int:
    """Which prompt ids begin with; −1 for none."""
    return ids[0] - 60 if ids and 60 <= ids[0] < 120 else -1
