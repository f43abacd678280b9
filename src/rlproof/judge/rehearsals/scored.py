"""SMP001, LGP001: tokens are scored with the distribution that they were drawn from.

The log-prob of the drawn token y under q has the derivative (e_y − q)/T by the logits. So among the
words that were not drawn, what the loss sends to the logits has the proportions of q, whatever
its factor: they are compared with the proportions of the distribution that `generate` drew from.
The share of y itself is not seen this way; a cut, a penalty or another temperature changes the
others as well. Where the loss has a term that is not a log-prob of the drawn token, such as an
entropy bonus, the proportions are no distribution's: a difference counts only where they are those
of a softmax at some temperature.
"""

from __future__ import annotations

from rlproof.faults.model import Evidence, rounded
from rlproof.judge.rehearsals.model import STAND_INS, Identity, Rehearsed
from rlproof.probe.rehearsal import Rehearsal

_FAR, _NEAR = 1e-3, 1e-4
_FEWEST = 8


def judge(rehearsal: Rehearsal) -> Rehearsed:
    """Sample and score with a policy that stands still, and compare token by token."""
    run = rehearsal.whole(move="frozen")
    scored = [line for p in run.passes for line in p.scored]
    if len(scored) < _FEWEST:
        return Rehearsed(None, "no log-probs of sampled tokens are differentiated there")
    gaps = [abs(line[3] - line[4]) for line in scored]
    if max(gaps) < _NEAR:
        return Rehearsed(True)
    if max(gaps) < _FAR:
        return Rehearsed(None, "the two distributions differ by rounding or more")
    pairs = zip(scored, gaps, strict=True)
    shown = next((line for line, gap in pairs if gap > _FAR and line[5]), None)
    if shown is None:
        return Rehearsed(None, "the loss has other terms that act on the logits")
    _, slot, _, got, meant, _ = shown
    case = f"token {slot + 1} of a completion: share of one word among those not drawn, as scored"
    return Rehearsed(
        False, "", Evidence(f"{STAND_INS}, {case}", rounded(got, 4), rounded(meant, 4))
    )


IDENTITY = Identity(
    "tokens are scored with the distribution they were drawn from", judge, alone=True
)
