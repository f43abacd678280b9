"""C8. The share of ratios outside the clip range is not the share of tokens that are held.

Statement:
    outside = |ρ − 1| > ε counts every ratio outside the range. A token has no gradient only if

        held = (A > 0 and ρ > 1+ε) or (A < 0 and ρ < 1−ε).

    So held ≤ outside, and any share from 0 to all of the outside tokens may be held.

Conditions:
    min-clip; for other surrogates see their own slopes (C10, C14). A token with A = 0 is neither
    moved nor counted as held.

Proof:
    C3: outside the range the slope is 0 only on the side that A pushes to. If the policy moved
    the way A asks, all outside tokens are held; if it moved the other way, none is.

Refutes:
    "clip_frac is the share of tokens without gradient": on P4, moved against the advantages,
    .83 of the tokens are outside and none is held. "Frameworks log the same number": some
    count outside, others held; compare only numbers of one definition.

Sources:
    * TRL 1.16.0, grpo_trainer.py, `is_low_clipped` and `is_high_clipped`: held (formula seen)
    * verl 0.9.1, core_algos.py, `pg_losses2 > pg_losses1`: held (formula seen)
    * rlproof.tiny, `clip_fraction`: outside (formula seen)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims._c_shared import PLAIN, SHIFT, of_tokens, shifted
from rlproof.lab.claims.model import Number, number
from rlproof.lab.policies import Floats
from rlproof.lab.tasks import Task
from rlproof.space.objective import Batch
from rlproof.space.surrogates import min_clip
from rlproof.tiny import clip_fraction

BACK = tuple(-x for x in SHIFT)
HALFWAY = (-0.3, 0.4, -0.5, 0.0)
CASES = {
    "with the advantages": (SHIFT, (0.832595, 0.832595)),
    "against them": (BACK, (0.832595, 0.0)),
    "partly": (HALFWAY, (0.898464, 0.167405)),
}


def shares(task: Task) -> tuple[float, float]:
    """P_old(outside) and P_old(slope = 0)."""
    ratio = np.exp(task.policy.logps - task.drawn_from.logps)[:, 0]
    held = of_tokens(min_clip, task)[1] == 0
    outside = np.abs(ratio - 1) > 0.2
    return float(task.drawn_from.expect(outside)), float(task.drawn_from.expect(held))


def rows(task: Task) -> tuple[Floats, Floats]:
    """New and old log-probabilities of the four actions, one row for each, (4, 1)."""
    return task.policy.logps, task.drawn_from.logps


def numbers() -> tuple[Number, ...]:
    """Both shares for three moves of P4, and what two programs log on four equal rows."""
    back = shifted(BACK)
    new, old = rows(back)
    batch = Batch(new, back.rewards, np.ones((4, 1)), old=old)
    logged = float(PLAIN.but(surrogate="min-clip").loss(batch)[1]["clip_fraction"])
    tiny = clip_fraction(new.tolist(), old.tolist(), np.ones((4, 1)).tolist())
    slopes = of_tokens(min_clip, back)[1]
    random_sign = sum(shares(back.but(rewards=np.full(4, sign)))[1] for sign in (1.0, -1.0)) / 2
    return (
        *(
            number(f"outside and held, P4 moved {name}", shares(shifted(shift)), row, 1e-6,
                   "plain sum over four actions")
            for name, (shift, row) in CASES.items()
        ),
        number("clip_fraction of rlproof.space, one row each", logged, 0.75, 1e-12,
               "ρ = (.568, 1.544, .848, 1.707): three outside"),
        number("clip_fraction of rlproof.tiny, one row each", tiny, 0.75, 1e-12, "the same three"),
        number("share of those rows without slope", float(np.mean(slopes == 0)), 0.0, 1e-12, "C3"),
        number("held, if the sign of A is a coin", random_sign, 0.416297, 1e-6, "outside/2"),
    )  # fmt: skip
