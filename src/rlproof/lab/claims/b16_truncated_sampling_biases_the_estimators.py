"""B16. With top-k or top-p sampling, k1 and k3 of π's log-probs estimate no divergence.

Statement:
    Tokens come from q = π on a set S, divided by π(S). With log-probs of π over all tokens,

        E_q[k1] = KL(q‖ref) + log π(S),
        E_q[k3] = KL(q‖ref) + log π(S) + ref(S)/π(S) − 1.

    With log-probs of q instead, k1 is unbiased for KL(q‖ref), and k3 is ref(S) − 1 off.

Conditions:
    One token. If ref is cut to S and divided by ref(S) as well, both are unbiased again, for the
    divergence of the two cut policies.

Proof:
    log π = log q + log π(S) on S. E_q[ref/π] = Σ_S ref/π(S). k3 = k1 + ref/π − 1 needs
    E[ref/π] = 1, which takes all tokens of ref.

Refutes:
    "Truncation only leaves out the tail": top-2 of P4 gives .2187 for k3 and .3682 for k1, and
    the divergences are .2104 of π and .6814 of q. "k1 in the loss has no expected gradient": its
    gradient is now ∇log π(S), and descent moves probability out of S.

Sources:
    * Schulman, "Approximating KL Divergence", joschu.net/blog/kl-approx.html, for the condition
      E[r] = 1 (formula seen)
    * The formulas (derived here)
"""

from __future__ import annotations

from math import log

import numpy as np

from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import estimate, kl
from rlproof.lab.fixtures import p4, p4_ref2
from rlproof.lab.policies import Floats
from rlproof.space.divergences import divergence

SUM = "sum over the arms of S"


def numbers() -> tuple[Number, ...]:
    """Top-2 and top-3 of P4 against ref2, with the log-probs of π, of q, and of a cut ref."""
    policy, ref = p4().policy, p4_ref2().held_to
    return (
        number("E_q[k1], E_q[k3], log-probs of π, top-2", means(2), (0.368161, 0.218653), 1e-6,
               SUM),
        number("the same, top-3", means(3), (0.329182, 0.180147), 1e-6, SUM),
        number("KL(π‖ref), said to be estimated", kl(policy, ref), 0.210363, 1e-6,
               "sum over the four arms"),
        number("KL(q‖ref), top-2 and top-3", (cut_kl(2), cut_kl(3)), (0.681423, 0.436251), 1e-6,
               SUM),
        number("E_q[ref/π], top-2 and top-3, needed to be 1", (mean_ratio(2), mean_ratio(3)),
               (0.850492, 0.850965), 1e-6, "ref(S)/π(S)"),
        number("E_q[k1], E_q[k3], log-probs of q, top-2", _of_cut(ref.probs[:2]),
               (0.681423, 0.303182), 1e-6, "KL(q‖ref), and + ref(S) − 1"),
        number("the same with ref cut to S, too", _of_cut(ref.probs[:2] / ref.probs[:2].sum()),
               (0.206221, 0.206221), 1e-6, "KL(q‖ref given S)"),
        number("E_q[∇k1], log-probs of π, top-2, said to be 0",
               estimate("k1", policy, ref, drawn=cut(2)).gradient,
               (0.167405, 0.101536, -0.167405, -0.101536), 1e-6, "q − π, which is ∇log π(S)"),
    )  # fmt: skip


def cut(kept: int) -> Floats:
    """q: the first `kept` arms of P4, which are its likeliest, divided by their sum."""
    probs = np.where(np.arange(4) < kept, p4().policy.probs, 0.0)
    cut_probs: Floats = probs / probs.sum()
    return cut_probs


def means(kept: int) -> tuple[float, ...]:
    """E_q[k1] and E_q[k3] with the log-probs of π."""
    policy, ref = p4().policy, p4_ref2().held_to
    return tuple(estimate(k, policy, ref, drawn=cut(kept)).mean for k in ("k1", "k3"))


def cut_kl(kept: int) -> float:
    """KL(q‖ref), from E_q[k1] and π(S)."""
    return means(kept)[0] - log(p4().policy.probs[:kept].sum())


def mean_ratio(kept: int) -> float:
    """E_q[ref/π]."""
    return float(cut(kept) @ (p4_ref2().held_to.probs / p4().policy.probs))


def _of_cut(ref_2: Floats) -> tuple[float, ...]:
    """E_q[k1] and E_q[k3] with the log-probs of q, on the two arms of S."""
    kept = cut(2)[:2]
    return tuple(float(kept @ divergence(np.log(kept), np.log(ref_2), k)[0]) for k in ("k1", "k3"))
