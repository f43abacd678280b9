"""B3. k3 has less variance than k1 only while χ²(ref‖π) is below twice the symmetric KL.

Statement:
    For tokens drawn from π,

        Var k3 = Var k1 + χ²(ref‖π) − 2·(KL(π‖ref) + KL(ref‖π)),

    so k3 is the better estimate of the value exactly if χ²(ref‖π) < 2·(KL(π‖ref) + KL(ref‖π)).
    Near the reference it always is.

Conditions:
    On-policy, and one token or independent tokens. χ²(ref‖π) is large where the policy has lost
    tokens that the reference likes, which is where training on a reward leads.

Proof:
    k3 = k1 + (r − 1), r = ref/π. Var r = E_π[r²] − 1 = χ²(ref‖π). E_π[r·k1] = E_ref[log(π/ref)]
    = −KL(ref‖π), so Cov(k1, r) = −KL(ref‖π) − KL(π‖ref). For small gaps x = log r, χ² ≈ E[x²]
    and both KL ≈ E[x²]/2: the difference is −E[x²], nearly all of Var k1.

Refutes:
    "k3 is unbiased and has lower variance than k1": 36 times lower spread near the reference,
    but 4 times higher at π = (.97, .01, .01, .01) and 35 times at (.997, .001, …), for a uniform
    reference. "It breaks beyond some KL": with the two policies exchanged the KL is larger,
    2.08, and k3 is 6 times better.

Sources:
    * Schulman, "Approximating KL Divergence", joschu.net/blog/kl-approx.html (formula seen)
    * The identity and the crossing (derived here)
"""

from __future__ import annotations

import numpy as np

from rlproof.lab.claims._b_shared import peaked, uniform
from rlproof.lab.claims.model import Number, number
from rlproof.lab.divergences import chi_square, estimate, kl
from rlproof.lab.fixtures import P4_LOGITS, p4, p4_ref2, tree_of
from rlproof.lab.policies import Policy, bandit

CASES = {
    "logits of P4 divided by 8, KL .0024": (0.069761, 0.001951, 0.001962),
    "P4, KL .1412": (0.505334, 0.116247, 0.153191),
    "π = (.97, .01, .01, .01), KL 1.219": (0.780387, 0.726947, 3.440328),
    "π = (.997, .001, .001, .001), KL 1.363": (0.377621, 0.781330, 13.281174),
    "π uniform, ref = (.97, .01, .01, .01), KL 2.075": (1.980908, 1.845256, 0.318139),
}


def pairs() -> dict[str, tuple[Policy, Policy]]:
    """Policy and reference of every case."""
    near, flat = bandit(4).at(np.array(P4_LOGITS) / 8), uniform()
    policies = (near, p4().policy, peaked(0.01), peaked(0.001))
    every = [(policy, flat) for policy in policies] + [(flat, peaked(0.01))]
    return dict(zip(CASES, every, strict=True))


def numbers() -> tuple[Number, ...]:
    """Standard deviations of all three, the identity, and where k3 stops being better."""
    crossing = _crossing()
    policy = peaked(crossing)
    return (
        *(
            number(f"sd of k1, k2, k3, {name}",
                   [estimate(k, *pairs()[name]).sd for k in ("k1", "k2", "k3")], expected, 1e-6,
                   "sums over the four arms")
            for name, expected in CASES.items()
        ),
        number("largest gap of the identity, these five, P4 against ref2, and TREE",
               max(_gaps()), 0.0, 1e-9, "proof"),
        number("d where the two are equal, π = (1 − 3d, d, d, d), ref uniform", crossing,
               0.037987, 1e-6, "root of χ² = 2·(KL + KL) for d in (.001, .2)"),
        number("π₀ and KL(π‖ref) there", (1 - 3 * crossing, kl(policy, uniform())),
               (0.886039, 0.906377), 2e-6, "closed forms at that d"),
    )  # fmt: skip


def margin(policy: Policy, reference: Policy) -> float:
    """χ²(ref‖π) − 2·(KL(π‖ref) + KL(ref‖π)): Var k3 − Var k1."""
    return chi_square(reference, policy) - 2 * (kl(policy, reference) + kl(reference, policy))


def _gaps() -> list[float]:
    tree = tree_of(0, spread=0.5)
    every = [*pairs().values(), (p4().policy, p4_ref2().held_to), (tree.policy, tree.held_to)]
    return [
        abs(
            estimate("k3", p, q, level="sequence").sd ** 2
            - estimate("k1", p, q, level="sequence").sd ** 2
            - margin(p, q)
        )
        for p, q in every
    ]


def _crossing() -> float:
    low, high = 0.001, 0.2  # k3 is worse at the low end
    for _ in range(40):
        middle = (low + high) / 2
        worse = (
            estimate("k3", peaked(middle), uniform()).sd
            > estimate("k1", peaked(middle), uniform()).sd
        )
        low, high = (middle, high) if worse else (low, middle)
    return low
