"""B18. The penalty is added to the loss; subtracted, it is rewarded, and the reward looks best.

Statement:
    The loss is −surrogate + β·k3. With −β·k3, descent raises KL(ref‖π), by η·β·|π − ref|² for a
    small step η from the penalty alone, and the expected step of the tiny trainer towards the
    target is positive at all p from 1/4 to 1 that were tried: it does not come to rest.

Conditions:
    One rewarded token, a reference that spreads its probability. That the wrong sign earns more
    is then certain: away from ref and towards the reward are the same direction.

Proof:
    E[∇k3] = ∇KL(ref‖π) = π − ref (B4), so −β·k3 changes KL(ref‖π) by η·β·|π − ref|². The expected
    step along the target's logit is that of the reward plus β·(p − 1/4); right is minus (B14).

Refutes:
    "The reward rises, so the loss is right": after 60 steps it is .9842 with β = .04, .9929 with
    0 and .9974 with the wrong sign. What shows the sign is the divergence: with ten times the
    coefficient it falls from 1.29 to .58 nats if right, and reaches log 4 if wrong, with logits
    of the order of 10⁵.

Sources:
    * The statement and the runs (derived here)
"""

from __future__ import annotations

from math import log, log10

import numpy as np

from rlproof import tiny
from rlproof.lab.claims._b_shared import descends, penalty, success, uniform
from rlproof.lab.claims.b14_the_tiny_trainer_stops_below_one import push
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import kl
from rlproof.lab.fixtures import p4

BETAS = (0.4, 0.04, 0.0, -0.04, -0.4)
STEP = 1e-6
ARRAYS = "a second trainer, vectorised, on the same random numbers"


def numbers() -> tuple[Number, ...]:
    """One step from the penalty alone; then 60 steps of the tiny trainer, seed 0, at five β."""
    tables = [tiny.train(beta=beta)[0] for beta in BETAS]
    steps = [push(q) + 0.04 * (0.75 - q) for q in (0.75, 0.4, 0.0123, 1e-3)]
    return (
        number("change of KL(ref‖π) over η·|π − ref|², P4: +k3 and −k3 in the loss",
               (_rate(1.0), _rate(-1.0)), (-1.0, 1.0), 1e-5, "proof; the rest is O(η)"),
        number("expected step towards the target with −β·k3, p = .9877, .999", steps[-2:],
               (0.058975, 0.032584), 1e-5, "counts of imperfect completions + β(p − 1/4)"),
        number("how many are positive, of p = .25, .6, .9877, .999",
               sum(step > 0 for step in steps), 4.0, 0.05, "enumeration over 43,758 groups each"),
        number("expected reward at β = .4, .04, 0, −.04, −.4", [success(t) for t in tables],
               (0.763866, 0.984236, 0.992920, 0.997380, 0.999999), 1e-6, ARRAYS),
        number("mean KL(π‖ref) there", [divergence_of(t) for t in tables],
               (0.581748, 1.288108, 1.336712, 1.365962, 1.386283), 1e-6, ARRAYS),
        number("log 4, the most it can be, minus the last", log(4) - divergence_of(tables[-1]),
               0.0, 2e-5, "a policy with one token left"),
        number("log10 of the largest |logit| at β = .4 and −.4",
               [log10(np.abs(t).max()) for t in (tables[0], tables[-1])], (0.254188, 5.167041),
               1e-3, ARRAYS),
    )  # fmt: skip


def _rate(sign: float) -> float:
    policy, ref = p4().policy, uniform()
    down = descends(penalty("k3", beta=sign), p4())
    stepped = policy.family.at(policy.theta - STEP * down)
    size = float(((policy.probs - ref.probs) ** 2).sum())
    return (kl(ref, stepped) - kl(ref, policy)) / (STEP * size)


def divergence_of(theta: tiny.Table) -> float:
    """KL(π‖uniform) of a table, the mean over prompts, nats."""
    logps = np.array([tiny.log_softmax(row) for row in theta])
    return float((np.exp(logps) * (logps + log(4))).sum(axis=1).mean())
