"""How a loss weighs tokens by the length of their row, and what that does to a policy.

Shapes: B rows, T slots, N sequences, D parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from rlproof.defence.functions import Advantages, Floats, Loss
from rlproof.defence.model import Cell, Fact, Line, Part, Plot, Table
from rlproof.defence.worlds import ending
from rlproof.faults.seen import Batch
from rlproof.lab.calculus import compare
from rlproof.lab.policies import Policy
from rlproof.read.names import Slot

LENGTHS = (1, 2, 4, 8)
_EVEN = (2, 2, 2, 2)
_LOGP = -1.0
_SAME = 1e-4
_ZERO = 1e-9


@dataclass(frozen=True, slots=True)
class WeightsSeen:
    """The weight of one token by the length of its row, on-policy, per unit of advantage."""

    token: tuple[float, ...]
    padding: tuple[float, ...]
    """The largest weight of a padded slot of the row."""
    even: float
    """Weight of a token of a row of two, where all rows have two."""

    @property
    def rows(self) -> tuple[float, ...]:
        """The weight of whole rows, without padding."""
        return tuple(w * n for w, n in zip(self.token, LENGTHS, strict=True))

    @property
    def kind(self) -> str:
        """`token`: all tokens alike; `row`: all rows alike; `other`; `none` where it is 0."""
        size = max(map(abs, self.token))
        if size < _ZERO:
            return "none"
        if max(self.token) - min(self.token) < _SAME * size:
            return "token"
        rows = self.rows
        return "row" if max(rows) - min(rows) < _SAME * max(map(abs, rows)) else "other"

    @property
    def coupled(self) -> bool:
        """Whether a token's weight depends on the lengths of other rows."""
        return abs(self.even - self.token[1]) > _SAME * max(abs(self.even), abs(self.token[1]))

    @property
    def pads(self) -> bool:
        """Whether padded slots get a gradient."""
        return max(map(abs, self.padding)) > _SAME * max(map(abs, self.token))


def measure(loss: Loss) -> WeightsSeen | None:
    """The weights in a batch of rows of 1, 2, 4 and 8 tokens; None where it takes no mask.

    Raises:
        ScriptError, UnbindableError: the loss can't be asked.
    """
    if not (loss.has(Slot.MASK) or loss.has(Slot.LENGTHS)):
        return None
    mixed, even = loss.pulls([_rows(loss, LENGTHS), _rows(loss, _EVEN)])
    pads = tuple(
        float(np.abs(row[n:]).max(initial=0.0)) for row, n in zip(mixed, LENGTHS, strict=True)
    )
    return WeightsSeen(tuple(float(row[0]) for row in mixed), pads, float(even[0][0]))


def _rows(loss: Loss, lengths: Sequence[int]) -> Batch:
    width = max(LENGTHS)
    mask = [[int(t < n) for t in range(width)] for n in lengths]
    return loss.batch([[_LOGP] * width for _ in lengths], [1.0] * len(lengths), mask)


def part(loss: Loss, seen: WeightsSeen) -> Part:
    """The table and what it favours."""
    facts: dict[str, Fact] = {
        "kind": seen.kind, "coupled": seen.coupled, "padding_counts": seen.pads,
        "token_weights": seen.token, "row_weights": seen.rows,
    }  # fmt: skip
    rows: list[tuple[Cell, ...]] = [
        (f"{n}", w, whole, pad)
        for n, w, whole, pad in zip(LENGTHS, seen.token, seen.rows, seen.padding, strict=True)
    ]
    claims = ["C5", "D1", "D2", "D3", "D4"]
    claims += ["D7", "D8"] if seen.coupled else []
    claims += ["D5", "D6"] if seen.pads else []
    return Part(
        "lengths", "Weight of a token by the length of its row", loss.name, loss.line,
        tuple(claims), tuple(_says(seen)),
        (Table("A batch of rows of 1, 2, 4 and 8 tokens padded to 8, A = 1",
               ("tokens of the row", "one token", "whole row", "a padded slot"), tuple(rows)),),
        (Plot("Weight by the length of the row", "tokens of the row", "weight",
              tuple(map(float, LENGTHS)),
              (Line("one token", seen.token), Line("whole row", seen.rows, dashed=True)),
              "Measured: −∂L/∂log π on-policy, what the loss gives without an advantage off."),),
        facts=facts,
    )  # fmt: skip


def _says(seen: WeightsSeen) -> Iterator[str]:
    match seen.kind:
        case "token":
            yield (
                "Every token counts alike, so that a row weighs as much as it is long: with the "
                "same advantage, long completions move the policy more."
            )
        case "row":
            yield (
                "Every row counts alike, so that a token weighs 1/length: a long wrong completion "
                "is punished less per token than a short one."
            )
        case "none":
            yield "On-policy the advantages give no token any weight."
            return
        case _:
            shown = ", ".join(f"{w:.4g}" for w in seen.token)
            yield f"Tokens of rows of 1, 2, 4, 8 weigh {shown}: neither tokens nor rows alike."
    if seen.coupled:
        yield (
            f"The weight depends on the other rows of the batch: a token of a row of two weighs "
            f"{seen.token[1]:.4g} beside rows of 1, 4 and 8, and {seen.even:.4g} among rows of two."
        )
    else:
        yield "It does not depend on the lengths of the other rows."
    if seen.pads:
        yield (
            f"Padded slots get a gradient of up to {max(seen.padding):.4g}: padding is trained as "
            "if it had been chosen."
        )


@dataclass(frozen=True, slots=True)
class StoppingSeen:
    """The whole pipeline where the policy chooses when to stop, in expectation."""

    ascent: Floats
    """E of the step direction, (D,)."""
    right: Floats
    """∇V."""
    by_padding: float
    """Share of its norm that comes from padded slots."""
    longer_wrong: float
    """Slope of E[length | wrong] along it, less that along ∇V, both of norm 1 (tokens)."""
    batches: int


def stopping(loss: Loss, advantages: Advantages, group: int = 2) -> StoppingSeen | None:
    """Every pair of the 15 completions of a policy that ends them itself: 225 batches.

    Padded slots hold token 0, with its log-probability, as they do in trainers. None where the
    loss takes no mask.

    Raises:
        ScriptError, UnbindableError: a function can't be asked.
    """
    if not (loss.has(Slot.MASK) or loss.has(Slot.LENGTHS)):
        return None
    policy, rewards_N = ending()
    pairs = list(product(range(len(rewards_N)), repeat=group))
    table = advantages.table([[float(rewards_N[n]) for n in pair] for pair in pairs], group)
    logps_NT, scores_NTD = _padded(policy)
    mask = policy.family.mask.astype(int).tolist()
    batches = [
        loss.batch([logps_NT[n].tolist() for n in pair], list(table.values[m]),
                   [mask[n] for n in pair])
        for m, pair in enumerate(pairs)
    ]  # fmt: skip
    pulls_MBT = np.array(loss.pulls(batches))
    members_MB = np.array(pairs)
    weights_M = policy.probs[members_MB].prod(axis=1)
    real_MBT = policy.family.mask[members_MB]
    parts = [
        np.einsum("m,mbt,mbtd->d", weights_M, pulls_MBT * where, scores_NTD[members_MB])
        for where in (real_MBT, 1 - real_MBT)
    ]
    ascent = parts[0] + parts[1]
    right = policy.gradient(rewards_N)
    size = float(np.linalg.norm(ascent))
    return StoppingSeen(
        ascent, right, float(np.linalg.norm(parts[1])) / max(size, 1e-300),
        _lengthening(policy, rewards_N, ascent, right), len(batches),
    )  # fmt: skip


def _padded(policy: Policy) -> tuple[Floats, Floats]:
    """Log-probs (N, T) and scores (N, T, D) with token 0 on padded slots."""
    family, table = policy.family, policy.log_table
    logps: Floats = table[family.rows, family.tokens]
    scores = np.eye(table.shape[1])[family.tokens] - np.exp(table)[family.rows]
    return logps, scores


def _lengthening(policy: Policy, rewards_N: Floats, ascent: Floats, right: Floats) -> float:
    """How much faster wrong completions get longer than along ∇V."""
    if np.linalg.norm(ascent) < _ZERO:
        return 0.0
    wrong_N, lengths_N = 1 - rewards_N, policy.family.lengths
    below, above = policy.value(wrong_N), policy.value(wrong_N * lengths_N)
    slope = (
        policy.gradient(wrong_N * lengths_N) - above / below * policy.gradient(wrong_N)
    ) / below
    unit = ascent / np.linalg.norm(ascent) - right / np.linalg.norm(right)
    return float(slope @ unit)


def stopping_part(loss: Loss, seen: StoppingSeen) -> Part:
    """The angle to ∇V, and what padding and length weights do to it."""
    none = float(np.linalg.norm(seen.ascent)) < _ZERO
    against = None if none else compare(seen.ascent, seen.right)
    facts: dict[str, Fact] = {
        "degrees": against.degrees if against else None,
        "scale": against.scale if against else 0.0,
        "by_padding": seen.by_padding,
        "longer_wrong": seen.longer_wrong,
    }
    rows: list[tuple[Cell, ...]] = [
        ("angle to ∇V, degrees", against.degrees if against else None),
        ("scale along ∇V", against.scale if against else 0.0),
        ("share of padded slots in its norm", seen.by_padding),
        ("slope of E[length | wrong], less that of ∇V", seen.longer_wrong),
    ]
    return Part(
        "stopping", "Direction where the policy chooses its length", loss.name, loss.line,
        ("D1", "D2", "D3", "D6"), tuple(_stopping_says(seen, facts)),
        (Table(f"All {seen.batches} pairs of the 15 completions, through both functions",
               ("what", "value"), tuple(rows)),),
        facts=facts,
    )  # fmt: skip


def _stopping_says(seen: StoppingSeen, facts: dict[str, Fact]) -> Iterator[str]:
    degrees = facts["degrees"]
    if not isinstance(degrees, float):
        yield "The expected direction is 0."
        return
    if degrees < 0.05:
        yield "Even where the policy decides when to stop, its direction is that of ∇V."
    else:
        yield f"Where the policy decides when to stop, its direction is {degrees:.3g}° from ∇V."
        if degrees < 90 and abs(seen.longer_wrong) > 1e-3:
            how = "longer" if seen.longer_wrong > 0 else "shorter"
            yield f"Along it wrong completions get {how} than ∇V would make them."
    if seen.by_padding > _SAME:
        yield (
            f"Padded slots make a part of {seen.by_padding:.3g} times its length: token 0 is "
            "trained."
        )
